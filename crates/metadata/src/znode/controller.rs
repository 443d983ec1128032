//! `/controller`: the ephemeral znode of the elected controller.
//!
//! Since 3.4 it has the epoch of a KRaft controller that took the cluster over, or -1 (KIP-866); version 1 lacks it.

use super::{DecodeError, json};
use serde::{Deserialize, Serialize};
use wire::types::{BrokerId, Millis};

/// The path.
pub const PATH: &str = "/controller";

const KIND: &str = "controller";
const NO_KRAFT_EPOCH: i32 = -1;

/// Who is the controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Controller {
    /// The broker that won the election.
    pub broker_id: BrokerId,
    /// Milliseconds since the Unix epoch at the election.
    pub timestamp_ms: Millis,
    /// The epoch of a KRaft controller that took over.
    pub kraft_controller_epoch: Option<i32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json {
    version: i32,
    brokerid: i32,
    #[serde(default)]
    timestamp: String,
    #[serde(default = "no_kraft_epoch")]
    kraft_controller_epoch: i32,
}

fn no_kraft_epoch() -> i32 {
    NO_KRAFT_EPOCH
}

impl Controller {
    /// The value of the znode, version 2.
    pub fn encode(&self) -> Vec<u8> {
        json::encode(&Json {
            version: 2,
            brokerid: self.broker_id.0,
            timestamp: self.timestamp_ms.to_string(),
            kraft_controller_epoch: self.kraft_controller_epoch.unwrap_or(NO_KRAFT_EPOCH),
        })
    }

    /// Reads versions 1 and 2. A timestamp that is no number counts as 0.
    pub fn decode(data: Option<&[u8]>) -> Result<Self, DecodeError> {
        let json: Json = json::decode(KIND, data)?;
        Ok(Self {
            broker_id: BrokerId(json.brokerid),
            timestamp_ms: Millis(json.timestamp.parse().unwrap_or(0)),
            kraft_controller_epoch: Some(json.kraft_controller_epoch)
                .filter(|epoch| *epoch != NO_KRAFT_EPOCH),
        })
    }
}

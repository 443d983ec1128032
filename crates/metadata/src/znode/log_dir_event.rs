//! `/log_dir_event_notification/log_dir_event_<sequence>`: tells the controller that a log directory of a broker failed
//! (KIP-112).

use super::{DecodeError, json};
use serde::{Deserialize, Serialize};
use wire::types::BrokerId;

/// The parent of all notifications.
pub const ROOT: &str = "/log_dir_event_notification";

/// The path of a notification up to its sequence number.
pub const PREFIX: &str = "/log_dir_event_notification/log_dir_event_";

const KIND: &str = "log directory event";
const FAILURE: i32 = 1;

#[derive(Serialize, Deserialize)]
struct Json {
    version: i32,
    broker: i32,
    #[serde(default)]
    event: i32,
}

/// The value of the znode for a broker with a failed directory.
pub fn encode(broker: BrokerId) -> Vec<u8> {
    json::encode(&Json { version: 1, broker: broker.0, event: FAILURE })
}

/// The broker in the value of the znode. Failure is the only event there is.
pub fn decode(data: Option<&[u8]>) -> Result<BrokerId, DecodeError> {
    json::decode::<Json>(KIND, data).map(|json| BrokerId(json.broker))
}

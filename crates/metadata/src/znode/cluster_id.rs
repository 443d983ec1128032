//! `/cluster/id`: the id of the cluster, created by the first broker. Its version is text, unlike everywhere else.

use super::{DecodeError, json};
use serde::{Deserialize, Serialize};

/// The path.
pub const PATH: &str = "/cluster/id";

const KIND: &str = "cluster id";

#[derive(Serialize, Deserialize)]
struct Json {
    #[serde(default)]
    version: String,
    id: String,
}

/// The value of the znode for a cluster id, which usually is 22 characters of URL-safe base64.
pub fn encode(cluster_id: &str) -> Vec<u8> {
    json::encode(&Json { version: "1".to_owned(), id: cluster_id.to_owned() })
}

/// The cluster id in the value of the znode.
pub fn decode(data: Option<&[u8]>) -> Result<String, DecodeError> {
    json::decode::<Json>(KIND, data).map(|json| json.id)
}

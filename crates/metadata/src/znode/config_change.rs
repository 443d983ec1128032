//! `/config/changes/config_change_<sequence>`: tells all brokers that the configs of an entity changed.
//!
//! Version 2 names the path of the entity; version 1, of releases before 0.9.0.1, a type and a name.

use super::config::ConfigEntity;
use super::{DecodeError, json};
use crate::store::{CreateMode, Op};
use serde::{Deserialize, Serialize};

/// The parent of all notifications.
pub const ROOT: &str = "/config/changes";

/// The path of a notification up to its sequence number.
pub const PREFIX: &str = "/config/changes/config_change_";

/// After how long brokers remove a notification, in milliseconds.
pub const EXPIRY_MS: i64 = 15 * 60 * 1000;

const KIND: &str = "config change";

#[derive(Serialize)]
struct Json<'a> {
    version: i32,
    entity_path: &'a str,
}

#[derive(Deserialize)]
struct AnyVersion {
    version: i32,
    entity_path: Option<String>,
    entity_type: Option<String>,
    entity_name: Option<String>,
}

/// The value of the znode, version 2.
pub fn encode(entity: &ConfigEntity) -> Vec<u8> {
    json::encode(&Json { version: 2, entity_path: &entity.entity_path() })
}

/// The write that notifies of `entity`.
pub fn notify(entity: &ConfigEntity) -> Op {
    Op::create(PREFIX, encode(entity), CreateMode::PersistentSequential)
}

/// The entity that changed. Reads versions 1 and 2.
pub fn decode(data: Option<&[u8]>) -> Result<ConfigEntity, DecodeError> {
    let json: AnyVersion = json::decode(KIND, data)?;
    let entity_path = match (json.version, json.entity_path, json.entity_type, json.entity_name) {
        (2, Some(path), _, _) => path,
        (1, _, Some(kind), Some(name)) if kind == "topics" || kind == "clients" => format!("{kind}/{name}"),
        (1 | 2, ..) => return Err(DecodeError::new(KIND, "it names no entity")),
        (version, ..) => return Err(DecodeError::new(KIND, format!("its version is {version}"))),
    };
    ConfigEntity::parse(&entity_path)
        .ok_or_else(|| DecodeError::new(KIND, format!("{entity_path:?} is no entity")))
}

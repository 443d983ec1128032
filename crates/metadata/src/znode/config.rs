//! `/config/<type>/<entity>`: the dynamic configs of topics and brokers, and the quotas and credentials of users,
//! clients and IPs. Version 1; all values are text.

use super::sanitize::{desanitize, sanitize};
use super::{DecodeError, json};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wire::types::{BrokerId, TopicName};

/// The parent of all entity types.
pub const ROOT: &str = "/config";

/// The parent of IPs.
pub const IPS: &str = "/config/ips";

/// The name of the entity that stands for all without an entry of their own.
pub const DEFAULT_ENTITY: &str = "<default>";

const KIND: &str = "config";

/// The name of a user, client or IP, or the default of all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntityName {
    /// The default.
    Default,
    /// A name as clients write it, not escaped.
    Named(String),
}

impl EntityName {
    /// The name; none is the default of all.
    pub fn named(&self) -> Option<&str> {
        match self {
            Self::Default => None,
            Self::Named(name) => Some(name),
        }
    }

    fn znode(&self) -> String {
        match self {
            Self::Default => DEFAULT_ENTITY.to_owned(),
            Self::Named(name) => sanitize(name),
        }
    }

    fn parse(znode: &str) -> Option<Self> {
        if znode == DEFAULT_ENTITY { Some(Self::Default) } else { desanitize(znode).map(Self::Named) }
    }
}

/// What configs belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigEntity {
    /// A topic.
    Topic(TopicName),
    /// One broker.
    Broker(BrokerId),
    /// The default of all brokers.
    DefaultBroker,
    /// A user: quotas and SCRAM credentials.
    User(EntityName),
    /// A client id: quotas.
    Client(EntityName),
    /// A client id of a user: quotas.
    UserClient {
        /// The user.
        user: EntityName,
        /// The client id.
        client: EntityName,
    },
    /// An IP: quotas.
    Ip(EntityName),
}

impl ConfigEntity {
    /// The path of the entity's znode.
    pub fn path(&self) -> String {
        format!("{ROOT}/{}", self.entity_path())
    }

    /// The path below [`ROOT`], as notifications name it: `users/al%20ice/clients/<default>`.
    pub fn entity_path(&self) -> String {
        match self {
            Self::Topic(topic) => format!("topics/{topic}"),
            Self::Broker(id) => format!("brokers/{id}"),
            Self::DefaultBroker => format!("brokers/{DEFAULT_ENTITY}"),
            Self::User(user) => format!("users/{}", user.znode()),
            Self::Client(client) => format!("clients/{}", client.znode()),
            Self::UserClient { user, client } => format!("users/{}/clients/{}", user.znode(), client.znode()),
            Self::Ip(ip) => format!("ips/{}", ip.znode()),
        }
    }

    /// The entity that an entity path names; `None` for one of an unknown type or shape.
    pub fn parse(entity_path: &str) -> Option<Self> {
        let mut names = entity_path.split('/');
        let entity = match (names.next()?, names.next()?, names.next(), names.next()) {
            ("topics", topic, None, None) => Self::Topic(TopicName::from(topic)),
            ("brokers", DEFAULT_ENTITY, None, None) => Self::DefaultBroker,
            ("brokers", id, None, None) => Self::Broker(BrokerId(id.parse().ok()?)),
            ("users", user, None, None) => Self::User(EntityName::parse(user)?),
            ("users", user, Some("clients"), Some(client)) => {
                Self::UserClient { user: EntityName::parse(user)?, client: EntityName::parse(client)? }
            }
            ("clients", client, None, None) => Self::Client(EntityName::parse(client)?),
            ("ips", ip, None, None) => Self::Ip(EntityName::parse(ip)?),
            _ => return None,
        };
        if names.next().is_some() { None } else { Some(entity) }
    }
}

/// The configs of an entity, by name.
pub type Configs = BTreeMap<String, String>;

#[derive(Serialize, Deserialize)]
struct Json {
    version: i32,
    config: Configs,
}

/// The value of the znode, version 1.
pub fn encode(configs: &Configs) -> Vec<u8> {
    json::encode(&Json { version: 1, config: configs.clone() })
}

/// Reads the value. A znode without data, such as the parent of a user's clients, has no configs.
pub fn decode(data: Option<&[u8]>) -> Result<Configs, DecodeError> {
    if data.is_none_or(<[u8]>::is_empty) {
        return Ok(Configs::new());
    }
    let json: Json = json::decode(KIND, data)?;
    if json.version != 1 {
        return Err(DecodeError::new(KIND, format!("its version is {}, not 1", json.version)));
    }
    Ok(json.config)
}

//! `/brokers/ids/<id>`: the registration of a live broker, an ephemeral znode. Its czxid is the broker epoch (KIP-380).
//!
//! Version 5 is written from `inter.broker.protocol.version` 2.7 on, 4 from 0.10 on, 2 before. Version 1 has one
//! plaintext address, 2 endpoints named by security protocol, 3 a rack, 4 named listeners, 5 features (none in
//! ZooKeeper mode).

use super::{DecodeError, json};
use crate::path;
use crate::store::{CreateMode, Op, Value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as JsonValue};
use wire::types::{BrokerId, Millis};

/// The parent of all registrations.
pub const ROOT: &str = "/brokers/ids";

const KIND: &str = "broker registration";

/// The path of a broker's registration.
pub fn path(id: BrokerId) -> String {
    path::child(ROOT, &id.to_string())
}

/// How a listener is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecurityProtocol {
    /// Neither encryption nor authentication.
    Plaintext,
    /// TLS.
    Ssl,
    /// SASL without encryption.
    SaslPlaintext,
    /// SASL over TLS.
    SaslSsl,
}

impl SecurityProtocol {
    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::SaslSsl => "SASL_SSL",
        }
    }

    /// The protocol of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Plaintext, Self::Ssl, Self::SaslPlaintext, Self::SaslSsl]
            .into_iter()
            .find(|p| p.name() == name)
    }
}

/// An advertised address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The name of the listener.
    pub listener_name: String,
    /// The host name or IP, without brackets.
    pub host: String,
    /// The port.
    pub port: i32,
    /// How it is secured.
    pub security_protocol: SecurityProtocol,
}

/// What a broker tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BrokerRegistration {
    /// Where it is reached.
    pub endpoints: Vec<Endpoint>,
    /// Its rack.
    pub rack: Option<String>,
    /// The JMX port, -1 if none.
    pub jmx_port: i32,
    /// Milliseconds since the Unix epoch at registration.
    pub timestamp_ms: Millis,
}

#[derive(Serialize, Deserialize)]
struct Json {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    features: Option<Map<String, JsonValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    listener_security_protocol_map: Option<Map<String, JsonValue>>,
    #[serde(default)]
    endpoints: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rack: Option<String>,
    #[serde(default = "no_port")]
    jmx_port: i32,
    #[serde(default = "no_port")]
    port: i32,
    #[serde(default)]
    host: Option<String>,
    version: i32,
    #[serde(default)]
    timestamp: JsonValue,
}

fn no_port() -> i32 {
    -1
}

impl BrokerRegistration {
    /// The value of the znode in version 5, 4 or 2; other numbers count as the next lower of these.
    pub fn encode(&self, version: i32) -> Vec<u8> {
        let version = match version {
            5.. => 5,
            4 => 4,
            _ => 2,
        };
        let plaintext = self.endpoints.iter().find(|e| e.security_protocol == SecurityProtocol::Plaintext);
        let protocols =
            self.endpoints.iter().map(|e| (e.listener_name.clone(), e.security_protocol.name().into()));
        json::encode(&Json {
            features: (version >= 5).then(Map::new),
            listener_security_protocol_map: (version >= 4).then(|| protocols.collect()),
            endpoints: self.endpoints.iter().map(|endpoint| endpoint.text(version)).collect(),
            rack: self.rack.clone().filter(|_| version >= 3),
            jmx_port: self.jmx_port,
            port: plaintext.map_or(-1, |endpoint| endpoint.port),
            host: plaintext.map(|endpoint| endpoint.host.clone()),
            version,
            timestamp: self.timestamp_ms.to_string().into(),
        })
    }

    /// The writes that register a broker, to be done as one multi: Kafka writes the znode once more after its creation,
    /// since only that answer tells the czxid.
    pub fn register(&self, id: BrokerId, version: i32) -> Vec<Op> {
        let path = path(id);
        vec![
            Op::create(path.clone(), Value::NULL, CreateMode::Ephemeral),
            Op::set(path, self.encode(version), Some(0)),
        ]
    }

    /// Reads versions 1 to 5, and later ones as 5.
    pub fn decode(data: Option<&[u8]>) -> Result<Self, DecodeError> {
        let json: Json = json::decode(KIND, data)?;
        let protocols = json.listener_security_protocol_map.as_ref();
        let endpoints = match json.version {
            ..1 => return Err(DecodeError::new(KIND, format!("its version is {}", json.version))),
            1 => vec![Endpoint {
                listener_name: SecurityProtocol::Plaintext.name().to_owned(),
                host: json.host.ok_or_else(|| DecodeError::new(KIND, "it has no host"))?,
                port: json.port,
                security_protocol: SecurityProtocol::Plaintext,
            }],
            _ => {
                let endpoints: Option<_> =
                    json.endpoints.iter().map(|text| Endpoint::parse(text, protocols)).collect();
                endpoints.ok_or_else(|| {
                    DecodeError::new(KIND, format!("its endpoints are {:?}", json.endpoints))
                })?
            }
        };
        let timestamp_ms = match json.timestamp {
            JsonValue::String(text) => text.parse().unwrap_or(0),
            number => number.as_i64().unwrap_or(0),
        };
        Ok(Self { endpoints, rack: json.rack, jmx_port: json.jmx_port, timestamp_ms: Millis(timestamp_ms) })
    }
}

impl Endpoint {
    fn text(&self, version: i32) -> String {
        let name = if version >= 4 { self.listener_name.as_str() } else { self.security_protocol.name() };
        if self.host.contains(':') {
            format!("{name}://[{}]:{}", self.host, self.port)
        } else {
            format!("{name}://{}:{}", self.host, self.port)
        }
    }

    /// Reads `NAME://host:port`; without a map the name is that of the security protocol.
    fn parse(text: &str, protocols: Option<&Map<String, JsonValue>>) -> Option<Self> {
        let (listener_name, address) = text.split_once("://")?;
        let (host, port) = address.rsplit_once(':')?;
        let host = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
        let protocol = match protocols {
            Some(map) => map.get(listener_name)?.as_str()?,
            None => listener_name,
        };
        Some(Self {
            listener_name: listener_name.to_owned(),
            host: host.to_owned(),
            port: port.parse().ok()?,
            security_protocol: SecurityProtocol::from_name(protocol)?,
        })
    }
}

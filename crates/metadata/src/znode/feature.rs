//! `/feature`: the finalized features of the cluster (KIP-584), none in ZooKeeper mode.
//!
//! Format 2 is written from `inter.broker.protocol.version` 3.3 on; format 1 has a lower bound for each feature too.
//! Status 0 means that the feature system is off, as below 2.7. The version of the znode is the features' epoch.

use super::{DecodeError, json};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The path.
pub const PATH: &str = "/feature";

const KIND: &str = "feature";

/// The format of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Lower and upper bounds.
    V1,
    /// Upper bounds only.
    V2,
}

/// The levels of a feature that are finalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Levels {
    /// The lowest; format 2 does not keep it.
    pub min: Option<i16>,
    /// The highest.
    pub max: i16,
}

/// The finalized features.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Features {
    /// The format.
    pub format: Format,
    /// Whether the feature system is on.
    pub is_enabled: bool,
    /// The features by name.
    pub features: BTreeMap<String, Levels>,
}

#[derive(Serialize, Deserialize)]
struct Json {
    features: BTreeMap<String, JsonLevels>,
    version: i32,
    status: i32,
}

#[derive(Serialize, Deserialize)]
struct JsonLevels {
    #[serde(skip_serializing_if = "Option::is_none")]
    min_version_level: Option<i16>,
    max_version_level: i16,
}

impl Features {
    /// No features, as a cluster in ZooKeeper mode has them.
    pub fn none(format: Format, is_enabled: bool) -> Self {
        Self { format, is_enabled, features: BTreeMap::new() }
    }

    /// The value of the znode.
    pub fn encode(&self) -> Vec<u8> {
        let levels = |levels: &Levels| JsonLevels {
            min_version_level: levels.min.filter(|_| self.format == Format::V1),
            max_version_level: levels.max,
        };
        json::encode(&Json {
            features: self.features.iter().map(|(name, l)| (name.clone(), levels(l))).collect(),
            version: if self.format == Format::V1 { 1 } else { 2 },
            status: i32::from(self.is_enabled),
        })
    }

    /// Reads formats 1 and 2.
    pub fn decode(data: Option<&[u8]>) -> Result<Self, DecodeError> {
        let json: Json = json::decode(KIND, data)?;
        let format = match json.version {
            1 => Format::V1,
            2 => Format::V2,
            version => return Err(DecodeError::new(KIND, format!("its version is {version}"))),
        };
        let is_enabled = match json.status {
            0 => false,
            1 => true,
            status => return Err(DecodeError::new(KIND, format!("its status is {status}"))),
        };
        let levels = |l: JsonLevels| Levels { min: l.min_version_level, max: l.max_version_level };
        let features = json.features.into_iter().map(|(name, l)| (name, levels(l))).collect();
        Ok(Self { format, is_enabled, features })
    }
}

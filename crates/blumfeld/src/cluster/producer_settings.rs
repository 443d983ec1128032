//! How records are produced: the properties of Kafka's producers that the tools honour.

use std::time::Duration;

use wire::batch::{Compression, CompressionType};

use super::settings::{ClientProperties, invalid};
use crate::error::VerbError;

/// How records are produced.
#[derive(Clone, Debug)]
pub(crate) struct ProducerSettings {
    /// `acks`: 0, 1 or -1.
    pub(crate) acks: i16,
    /// `compression.type`
    pub(crate) compression: Compression,
    /// `batch.size` in bytes: a batch is sent before it grows beyond.
    pub(crate) batch_size: usize,
    /// `max.request.size` in bytes: the most that one record may take.
    pub(crate) max_request_size: usize,
    /// `delivery.timeout.ms`: how long a batch is tried.
    pub(crate) delivery_timeout: Duration,
    /// `enable.idempotence`; has an effect with acks -1 only.
    pub(crate) idempotent: bool,
}

impl ProducerSettings {
    /// Takes what concerns producers.
    ///
    /// # Errors
    /// If a value cannot be used.
    pub(crate) fn take(properties: &mut ClientProperties) -> Result<Self, VerbError> {
        let acks = properties.take("acks").unwrap_or_else(|| "all".to_owned());
        let acks = match acks.trim() {
            "0" => 0,
            "1" => 1,
            "-1" | "all" => -1,
            _ => return Err(invalid("acks", &acks)),
        };
        let codec = properties.take("compression.type").unwrap_or_else(|| "none".to_owned());
        let codec =
            CompressionType::from_name(codec.trim()).ok_or_else(|| invalid("compression.type", &codec))?;
        let idempotent = properties.take("enable.idempotence").unwrap_or_else(|| "true".to_owned());
        Ok(Self {
            acks,
            compression: with_level(codec, properties)?,
            batch_size: properties.take_as("batch.size", 16_384)?,
            max_request_size: properties.take_as("max.request.size", 1_048_576)?,
            delivery_timeout: properties.take_millis("delivery.timeout.ms", Duration::from_secs(120))?,
            idempotent: !idempotent.trim().eq_ignore_ascii_case("false"),
        })
    }
}

/// The codec at its configured level (KIP-390).
fn with_level(codec: CompressionType, properties: &mut ClientProperties) -> Result<Compression, VerbError> {
    let key = match codec {
        CompressionType::Gzip => "compression.gzip.level",
        CompressionType::Lz4 => "compression.lz4.level",
        CompressionType::Zstd => "compression.zstd.level",
        CompressionType::None | CompressionType::Snappy => return Ok(codec.into()),
    };
    let Some(level) = properties.take(key) else { return Ok(codec.into()) };
    let number: i32 = level.trim().parse().map_err(|_| invalid(key, &level))?;
    let (valid, compression) = match codec {
        CompressionType::Gzip => {
            (number == -1 || (1..=9).contains(&number), Compression::Gzip { level: number })
        }
        CompressionType::Lz4 => ((1..=17).contains(&number), Compression::Lz4 { level: number }),
        _ => ((-131_072..=22).contains(&number), Compression::Zstd { level: number }),
    };
    if valid { Ok(compression) } else { Err(invalid(key, &level)) }
}

//! The settings of the producer: its properties, and the options that stand for some of them.

use std::time::Duration;

use super::ConsoleProducerOptions;
use crate::cluster::producer::ProducerSettings;
use crate::cluster::settings::ClientSettings;
use crate::error::VerbError;

/// All settings of the verb.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// How the cluster is talked to.
    pub(super) client: ClientSettings,
    /// How records are produced.
    pub(super) producer: ProducerSettings,
    /// How long records are gathered before they are sent.
    pub(super) linger: Duration,
    /// How long the topic is waited for.
    pub(super) max_block: Duration,
}

impl Settings {
    /// Reads file, properties and options; a property wins over the option that stands for it, as with Kafka.
    ///
    /// # Errors
    /// If a value cannot be used.
    pub(super) fn read(options: &ConsoleProducerOptions) -> Result<Self, VerbError> {
        let mut properties = options.connect.properties(&options.producer_property)?;
        for (key, option) in [
            ("compression.type", &options.compression_codec),
            ("acks", &options.request_required_acks),
            ("batch.size", &options.batch_size),
            ("linger.ms", &options.timeout),
            ("request.timeout.ms", &options.request_timeout_ms),
            ("max.block.ms", &options.max_block_ms),
            ("retry.backoff.ms", &options.retry_backoff_ms),
        ] {
            if let Some(value) = option {
                properties.set_default(key, value);
            }
        }
        let client = ClientSettings::take(&mut properties, "console-producer")?;
        let linger = properties.take_millis("linger.ms", Duration::from_millis(5))?;
        let settings = Self {
            producer: ProducerSettings::take(&mut properties)?,
            linger: if options.sync { Duration::ZERO } else { linger },
            max_block: properties.take_millis("max.block.ms", Duration::from_secs(60))?,
            client,
        };
        properties.warn_rest();
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use wire::batch::{Compression, CompressionType};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: ConsoleProducerOptions,
    }

    fn settings(line: &str) -> Result<Settings, VerbError> {
        let words = ["producer", "--topic", "t"].into_iter().chain(line.split_whitespace());
        Settings::read(&Line::try_parse_from(words).unwrap().options)
    }

    #[test]
    fn defaults_are_those_of_a_java_producer_but_for_a_short_linger() {
        let settings = settings("").unwrap();
        assert_eq!(settings.linger, Duration::from_millis(5));
        assert_eq!(settings.max_block, Duration::from_secs(60));
        assert_eq!(settings.client.client_id, "console-producer");
        let producer = settings.producer;
        assert_eq!((producer.acks, producer.batch_size, producer.max_request_size), (-1, 16_384, 1_048_576));
        assert_eq!((producer.compression, producer.idempotent), (Compression::None, true));
    }

    #[test]
    fn options_stand_for_properties_and_properties_win() {
        let settings = settings(
            "--compression-codec zstd --producer-property compression.zstd.level=7 --request-required-acks -1 \
             --producer-property acks=1 --timeout 20 --batch-size 100",
        );
        let settings = settings.unwrap();
        assert_eq!(settings.producer.compression, Compression::Zstd { level: 7 });
        assert_eq!((settings.producer.acks, settings.producer.batch_size), (1, 100));
        assert_eq!(settings.linger, Duration::from_millis(20));
    }

    #[test]
    fn a_codec_without_a_name_is_gzip_and_sync_does_not_linger() {
        let settings = settings("--sync --compression-codec").unwrap();
        assert_eq!(settings.producer.compression.codec(), CompressionType::Gzip);
        assert_eq!(settings.linger, Duration::ZERO);
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        for line in [
            "--compression-codec rar",
            "--request-required-acks 2",
            "--batch-size x",
            "--timeout -1",
            "--producer-property compression.type=gzip --producer-property compression.gzip.level=0",
        ] {
            let line = line.replace("--timeout -1", "--producer-property linger.ms=-1");
            assert!(matches!(settings(&line), Err(VerbError::Usage(_))), "{line}");
        }
    }
}

//! The settings of one partition log, with Kafka's names and defaults. Built from the topic's configs over the
//! broker's; a running log takes a new one whole.

use wire::batch::validate::{self, AppendOrigin, ProduceRules};
use wire::batch::{Compression, CompressionType, Limits, TimestampType};
use wire::types::Millis;

/// `compression.type`: what the leader does with the codec of a producer's batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TopicCompression {
    /// `producer`: batches stay as the producer compressed them.
    #[default]
    Producer,
    /// Batches are stored with this codec; `uncompressed` is [`CompressionType::None`].
    Codec(CompressionType),
}

impl TopicCompression {
    /// The setting named by a value of `compression.type`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "producer" => Self::Producer,
            "uncompressed" => Self::Codec(CompressionType::None),
            "gzip" => Self::Codec(CompressionType::Gzip),
            "snappy" => Self::Codec(CompressionType::Snappy),
            "lz4" => Self::Codec(CompressionType::Lz4),
            "zstd" => Self::Codec(CompressionType::Zstd),
            _ => return None,
        })
    }

    /// The value of `compression.type` that names this setting.
    pub fn name(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Codec(CompressionType::None) => "uncompressed",
            Self::Codec(CompressionType::Gzip) => "gzip",
            Self::Codec(CompressionType::Snappy) => "snappy",
            Self::Codec(CompressionType::Lz4) => "lz4",
            Self::Codec(CompressionType::Zstd) => "zstd",
        }
    }
}

/// The settings of one log. Field names are Kafka's topic config keys, with their units.
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment is rolled before it would grow beyond this.
    pub segment_bytes: u32,
    /// `segment.ms`: a segment is rolled when its records span more than this.
    pub segment_ms: Millis,
    /// `segment.jitter.ms`: at most this is taken off `segment_ms`, at random for each segment.
    pub segment_jitter_ms: Millis,
    /// `segment.index.bytes`: the size to which the index files of the active segment are extended.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`: at least this many bytes lie between two index entries.
    pub index_interval_bytes: u32,
    /// `flush.messages`: the log is flushed when this many records are not.
    pub flush_messages: i64,
    /// `flush.ms`: the log is flushed when its oldest unflushed record is older than this.
    pub flush_ms: Millis,
    /// `retention.bytes`: old segments go while the rest still has this size; -1 for no limit.
    pub retention_bytes: i64,
    /// `retention.ms`: segments go when their newest record is older than this; -1 for no limit.
    pub retention_ms: Millis,
    /// `delete.retention.ms`: how long tombstones and markers stay in a compacted log.
    pub delete_retention_ms: Millis,
    /// `file.delete.delay.ms`: how long removed segments stay on disk under another name.
    pub file_delete_delay_ms: Millis,
    /// `cleanup.policy` contains `delete`.
    pub cleanup_delete: bool,
    /// `cleanup.policy` contains `compact`.
    pub cleanup_compact: bool,
    /// `min.cleanable.dirty.ratio`, from 0 to 1.
    pub min_cleanable_dirty_ratio: f64,
    /// `min.compaction.lag.ms`: records stay uncompacted for at least this long.
    pub min_compaction_lag_ms: Millis,
    /// `max.compaction.lag.ms`: records are compacted at the latest after this.
    pub max_compaction_lag_ms: Millis,
    /// `compression.type`.
    pub compression_type: TopicCompression,
    /// `compression.gzip.level`; -1 for the codec's default.
    pub compression_gzip_level: i32,
    /// `compression.lz4.level`.
    pub compression_lz4_level: i32,
    /// `compression.zstd.level`.
    pub compression_zstd_level: i32,
    /// `max.message.bytes`: the largest batch a leader accepts, the 12 bytes before its length included.
    pub max_message_bytes: i32,
    /// `message.timestamp.type`.
    pub message_timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how far back a producer's timestamp may lie.
    pub message_timestamp_before_max_ms: Millis,
    /// `message.timestamp.after.max.ms`: how far ahead a producer's timestamp may lie.
    pub message_timestamp_after_max_ms: Millis,
    /// `message.downconversion.enable`.
    pub message_downconversion_enable: bool,
    /// `min.insync.replicas`.
    pub min_insync_replicas: i32,
    /// `unclean.leader.election.enable`.
    pub unclean_leader_election_enable: bool,
    /// `preallocate`: new segments are extended to `segment_bytes` at once.
    pub preallocate: bool,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: Millis(604_800_000),
            segment_jitter_ms: Millis(0),
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            flush_messages: i64::MAX,
            flush_ms: Millis(i64::MAX),
            retention_bytes: -1,
            retention_ms: Millis(604_800_000),
            delete_retention_ms: Millis(86_400_000),
            file_delete_delay_ms: Millis(60_000),
            cleanup_delete: true,
            cleanup_compact: false,
            min_cleanable_dirty_ratio: 0.5,
            min_compaction_lag_ms: Millis(0),
            max_compaction_lag_ms: Millis(i64::MAX),
            compression_type: TopicCompression::Producer,
            compression_gzip_level: -1,
            compression_lz4_level: 9,
            compression_zstd_level: 3,
            max_message_bytes: 1_048_588,
            message_timestamp_type: TimestampType::CreateTime,
            message_timestamp_before_max_ms: Millis(i64::MAX),
            message_timestamp_after_max_ms: Millis(i64::MAX),
            message_downconversion_enable: true,
            min_insync_replicas: 1,
            unclean_leader_election_enable: false,
            preallocate: false,
        }
    }
}

impl LogConfig {
    /// How long a segment may take records: `segment_ms`, but a compacted log must not hold records back from
    /// the cleaner for longer than `max_compaction_lag_ms`.
    pub fn roll_after(&self) -> Millis {
        if self.cleanup_compact { self.segment_ms.min(self.max_compaction_lag_ms) } else { self.segment_ms }
    }

    /// What a leader checks and changes in a batch before it appends it.
    pub fn produce_rules(&self, origin: AppendOrigin) -> ProduceRules {
        ProduceRules {
            origin,
            compression: self.produce_compression(),
            zstd_allowed: true,
            timestamp_type: self.message_timestamp_type,
            timestamp_before_max_ms: self.message_timestamp_before_max_ms.0,
            timestamp_after_max_ms: self.message_timestamp_after_max_ms.0,
            compacted: self.cleanup_compact,
            max_message_bytes: self.max_message_bytes(),
            limits: Limits::default(),
        }
    }

    /// `max.message.bytes` as a size.
    pub fn max_message_bytes(&self) -> usize {
        usize::try_from(self.max_message_bytes).unwrap_or(0)
    }

    fn produce_compression(&self) -> validate::TopicCompression {
        let TopicCompression::Codec(codec) = self.compression_type else {
            return validate::TopicCompression::Producer;
        };
        validate::TopicCompression::Fixed(match codec {
            CompressionType::None => Compression::None,
            CompressionType::Gzip => Compression::Gzip { level: self.compression_gzip_level },
            CompressionType::Snappy => Compression::Snappy,
            CompressionType::Lz4 => Compression::Lz4 { level: self.compression_lz4_level },
            CompressionType::Zstd => Compression::Zstd { level: self.compression_zstd_level },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_compression_type_is_read_back() {
        for name in ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"] {
            assert_eq!(TopicCompression::from_name(name).map(TopicCompression::name), Some(name));
        }
        assert_eq!(TopicCompression::from_name("none"), None);
    }

    #[test]
    fn a_fixed_codec_is_used_at_the_level_of_the_topic() {
        let mut config = LogConfig { compression_zstd_level: 7, ..LogConfig::default() };
        let compression = |config: &LogConfig| config.produce_rules(AppendOrigin::Client).compression;
        assert_eq!(compression(&config), validate::TopicCompression::Producer);
        config.compression_type = TopicCompression::Codec(CompressionType::Zstd);
        let expected = validate::TopicCompression::Fixed(Compression::Zstd { level: 7 });
        assert_eq!(compression(&config), expected);
    }

    #[test]
    fn a_compacted_log_rolls_by_the_compaction_lag_if_that_is_shorter() {
        let mut config = LogConfig { max_compaction_lag_ms: Millis(5), ..LogConfig::default() };
        assert_eq!(config.roll_after(), Millis(604_800_000));
        config.cleanup_compact = true;
        assert_eq!(config.roll_after(), Millis(5));
    }
}

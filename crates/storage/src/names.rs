//! The names of files and directories in a log directory, to write and to read.
//!
//! A partition lives in `<topic>-<partition>`; while it is moved in or waits for deletion the name carries a
//! unique id and a suffix. Files of a segment carry its base offset in 20 digits.

use std::fmt;

use wire::types::{Offset, TopicPartition};

/// Held locked while a broker uses the directory.
pub const LOCK: &str = ".lock";
/// Says that the broker closed all logs of the directory in order.
pub const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
/// Broker id and cluster id of the directory.
pub const META_PROPERTIES: &str = "meta.properties";
/// The recovery point of each partition.
pub const RECOVERY_POINT_CHECKPOINT: &str = "recovery-point-offset-checkpoint";
/// The log start offset of each partition whose first segment begins below it.
pub const LOG_START_CHECKPOINT: &str = "log-start-offset-checkpoint";
/// The high watermark of each partition.
pub const HIGH_WATERMARK_CHECKPOINT: &str = "replication-offset-checkpoint";
/// The first dirty offset of each compacted partition.
pub const CLEANER_CHECKPOINT: &str = "cleaner-offset-checkpoint";
/// In a partition's directory: its leader epochs.
pub const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";
/// In a partition's directory: its topic id.
pub const PARTITION_METADATA: &str = "partition.metadata";

/// The longest name that a file system takes, in bytes.
pub const MAX_NAME_LEN: usize = 255;

/// What a partition's directory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DirKind {
    /// The replica of this broker.
    Current,
    /// A replica being moved in from another log directory (KIP-113).
    Future,
    /// A replica that waits for its deletion.
    Delete,
    /// A replica set aside because the cluster does not know it.
    Stray,
}

impl DirKind {
    fn suffix(self) -> &'static str {
        match self {
            Self::Current => "",
            Self::Future => "-future",
            Self::Delete => "-delete",
            Self::Stray => "-stray",
        }
    }
}

/// The name of a partition's directory, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionDir {
    /// The partition. Of a [`DirKind::Delete`] or [`DirKind::Stray`] directory the topic may be cut short.
    pub partition: TopicPartition,
    /// What the directory is for.
    pub kind: DirKind,
}

/// A directory in a log directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirName {
    /// A partition's directory.
    Partition(PartitionDir),
    /// Kafka's cache of remote indexes; passed over.
    RemoteIndexCache,
    /// Not of a broker's making (`lost+found`, hidden directories); passed over with a warning.
    Foreign,
}

/// A directory whose name no broker gives: the log directory is not what the operator thinks it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "directory {name:?} is not of the form <topic>-<partition>; move it out of the log directory if it does not belong there"
)]
pub struct BadDirName {
    /// The name.
    pub name: String,
}

/// Reads the name of a directory in a log directory.
pub fn parse_dir(name: &str) -> Result<DirName, BadDirName> {
    if name == "remote-log-index-cache" {
        return Ok(DirName::RemoteIndexCache);
    }
    if name == "lost+found" || name.starts_with('.') {
        return Ok(DirName::Foreign);
    }
    parse_partition_dir(name).map(DirName::Partition).ok_or_else(|| BadDirName { name: name.into() })
}

fn parse_partition_dir(name: &str) -> Option<PartitionDir> {
    for kind in [DirKind::Future, DirKind::Delete, DirKind::Stray] {
        if let Some(rest) = name.strip_suffix(kind.suffix()) {
            let (partition, unique) = rest.rsplit_once('.')?;
            if unique.is_empty() || name.contains(char::is_whitespace) {
                return None;
            }
            return Some(PartitionDir { partition: parse_topic_partition(partition)?, kind });
        }
    }
    Some(PartitionDir { partition: parse_topic_partition(name)?, kind: DirKind::Current })
}

fn parse_topic_partition(name: &str) -> Option<TopicPartition> {
    let (topic, partition) = name.rsplit_once('-')?;
    if topic.is_empty() {
        return None;
    }
    Some(TopicPartition::new(topic, partition.parse().ok()?))
}

/// The name of a current replica's directory: `<topic>-<partition>`.
pub fn current_dir(partition: &TopicPartition) -> String {
    partition.to_string()
}

/// The name of a replica's directory that has the purpose `kind`; `unique` is random.
///
/// Of replicas to be deleted and of stray ones the topic is cut so that the name has at most
/// [`MAX_NAME_LEN`] bytes; the name of a future replica is never cut, and the caller refuses it when it is
/// too long. For [`DirKind::Current`] the unique id plays no role.
pub fn dir_of_kind(partition: &TopicPartition, kind: DirKind, unique: u128) -> String {
    if kind == DirKind::Current {
        return current_dir(partition);
    }
    let topic = partition.topic.as_str();
    let tail = format!("-{}.{unique:032x}{}", partition.partition, kind.suffix());
    let room = MAX_NAME_LEN.saturating_sub(tail.len());
    let topic = match kind {
        DirKind::Delete | DirKind::Stray => topic.get(..topic.len().min(room)).unwrap_or(topic),
        _ => topic,
    };
    format!("{topic}{tail}")
}

/// The kinds of files that belong to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentFile {
    /// The batches.
    Log,
    /// Offsets to positions.
    OffsetIndex,
    /// Timestamps to offsets.
    TimeIndex,
    /// Aborted transactions.
    TxnIndex,
    /// Producer state up to (exclusive) the offset in the name.
    Snapshot,
}

impl SegmentFile {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Log, Self::OffsetIndex, Self::TimeIndex, Self::TxnIndex, Self::Snapshot];

    /// The extension, with its dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TxnIndex => ".txnindex",
            Self::Snapshot => ".snapshot",
        }
    }
}

/// A state on the way, appended to a file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transient {
    /// Waits for its removal.
    Deleted,
    /// Written by compaction or a split, not complete yet.
    Cleaned,
    /// Complete, and to replace the segments in its range.
    Swap,
}

impl Transient {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Deleted, Self::Cleaned, Self::Swap];

    /// The suffix, with its dot.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Deleted => ".deleted",
            Self::Cleaned => ".cleaned",
            Self::Swap => ".swap",
        }
    }
}

/// The name of a file of a segment, in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentFileName {
    /// The base offset of the segment; of a snapshot the offset up to which it is true.
    pub offset: Offset,
    /// The kind of file.
    pub file: SegmentFile,
    /// The state on the way, if any.
    pub transient: Option<Transient>,
}

impl SegmentFileName {
    /// The name of a file that is in no transient state.
    pub fn new(offset: Offset, file: SegmentFile) -> Self {
        Self { offset, file, transient: None }
    }

    /// Reads a name; `None` if it is not that of a segment's file.
    pub fn parse(name: &str) -> Option<Self> {
        let mut rest = name;
        let mut transient = None;
        for state in Transient::ALL {
            if let Some(stem) = name.strip_suffix(state.suffix()) {
                (rest, transient) = (stem, Some(state));
            }
        }
        let (digits, _) = rest.split_once('.')?;
        let extension = rest.get(digits.len()..)?;
        let file = SegmentFile::ALL.into_iter().find(|file| file.extension() == extension)?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Self { offset: Offset(digits.parse().ok()?), file, transient })
    }
}

impl fmt::Display for SegmentFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transient = self.transient.map_or("", Transient::suffix);
        write!(f, "{:020}{}{transient}", self.offset.0, self.file.extension())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn partition(name: &str) -> Option<(String, i32, DirKind)> {
        match parse_dir(name) {
            Ok(DirName::Partition(dir)) => {
                Some((dir.partition.topic.to_string(), dir.partition.partition, dir.kind))
            }
            _ => None,
        }
    }

    #[test]
    fn a_directory_is_split_at_its_last_dash() {
        assert_eq!(partition("orders-7"), Some(("orders".into(), 7, DirKind::Current)));
        assert_eq!(partition("a-b-c-12"), Some(("a-b-c".into(), 12, DirKind::Current)));
        assert_eq!(partition("with.dots-0"), Some(("with.dots".into(), 0, DirKind::Current)));
        assert_eq!(partition("x-delete-3"), Some(("x-delete".into(), 3, DirKind::Current)));
    }

    /// KAFKA-5232.
    #[test]
    fn a_directory_with_a_suffix_loses_its_unique_id_first() {
        let name = "gone.x-0.497d0efabcce4fe79b9bf001fff5d3c3-delete";
        assert_eq!(partition(name), Some(("gone.x".into(), 0, DirKind::Delete)));
        assert_eq!(partition("m-1.ab-future"), Some(("m".into(), 1, DirKind::Future)));
        assert_eq!(partition("m-1.ab-stray"), Some(("m".into(), 1, DirKind::Stray)));
    }

    #[test]
    fn names_that_no_broker_gives_are_refused() {
        for name in ["", "topic", "-3", "topic-", "topic-x", "a-0-delete", "a-0.-delete", "a 0.x-delete"] {
            assert_eq!(parse_dir(name), Err(BadDirName { name: name.into() }), "{name}");
        }
        assert_eq!(partition("a b-0.x-future"), None);
        assert_eq!(partition("t-99999999999"), None);
    }

    #[test]
    fn foreign_directories_and_the_remote_cache_are_told_apart() {
        assert_eq!(parse_dir("lost+found"), Ok(DirName::Foreign));
        assert_eq!(parse_dir(".snapshots-0"), Ok(DirName::Foreign));
        assert_eq!(parse_dir("remote-log-index-cache"), Ok(DirName::RemoteIndexCache));
    }

    #[test]
    fn the_name_of_a_directory_to_delete_has_at_most_255_bytes_and_that_of_a_future_one_is_whole() {
        let long = TopicPartition::new("t".repeat(249).as_str(), 12);
        let name = dir_of_kind(&long, DirKind::Delete, 0x497d_0efa_bcce_4fe7_9b9b_f001_fff5_d3c3);
        assert_eq!(name.len(), 255);
        assert!(name.ends_with("t-12.497d0efabcce4fe79b9bf001fff5d3c3-delete"));
        assert!(dir_of_kind(&long, DirKind::Future, 1).len() > MAX_NAME_LEN);
        let short = TopicPartition::new("t", 0);
        assert_eq!(dir_of_kind(&short, DirKind::Future, 1), "t-0.00000000000000000000000000000001-future");
        assert_eq!(dir_of_kind(&short, DirKind::Current, 1), "t-0");
    }

    #[test]
    fn a_segments_file_carries_its_offset_in_twenty_digits() {
        let name = SegmentFileName::new(Offset(42), SegmentFile::TimeIndex);
        assert_eq!(name.to_string(), "00000000000000000042.timeindex");
        let swap = SegmentFileName { transient: Some(Transient::Swap), ..name };
        assert_eq!(swap.to_string(), "00000000000000000042.timeindex.swap");
        let largest = SegmentFileName::new(Offset(i64::MAX), SegmentFile::Log).to_string();
        assert_eq!(SegmentFileName::parse(&largest).unwrap().offset.0, i64::MAX);
        for foreign in [
            "leader-epoch-checkpoint",
            "1.logs",
            ".log",
            "x1.log",
            "-1.log",
            "+1.log",
            "99999999999999999999.log",
        ] {
            assert_eq!(SegmentFileName::parse(foreign), None, "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn every_directory_name_reads_back(
            topic in "[a-zA-Z0-9._-]{1,40}", number in 0..10_000i32, unique: u128, kind in 0usize..4,
        ) {
            let kind = [DirKind::Current, DirKind::Future, DirKind::Delete, DirKind::Stray][kind];
            prop_assume!(!topic.starts_with('.') && topic != "remote-log-index-cache");
            let partition = TopicPartition::new(topic.as_str(), number);
            let name = dir_of_kind(&partition, kind, unique);
            prop_assert_eq!(parse_dir(&name), Ok(DirName::Partition(PartitionDir { partition, kind })));
        }

        #[test]
        fn every_file_name_reads_back(offset in 0..=i64::MAX, file in 0usize..5, transient in 0usize..4) {
            let name = SegmentFileName {
                offset: Offset(offset),
                file: SegmentFile::ALL[file],
                transient: Transient::ALL.get(transient).copied(),
            };
            prop_assert_eq!(SegmentFileName::parse(&name.to_string()), Some(name));
        }

        #[test]
        fn any_text_is_read_without_panic(text in "\\PC{0,60}") {
            let _ = parse_dir(&text);
            let _ = SegmentFileName::parse(&text);
        }
    }
}

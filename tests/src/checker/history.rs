//! What was tried and what was seen, partition by partition.

use std::collections::BTreeMap;
use std::fmt;

/// A partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// The topic.
    pub topic: String,
    /// The index.
    pub index: i32,
}

impl Partition {
    /// The partition `index` of `topic`.
    #[must_use]
    pub fn new(topic: &str, index: i32) -> Self {
        Self { topic: topic.to_owned(), index }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.index)
    }
}

/// Names a record for ever: the `number`-th that a producer wrote, or tried to, into one partition. A producer
/// that begins anew with another producer id is another producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId {
    /// The producer's number in the run.
    pub producer: u32,
    /// Counted from 0 in the order of sequence numbers.
    pub number: u64,
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} of producer {}", self.number, self.producer)
    }
}

/// How the writing of a batch ended, over all its tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// No answer, or an error: it may be in the log or not.
    Unknown,
    /// Acknowledged. The offset of its first record, if the answer told it (a duplicate's does not).
    Acknowledged(Option<i64>),
}

/// A batch that a producer tried to write, as often as it liked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its first record; the others follow without gaps.
    pub first: RecordId,
    /// What each record consists of.
    pub digests: Vec<u32>,
    /// How it ended.
    pub outcome: Outcome,
}

/// A record that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRecord {
    /// Where it stood.
    pub offset: i64,
    /// Which it was.
    pub id: RecordId,
    /// What it consisted of.
    pub digest: u32,
}

/// What one reader read, in the order of reading. A reader sees what is below the high watermark only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Who read.
    pub reader: String,
    /// What.
    pub records: Vec<ReadRecord>,
    /// Whether this is everything that was in the partition after the last write had ended.
    pub is_final: bool,
}

/// The latest offsets that were told to one who asked for them, each after the answer before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latest {
    /// Who asked.
    pub asker: String,
    /// What was told.
    pub offsets: Vec<i64>,
}

/// What happened to one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionHistory {
    /// The batches of all producers; those of one producer in the order of its sequence numbers.
    pub attempts: Vec<Attempt>,
    /// All reads; at least one is final.
    pub reads: Vec<Read>,
    /// What was told of the end of the partition.
    pub latest: Vec<Latest>,
}

/// A run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// All partitions that were written or read.
    pub partitions: BTreeMap<Partition, PartitionHistory>,
}

impl History {
    /// What happened to a partition, for more to be noted.
    pub fn partition(&mut self, partition: &Partition) -> &mut PartitionHistory {
        self.partitions.entry(partition.clone()).or_default()
    }

    /// Adds what another part of the run noted.
    pub fn merge(&mut self, other: Self) {
        for (partition, noted) in other.partitions {
            let mine = self.partitions.entry(partition).or_default();
            mine.attempts.extend(noted.attempts);
            mine.reads.extend(noted.reads);
            mine.latest.extend(noted.latest);
        }
    }

    /// How many different latest offsets were told.
    #[must_use]
    pub fn ends_told(&self) -> usize {
        let told = self.partitions.values().flat_map(|partition| &partition.latest);
        told.map(|latest| latest.offsets.len()).sum()
    }

    /// How many records were acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        let attempts = self.partitions.values().flat_map(|partition| &partition.attempts);
        let acknowledged = attempts.filter(|attempt| matches!(attempt.outcome, Outcome::Acknowledged(_)));
        acknowledged.map(|attempt| attempt.digests.len()).sum()
    }
}

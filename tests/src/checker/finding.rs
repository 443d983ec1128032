//! What a judgement may find, each in one line that names partition, record and offset.

use std::fmt;

use super::history::{Partition, ReadRecord, RecordId};

/// Something that a log may never do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Nobody read the whole partition at the end, so nothing can be judged.
    Unread,
    /// Acknowledged, and not there at the end.
    Lost {
        /// The record.
        id: RecordId,
        /// Where it was acknowledged, if that was told.
        offset: Option<i64>,
    },
    /// Acknowledged at one offset, and at another at the end.
    Moved {
        /// The record.
        id: RecordId,
        /// Where it was acknowledged.
        acknowledged: i64,
        /// Where it is.
        found: i64,
    },
    /// There twice.
    Duplicated {
        /// The record.
        id: RecordId,
        /// Where it is first.
        first: i64,
        /// Where it is again.
        again: i64,
    },
    /// Behind a record that was written after it.
    Reordered {
        /// The record.
        id: RecordId,
        /// The later one that is before it.
        behind: RecordId,
        /// Where the record is.
        offset: i64,
    },
    /// Not there, though a later record of the same producer is (sequence numbers have no gaps).
    Skipped {
        /// The record.
        id: RecordId,
        /// The later one.
        later: RecordId,
    },
    /// Another content than was written.
    Changed {
        /// Who read it.
        reader: String,
        /// What was read.
        read: ReadRecord,
    },
    /// There, and nobody wrote it.
    Invented {
        /// Who read it.
        reader: String,
        /// What was read.
        read: ReadRecord,
    },
    /// Read before, and another record or none is there at the end.
    TakenBack {
        /// Who read it.
        reader: String,
        /// What was read.
        read: ReadRecord,
        /// What is there at the end.
        now: Option<ReadRecord>,
    },
    /// The latest offset lies below what was told before (KIP-207).
    Fallen {
        /// Who asked.
        asker: String,
        /// What was told before.
        before: i64,
        /// What was told after it, or the end of what there is to read at the end.
        now: i64,
    },
    /// A reader was given an offset that does not follow the one before.
    Gap {
        /// Who read.
        reader: String,
        /// The offset before.
        before: i64,
        /// The offset that came.
        offset: i64,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread => f.write_str("no final read"),
            Self::Lost { id, offset: Some(offset) } => write!(f, "lost: {id}, acknowledged at {offset}"),
            Self::Lost { id, offset: None } => write!(f, "lost: {id}, acknowledged"),
            Self::Moved { id, acknowledged, found } => {
                write!(f, "moved: {id}, acknowledged at {acknowledged}, is at {found}")
            }
            Self::Duplicated { id, first, again } => write!(f, "duplicated: {id} at {first} and {again}"),
            Self::Reordered { id, behind, offset } => {
                write!(f, "reordered: {id} at {offset}, behind {behind}")
            }
            Self::Skipped { id, later } => write!(f, "skipped: {id} is missing, {later} is there"),
            Self::Changed { reader, read } => {
                write!(f, "changed: {} at {}, as {reader} read it", read.id, read.offset)
            }
            Self::Invented { reader, read } => {
                write!(f, "invented: {} at {}, as {reader} read it", read.id, read.offset)
            }
            Self::TakenBack { reader, read, now } => {
                write!(f, "taken back: {} at {}, as {reader} read it; now there is ", read.id, read.offset)?;
                match now {
                    Some(now) if now.id == read.id => f.write_str("the same record with another content"),
                    Some(now) => write!(f, "{}", now.id),
                    None => f.write_str("nothing"),
                }
            }
            Self::Fallen { asker, before, now } => {
                write!(f, "fallen: {asker} was told the latest offset {before}, then {now}")
            }
            Self::Gap { reader, before, offset } => {
                write!(f, "gap: {reader} was given offset {offset} after {before}")
            }
        }
    }
}

/// Everything that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings(pub Vec<(Partition, Finding)>);

/// Lines that are shown.
const SHOWN: usize = 30;

impl Findings {
    /// Whether the run was right.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fails with all findings when there are any.
    ///
    /// # Errors
    /// When the run was wrong.
    pub fn into_result(self) -> anyhow::Result<()> {
        if self.is_empty() { Ok(()) } else { Err(anyhow::anyhow!("{self}")) }
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} findings", self.0.len())?;
        for (partition, finding) in self.0.iter().take(SHOWN) {
            writeln!(f, "{partition}: {finding}")?;
        }
        Ok(())
    }
}

//! Loss that a load finds: a log that ends below the high watermark of its checkpoint has lost records that had been
//! replicated. Nothing is refused for it, since the other replicas may have them; but it is told.

use std::fmt;

use wire::types::Offset;

use super::PartitionLog;

/// How a log came back shorter than it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The high watermark of the checkpoint: what lay below had been replicated.
    pub high_watermark: Offset,
    /// The log end that was found (exclusive), below the high watermark.
    pub log_end: Offset,
    /// Why.
    pub cause: LossCause,
}

/// Why a log came back shorter than it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// The log directory was not closed in order: what had not been synced is gone, or what was on the disk is damaged.
    NotClosed,
    /// The log directory was closed in order: files were changed or removed since.
    Changed,
    /// The directory of the partition is gone, and the log was begun anew.
    Gone,
}

impl Loss {
    /// The loss of a log that ends at `log_end`, if it is one.
    pub(super) fn of(high_watermark: Offset, log_end: Offset, clean: bool) -> Option<Self> {
        let cause = if clean { LossCause::Changed } else { LossCause::NotClosed };
        (log_end < high_watermark).then_some(Self { high_watermark, log_end, cause })
    }

    /// How many offsets are lost at least; a follower fetches them from its leader again.
    pub fn records(&self) -> u64 {
        u64::try_from(self.high_watermark.0.saturating_sub(self.log_end.0)).unwrap_or(0)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { high_watermark, log_end, cause } = self;
        write!(f, "came back ending at {log_end}, below its high watermark {high_watermark}: {cause}")
    }
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotClosed => "it had not been closed, and what was not synced is gone or damaged",
            Self::Changed => "it had been closed in order, so its files were changed or removed since",
            Self::Gone => "its directory was removed",
        })
    }
}

impl PartitionLog {
    /// What the log had lost when it was opened, or begun anew.
    pub fn loss(&self) -> Option<Loss> {
        self.loss.get().copied()
    }

    /// The log stands in the place of one whose directory is gone, and which had this high watermark.
    pub(crate) fn replaces_one_that_is_gone(&self, high_watermark: Offset) {
        let log_end = self.positions().log_end;
        if log_end < high_watermark {
            self.loss.get_or_init(|| Loss { high_watermark, log_end, cause: LossCause::Gone });
        }
    }
}

//! The leader epochs of a log when it is loaded: from their file, or else from the batches.

use std::io;
use std::sync::Arc;

use kernel::epochs::EpochHistory;
use wire::types::Offset;

use crate::disk::atomic::read_file;
use crate::epoch_checkpoint::parse_epochs;
use crate::names::LEADER_EPOCH_CHECKPOINT;
use crate::segment::{ScanError, Segment, SegmentDir, SegmentError};

/// A longer file is not one of epochs: it holds millions of them.
const MAX_FILE_LEN: u64 = 128 << 20;

/// Reads the file; `None` if it is torn or malformed. A file whose last line has no end was torn: its last
/// number may lack digits. So was one whose epochs or offsets do not rise: nobody writes such a file.
pub(super) fn read(dir: &SegmentDir) -> io::Result<Option<EpochHistory>> {
    let path = dir.path.get().join(LEADER_EPOCH_CHECKPOINT);
    let bytes = match read_file(&**dir.files.disk(), &path, MAX_FILE_LEN) {
        Ok(None) => return Ok(Some(EpochHistory::new())),
        Ok(Some(bytes)) => bytes,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(None),
        Err(error) => return Err(error),
    };
    match parse_epochs(&bytes) {
        Ok(entries) if bytes.is_empty() || bytes.ends_with(b"\n") => {
            let history = EpochHistory::from_entries(entries.iter().copied());
            Ok(Some(history).filter(|it| it.entries() == entries))
        }
        Ok(_) => Ok(None),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "leader epochs cannot be read from their file");
            Ok(None)
        }
    }
}

/// Puts the epochs of the batches below `end` before those of `history`: they are lost with their file; or they went when the
/// log start was raised, which a crash has taken back.
pub(super) fn with_head(
    segments: &[Arc<Segment>],
    end: Offset,
    history: EpochHistory,
) -> Result<EpochHistory, SegmentError> {
    let mut whole = from_batches(segments, end)?;
    for entry in history.entries() {
        whole.assign(entry.epoch, entry.start);
    }
    Ok(whole)
}

/// Finds the epochs again by the headers of all batches below `end`.
fn from_batches(segments: &[Arc<Segment>], end: Offset) -> Result<EpochHistory, SegmentError> {
    let mut history = EpochHistory::new();
    for segment in segments.iter().take_while(|segment| segment.base() < end) {
        let mut scan = segment.scan_at(0)?;
        loop {
            let batch = match scan.next_batch() {
                Ok(Some(batch)) if batch.header.base_offset < end => batch,
                Ok(_) | Err(ScanError::Corrupt { .. }) => break,
                Err(error) => return Err(SegmentError::Scan { base: segment.base(), error }),
            };
            history.observe(batch.header.partition_leader_epoch, batch.header.base_offset);
        }
    }
    Ok(history)
}

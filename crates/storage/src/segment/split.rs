//! Splitting a segment whose offsets reach further than 2^31-1 beyond its base (KAFKA-6264), which old brokers
//! could write: indexes have 31 bits for an offset, so such a segment cannot be indexed.
//!
//! The log is cut before each batch that does not fit any more, and every part becomes a segment, byte for byte.
//! The first part keeps the base offset (its log may be empty then), so that the parts stand for the whole range
//! of the old segment and the log start stays. Parts are written as `.cleaned` and become `.swap` from the last
//! to the first: from the moment when the first is `.swap` they count, and the next load of the log puts them in
//! place and builds their indexes. Before that moment the old segment counts.

use std::ops::Range;

use wire::batch::BatchHeader;
use wire::types::Offset;

use super::{Segment, SegmentError, may_follow};
use crate::disk::OpenOptions;
use crate::names::{SegmentFile, SegmentFileName, Transient};

/// How much is copied at a time, in bytes.
const COPY_BYTES: usize = 1 << 20;

/// A part of a log file that becomes a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    base: Offset,
    bytes: Range<u64>,
}

impl Segment {
    /// Writes the parts of this segment, which nobody may be using, as complete `.swap` files. Returns how many
    /// there are; if a split would not help there are none and nothing is written. Durable when this returns.
    pub fn split(&self) -> Result<usize, SegmentError> {
        let parts = self.parts()?;
        if parts.len() < 2 {
            return Ok(0);
        }
        let (disk, dir) = (self.dir.files.disk().clone(), self.dir.path.get());
        let sync_names = || disk.sync_dir(&dir).map_err(|error| self.io(error));
        for part in &parts {
            self.copy(part)?;
        }
        sync_names()?;
        for (number, part) in parts.iter().enumerate().rev() {
            if number == 0 {
                // A first part that is complete vouches for the others.
                sync_names()?;
            }
            let [from, to] = [Transient::Cleaned, Transient::Swap].map(|state| dir.join(part.name(state)));
            disk.rename(&from, &to).map_err(|error| self.io(error))?;
        }
        sync_names()?;
        Ok(parts.len())
    }

    /// The parts. What follows the last good batch belongs to the last one: its recovery sees to that.
    fn parts(&self) -> Result<Vec<Part>, SegmentError> {
        let mut parts = Vec::new();
        let mut part = Part { base: self.base(), bytes: 0..self.size() };
        let mut last: Option<BatchHeader> = None;
        let mut scan = self.scan_at(0)?;
        while let Some(batch) = self.next_checked(&mut scan)? {
            let header = batch.header;
            if last.is_some_and(|last| !may_follow(&header, &last)) {
                break;
            }
            if !fits(part.base, header.last_offset()) {
                if header.base_offset <= part.base || !fits(header.base_offset, header.last_offset()) {
                    break;
                }
                let next = Part { base: header.base_offset, bytes: batch.position..self.size() };
                part.bytes.end = batch.position;
                parts.push(std::mem::replace(&mut part, next));
            }
            last = Some(header);
        }
        parts.push(part);
        Ok(parts)
    }

    /// Copies a part into a file of its own, with the time of the last change.
    fn copy(&self, part: &Part) -> Result<(), SegmentError> {
        let disk = self.dir.files.disk();
        let path = self.dir.path.get().join(part.name(Transient::Cleaned));
        let copied = || {
            let from = self.log().handle()?;
            let to = disk.open(&path, OpenOptions::REPLACE)?;
            let mut buffer = vec![0; COPY_BYTES];
            let mut at = part.bytes.start;
            while at < part.bytes.end {
                let wanted = usize::try_from(part.bytes.end.saturating_sub(at)).unwrap_or(COPY_BYTES);
                buffer.truncate(wanted);
                from.read_exact_at(&mut buffer, at)?;
                to.write_at(&buffer, at.saturating_sub(part.bytes.start))?;
                at = at.saturating_add(buffer.len() as u64);
            }
            disk.set_modified(&path, disk.metadata(&self.log().path())?.modified_ms)?;
            to.sync_all()
        };
        copied().map_err(|error| self.io(error))
    }
}

impl Part {
    fn name(&self, state: Transient) -> String {
        let transient = Some(state);
        SegmentFileName { offset: self.base, file: SegmentFile::Log, transient }.to_string()
    }
}

/// Whether an index of a segment at `base` can hold `offset`.
pub(super) fn fits(base: Offset, offset: Offset) -> bool {
    let relative = offset.0.checked_sub(base.0);
    relative.is_some_and(|relative| (0..=i64::from(i32::MAX)).contains(&relative))
}

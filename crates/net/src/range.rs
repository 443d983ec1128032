//! What an answer is made of: bytes in memory, and ranges of files that are sent as they lie on disk.

use std::io;
use std::os::fd::BorrowedFd;

/// A range of a file, or of something that can be read like one. Its length never changes.
///
/// Positions given to [`read_at`](Self::read_at) count from the start of the range, not of the file.
#[expect(clippy::len_without_is_empty, reason = "an empty range is as good as any other, nobody asks")]
pub trait RangeSource: Send + 'static {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// Reads up to `buf.len()` bytes from `at`, which is relative to the range's start. A source without a
    /// descriptor is read on a socket's thread, so this must not block for long there.
    ///
    /// # Errors
    /// Whatever the file says; the connection is then closed, since the size of the answer was told already.
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize>;

    /// The descriptor and the position of the range's first byte in it, if it is a real file.
    fn fd(&self) -> Option<(BorrowedFd<'_>, u64)>;
}

/// A range as it travels with an answer.
pub type Range = Box<dyn RangeSource>;

/// One part of an answer.
pub type Part = wire::response::Part<Range>;

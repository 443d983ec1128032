//! The encoding of ZooKeeper's protocol: numbers in network order, and a length before text and bytes.
//!
//! A length of -1 is null, which is not the same as empty. Counts and lengths are checked against the bytes that are
//! there before anything is allocated.

use crate::store::SessionId;
use crate::store::Stat;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bytes that are not what the protocol says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Malformed(pub(super) &'static str);

/// Writes one frame: a length, then the fields.
pub(super) struct FrameWriter(BytesMut);

impl FrameWriter {
    pub(super) fn new() -> Self {
        let mut bytes = BytesMut::with_capacity(256);
        bytes.put_i32(0);
        Self(bytes)
    }

    pub(super) fn int(&mut self, value: i32) {
        self.0.put_i32(value);
    }

    pub(super) fn long(&mut self, value: i64) {
        self.0.put_i64(value);
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.0.put_u8(value.into());
    }

    pub(super) fn text(&mut self, value: &str) {
        self.buffer(Some(value.as_bytes()));
    }

    /// `None` is null. What is longer than a length can tell was refused before it came here.
    pub(super) fn buffer(&mut self, value: Option<&[u8]>) {
        match value {
            None => self.0.put_i32(-1),
            Some(bytes) => {
                self.0.put_i32(length(bytes.len()));
                self.0.put_slice(bytes);
            }
        }
    }

    /// The frame with its length in front.
    pub(super) fn finish(mut self) -> Bytes {
        let length = length(self.0.len().saturating_sub(4));
        if let Some(mut head) = self.0.get_mut(..4) {
            head.put_i32(length);
        }
        self.0.freeze()
    }
}

fn length(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

/// Reads the fields of one frame.
pub(super) struct FrameReader(pub(super) Bytes);

impl FrameReader {
    pub(super) fn int(&mut self) -> Result<i32, Malformed> {
        self.0.try_get_i32().map_err(|_| TOO_SHORT)
    }

    pub(super) fn long(&mut self) -> Result<i64, Malformed> {
        self.0.try_get_i64().map_err(|_| TOO_SHORT)
    }

    pub(super) fn bool(&mut self) -> Result<bool, Malformed> {
        self.0.try_get_u8().map(|byte| byte != 0).map_err(|_| TOO_SHORT)
    }

    /// Bytes of the frame; `None` is null.
    pub(super) fn buffer(&mut self) -> Result<Option<Bytes>, Malformed> {
        let length = self.int()?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| Malformed("a negative length"))?;
        if length > self.0.len() {
            return Err(TOO_SHORT);
        }
        Ok(Some(self.0.split_to(length)))
    }

    pub(super) fn text(&mut self) -> Result<String, Malformed> {
        let bytes = self.buffer()?.unwrap_or_default();
        String::from_utf8(bytes.into()).map_err(|_| Malformed("text that is not UTF-8"))
    }

    pub(super) fn texts(&mut self) -> Result<Vec<String>, Malformed> {
        let count = usize::try_from(self.int()?).unwrap_or(0);
        // Each text has at least a length.
        if count > self.0.len() / 4 {
            return Err(TOO_SHORT);
        }
        (0..count).map(|_| self.text()).collect()
    }

    pub(super) fn stat(&mut self) -> Result<Stat, Malformed> {
        let (czxid, mzxid, ctime_ms, mtime_ms) = (self.long()?, self.long()?, self.long()?, self.long()?);
        let (version, cversion) = (self.int()?, self.int()?);
        let _acl_version = self.int()?;
        let ephemeral_owner = SessionId(self.long()?);
        let (data_length, num_children, pzxid) = (self.int()?, self.int()?, self.long()?);
        Ok(Stat {
            czxid,
            mzxid,
            pzxid,
            ctime_ms,
            mtime_ms,
            version,
            cversion,
            ephemeral_owner,
            data_length,
            num_children,
        })
    }
}

const TOO_SHORT: Malformed = Malformed("a frame that ends early");

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(writer: FrameWriter) -> FrameReader {
        let mut frame = writer.finish();
        let length = frame.get_i32();
        assert_eq!(usize::try_from(length).unwrap(), frame.len());
        FrameReader(frame)
    }

    #[test]
    fn fields_are_read_as_they_were_written() {
        let mut writer = FrameWriter::new();
        writer.int(-7);
        writer.long(1 << 40);
        writer.bool(true);
        writer.text("/ü");
        writer.buffer(None);
        writer.buffer(Some(b""));
        let mut reader = reader(writer);
        assert_eq!((reader.int(), reader.long(), reader.bool()), (Ok(-7), Ok(1 << 40), Ok(true)));
        assert_eq!(reader.text().unwrap(), "/ü");
        assert_eq!((reader.buffer(), reader.buffer()), (Ok(None), Ok(Some(Bytes::new()))));
        assert_eq!(reader.int(), Err(TOO_SHORT));
    }

    #[test]
    fn a_length_or_count_beyond_the_frame_is_refused_before_anything_is_allocated() {
        for hostile in [i32::MAX, 1, -2] {
            let mut writer = FrameWriter::new();
            writer.int(hostile);
            assert!(reader(writer).buffer().is_err(), "{hostile}");
        }
        let mut writer = FrameWriter::new();
        writer.int(i32::MAX);
        assert_eq!(reader(writer).texts(), Err(TOO_SHORT));
    }
}

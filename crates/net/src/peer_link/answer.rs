//! One request out, one answer back, on a connection on which nothing else is under way.
//!
//! An answer lies in one buffer, into which it is read from the socket and in which it is given on. Most
//! answers are small and come whole with the first read; of a larger one the size decides the buffer.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::LinkError;
use crate::frame_reader::{PREFIX_LEN, checked_size};

/// Bytes read before the size of the answer is known.
const FIRST_READ: usize = 4 * 1024;
/// The largest buffer that is made because of a size alone; beyond it, the buffer grows with what arrives.
const CLAIMED: usize = 64 * 1024 * 1024;

/// Sends `frame` behind its size and waits for an answer of at most `limit` bytes.
pub(super) async fn ask(stream: &mut TcpStream, frame: &Bytes, limit: usize) -> Result<Bytes, LinkError> {
    let size = i32::try_from(frame.len()).map_err(io::Error::other)?.to_be_bytes();
    let mut bytes = Buf::chain(&size[..], frame.clone());
    stream.write_all_buf(&mut bytes).await?;
    read(stream, limit).await
}

/// Bytes of a frame with its size prefix.
pub(super) fn with_prefix(frame: usize) -> u64 {
    (frame as u64).saturating_add(PREFIX_LEN as u64)
}

async fn read(stream: &mut TcpStream, limit: usize) -> Result<Bytes, LinkError> {
    let mut buffer = BytesMut::with_capacity(FIRST_READ);
    let size = loop {
        if let Some(prefix) = buffer.first_chunk::<PREFIX_LEN>() {
            break checked_size(i32::from_be_bytes(*prefix), limit)?;
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Err(LinkError::Closed);
        }
    };
    let whole = size.saturating_add(PREFIX_LEN);
    while buffer.len() < whole {
        if buffer.len() == buffer.capacity() || buffer.capacity() < whole.min(CLAIMED) {
            let wanted = whole.min(CLAIMED.max(buffer.len().saturating_mul(2)));
            buffer.reserve(wanted.saturating_sub(buffer.len()));
        }
        let missing = whole.saturating_sub(buffer.len()) as u64;
        if (&mut *stream).take(missing).read_buf(&mut buffer).await? == 0 {
            return Err(LinkError::Closed);
        }
    }
    if buffer.len() > whole {
        return Err(LinkError::Unasked);
    }
    buffer.advance(PREFIX_LEN);
    Ok(buffer.freeze())
}

//! The four codecs of record batches and their framings.
//!
//! Reading is by chunks into scratch memory that each thread keeps, so that a batch is checked without an
//! allocation; whatever a stream claims, no more than the caller's limit is expanded or allocated. Writing is
//! of a whole batch at once, in the framing of Kafka's own producer. Formats: gzip (also several members),
//! snappy (xerial framing, or one bare block), LZ4 frames of independent blocks, zstd.

mod gzip;
mod lz4;
mod scratch;
mod snappy;
#[cfg(test)]
mod tests;
mod xxh32;
mod zstandard;

use super::BatchError;
use super::record::Limits;
pub(super) use scratch::StreamInput;
use scratch::{Budget, ChunkSource, Decoders};

/// A codec of a record batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CompressionType {
    /// Records are not compressed.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard (KIP-110).
    Zstd,
}

impl CompressionType {
    /// All codecs, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The number in a batch's attributes.
    pub fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// The codec of a number.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.get(usize::from(id)).copied()
    }

    /// The name in a producer's `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The codec of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

/// A codec and how hard it works when it writes (KIP-390).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// No compression.
    None,
    /// gzip at `level` 1 to 9, or -1 for the library's own choice.
    Gzip {
        /// `compression.gzip.level`
        level: i32,
    },
    /// Snappy, which has no levels.
    Snappy,
    /// LZ4. Levels 1 to 17 are accepted; all of them compress fast.
    Lz4 {
        /// `compression.lz4.level`
        level: i32,
    },
    /// Zstandard at `level` -131072 to 22.
    Zstd {
        /// `compression.zstd.level`
        level: i32,
    },
}

impl Compression {
    /// The codec.
    pub fn codec(self) -> CompressionType {
        match self {
            Self::None => CompressionType::None,
            Self::Gzip { .. } => CompressionType::Gzip,
            Self::Snappy => CompressionType::Snappy,
            Self::Lz4 { .. } => CompressionType::Lz4,
            Self::Zstd { .. } => CompressionType::Zstd,
        }
    }
}

impl From<CompressionType> for Compression {
    /// The codec at its default level.
    fn from(codec: CompressionType) -> Self {
        match codec {
            CompressionType::None => Self::None,
            CompressionType::Gzip => Self::Gzip { level: gzip::DEFAULT_LEVEL },
            CompressionType::Snappy => Self::Snappy,
            CompressionType::Lz4 => Self::Lz4 { level: lz4::DEFAULT_LEVEL },
            CompressionType::Zstd => Self::Zstd { level: zstandard::DEFAULT_LEVEL },
        }
    }
}

/// A compressed stream that its codec refuses, or data that it cannot write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", .codec.name())]
pub struct CompressError {
    /// The codec.
    pub codec: CompressionType,
    /// What is wrong.
    pub reason: &'static str,
}

/// Compresses the records of one batch, as a producer would.
///
/// # Errors
/// [`CompressError`] if the codec's library fails, as it may when memory is short.
pub fn compress(compression: Compression, records: &[u8]) -> Result<Vec<u8>, CompressError> {
    match compression {
        Compression::None => Ok(records.to_vec()),
        Compression::Gzip { level } => gzip::compress(records, level),
        Compression::Snappy => snappy::compress(records),
        Compression::Lz4 { .. } => lz4::compress(records),
        Compression::Zstd { level } => zstandard::compress(records, level),
    }
}

/// Decompresses the records of one batch.
///
/// # Errors
/// [`BatchError::Compressed`] if the codec refuses the stream; [`BatchError::ExpandsTooFar`] beyond the limit.
pub fn decompress(codec: CompressionType, bytes: &[u8], limits: Limits) -> Result<Vec<u8>, BatchError> {
    if codec == CompressionType::None {
        return Ok(bytes.to_vec());
    }
    with_source(codec, bytes, |source, decoders| {
        let mut budget = Budget::new(limits.max_decompressed_bytes);
        let mut out: Vec<u8> = Vec::new();
        loop {
            let len = source.next_chunk(decoders, &mut budget)?;
            if len == 0 {
                return Ok(out);
            }
            if out.capacity() - out.len() < len {
                let grown = (2 * out.capacity()).min(limits.max_decompressed_bytes);
                out.reserve_exact(len.max(grown.saturating_sub(out.len())));
            }
            out.extend_from_slice(decoders.chunk(len));
        }
    })
}

/// Gives `read` the decompressed bytes as a stream.
///
/// # Errors
/// Whatever `read` reports.
pub(super) fn with_stream<R>(
    codec: CompressionType,
    bytes: &[u8],
    limits: Limits,
    read: impl FnOnce(&mut StreamInput<'_>) -> Result<R, BatchError>,
) -> Result<R, BatchError> {
    with_source(codec, bytes, |source, decoders| {
        read(&mut StreamInput::new(source, decoders, limits.max_decompressed_bytes))
    })
}

fn with_source<R>(
    codec: CompressionType,
    bytes: &[u8],
    run: impl FnOnce(&mut dyn ChunkSource, &mut Decoders) -> Result<R, BatchError>,
) -> Result<R, BatchError> {
    Decoders::lend(|decoders| match codec {
        CompressionType::None => Err(BatchError::UnknownCompression(codec.id())),
        CompressionType::Gzip => run(&mut gzip::Source::new(bytes), decoders),
        CompressionType::Snappy => run(&mut snappy::Source::new(bytes), decoders),
        CompressionType::Lz4 => run(&mut lz4::Source::new(bytes), decoders),
        CompressionType::Zstd => run(&mut zstandard::Source::new(bytes), decoders),
    })
}

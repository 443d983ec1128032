//! Record batches of format v2 (KIP-98): the unit that is produced, stored, replicated and fetched.
//!
//! A batch is bytes. [`BatchHeader`] reads its 61 fixed bytes, [`batches`] splits a run of batches,
//! [`Batch::records`] reads the records for a consumer, [`BatchBuilder`] writes a batch. What a leader does
//! with a producer's batch is in [`validate`]; the markers of transactions are in [`control`]; the four codecs
//! and their framings are in [`compress`].
//! Base offset, length, leader epoch and magic lie outside the checksum, so a leader stamps them without
//! touching the rest. What compaction leaves of a batch is made by [`Batch::retain`].

mod builder;
mod committed;
pub mod compress;
pub mod control;
mod error;
mod header;
mod input;
mod record;
mod retain;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
pub mod validate;
mod varint;

pub use builder::BatchBuilder;
pub use committed::AbortedTransactions;
pub use compress::{Compression, CompressionType};
pub use error::BatchError;
pub use header::{
    BatchHeader, BatchPrefix, HEADER_LEN, LOG_OVERHEAD, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE,
    NO_TIMESTAMP, PREFIX_LEN, TimestampType, sequence_after,
};
pub use record::{Header, Limits, Record, RecordShape, Records};
pub use retain::{KeyedRecord, NewHorizon, Retained};
pub use stream::{Batch, Batches, batches};

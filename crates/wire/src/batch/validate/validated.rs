//! A checked batch, ready to be written.

use bytes::Bytes;

use super::super::{BatchHeader, HEADER_LEN};
use crate::types::{LeaderEpoch, Millis, Offset};

/// What became of a batch's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// They are as they came.
    InPlace,
    /// Timestamp fields of the header, and with them the checksum, are new.
    Header,
    /// The records were written anew, with another codec or other offset deltas.
    Rebuilt,
}

/// A checked batch: a header that is still to be stamped, and the bytes that follow it.
///
/// Both are written at once, by one vectored write; the bytes of the request are neither copied nor changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validated {
    /// The header, its checksum right. Offset and leader epoch are set by [`stamp`](Self::stamp).
    pub header: BatchHeader,
    /// The bytes behind the header.
    pub body: Bytes,
    /// What became of the batch.
    pub change: Change,
    /// The time that the broker gave to all records, if the topic is LogAppendTime.
    pub log_append_time: Option<Millis>,
}

impl Validated {
    /// Gives the batch its place in the log. The checksum does not cover it.
    pub fn stamp(&mut self, base_offset: Offset, leader_epoch: LeaderEpoch) {
        self.header.base_offset = base_offset;
        self.header.partition_leader_epoch = leader_epoch;
    }

    /// The header as it is written.
    pub fn header_bytes(&self) -> [u8; HEADER_LEN] {
        self.header.to_bytes()
    }

    /// The whole size in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.header.size_in_bytes()
    }

    /// The last offset; meaningful once stamped.
    pub fn last_offset(&self) -> Offset {
        self.header.last_offset()
    }

    /// The largest timestamp.
    pub fn max_timestamp(&self) -> Millis {
        self.header.max_timestamp
    }

    /// The offset that is kept beside the largest timestamp: the batch's last; meaningful once stamped.
    pub fn shallow_offset_of_max_timestamp(&self) -> Offset {
        self.header.last_offset()
    }
}

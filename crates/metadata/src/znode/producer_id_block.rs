//! `/latest_producer_id_block`: the last block of producer ids that was handed out (KIP-730).
//!
//! Who allocates sets the next block on the version that it read. The bounds are text; the end is inclusive.

use super::{DecodeError, json};
use serde::{Deserialize, Serialize};
use wire::types::BrokerId;

/// The path.
pub const PATH: &str = "/latest_producer_id_block";

/// How many ids a block has.
pub const BLOCK_SIZE: i64 = 1000;

const KIND: &str = "producer id block";

/// A block of producer ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProducerIdBlock {
    /// The broker that it was given to.
    pub broker: BrokerId,
    /// The first id.
    pub start: i64,
    /// The last id, inclusive.
    pub end: i64,
}

#[derive(Serialize, Deserialize)]
struct Json {
    version: i32,
    broker: i32,
    block_start: String,
    block_end: String,
}

impl ProducerIdBlock {
    /// The block for `broker` after `latest`; `None` when the ids are exhausted.
    pub fn next(latest: Option<&Self>, broker: BrokerId) -> Option<Self> {
        let start = match latest {
            None => 0,
            Some(latest) if latest.end > i64::MAX - BLOCK_SIZE => return None,
            Some(latest) => latest.end + 1,
        };
        Some(Self { broker, start, end: start.checked_add(BLOCK_SIZE - 1)? })
    }

    /// The value of the znode.
    pub fn encode(&self) -> Vec<u8> {
        json::encode(&Json {
            version: 1,
            broker: self.broker.0,
            block_start: self.start.to_string(),
            block_end: self.end.to_string(),
        })
    }

    /// The block in the value of the znode; `None` if none was handed out yet.
    pub fn decode(data: Option<&[u8]>) -> Result<Option<Self>, DecodeError> {
        if data.is_none_or(<[u8]>::is_empty) {
            return Ok(None);
        }
        let json: Json = json::decode(KIND, data)?;
        let number = |text: &str| {
            text.parse::<i64>()
                .ok()
                .filter(|id| *id >= 0)
                .ok_or_else(|| DecodeError::new(KIND, format!("{text:?} is no producer id")))
        };
        Ok(Some(Self {
            broker: BrokerId(json.broker),
            start: number(&json.block_start)?,
            end: number(&json.block_end)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_follow_each_other_until_the_ids_are_exhausted() {
        let first = ProducerIdBlock::next(None, BrokerId(1)).expect("ids are left");
        assert_eq!((first.start, first.end), (0, 999));
        let second = ProducerIdBlock::next(Some(&first), BrokerId(2)).expect("ids are left");
        assert_eq!(second, ProducerIdBlock { broker: BrokerId(2), start: 1000, end: 1999 });
        for (end, left) in
            [(i64::MAX - BLOCK_SIZE, true), (i64::MAX - BLOCK_SIZE + 1, false), (i64::MAX, false)]
        {
            let latest = ProducerIdBlock { end, ..first };
            assert_eq!(ProducerIdBlock::next(Some(&latest), BrokerId(1)).is_some(), left, "after {end}");
        }
    }
}

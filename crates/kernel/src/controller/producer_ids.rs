//! Blocks of producer ids are handed out to brokers (KIP-730).
//!
//! The last block is kept in a znode, which is written over the version that was read: whoever else hands out blocks, as
//! brokers below 3.0 do for themselves, never hands out the same one. A write whose answer was lost costs one block.

use wire::error_code::ErrorCode;
use wire::types::{BrokerEpoch, BrokerId};

use super::command::ApiAnswer;
use super::note::What;
use super::program::{Flow, Step, Turn};
use super::store::{StoreOp, StoreReply};

/// How many ids a block has.
pub const PRODUCER_ID_BLOCK_SIZE: i64 = 1000;

/// How often a block is tried to be had while others are faster.
const MAX_TRIES: u32 = 100;

/// A block of producer ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerIdBlock {
    /// The broker that it is for.
    pub broker: BrokerId,
    /// The first id.
    pub first: i64,
    /// The last id, inclusive.
    pub last: i64,
}

impl ProducerIdBlock {
    /// The block for `broker` after the one that ends with `last`; `None` when the ids are used up.
    fn after(last: Option<i64>, broker: BrokerId) -> Option<Self> {
        let first = last.map_or(Some(0), |last| last.checked_add(1))?;
        Some(Self { broker, first, last: first.checked_add(PRODUCER_ID_BLOCK_SIZE - 1)? })
    }
}

/// AllocateProducerIds, and how far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Allocation {
    broker: BrokerId,
    broker_epoch: BrokerEpoch,
    tries: u32,
    /// What is being written.
    block: Option<ProducerIdBlock>,
}

impl Allocation {
    /// A block for a broker.
    pub(super) fn new(broker: BrokerId, broker_epoch: BrokerEpoch) -> Self {
        Self { broker, broker_epoch, tries: 0, block: None }
    }

    /// Goes on until the store has to be asked, or to the end.
    pub(super) fn run(mut self, turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
        match (reply, self.block) {
            (None, _) => match self.judge(turn) {
                Ok(()) => self.read(turn),
                Err(error) => refuse(turn, error),
            },
            (Some(StoreReply::ProducerIds { last, version }), _) => {
                let Some(block) = ProducerIdBlock::after(last, self.broker) else {
                    turn.note(What::ProducerIdsExhausted);
                    return refuse(turn, ErrorCode::UnknownServerError);
                };
                self.block = Some(block);
                let op = StoreOp::WriteProducerIds { block, version, epoch_version: turn.epoch_version() };
                Flow::ask(op, Step::AllocateProducerIds(self))
            }
            (Some(StoreReply::Done), Some(block)) => {
                turn.answer(Ok(ApiAnswer::AllocateProducerIds(block)));
                Flow::Done
            }
            (Some(StoreReply::BadVersion), _) => self.read(turn),
            (Some(_), _) => Flow::confused(),
        }
    }

    fn judge(&self, turn: &Turn<'_>) -> Result<(), ErrorCode> {
        match turn.context.registered().get(&self.broker) {
            None => Err(ErrorCode::BrokerIdNotRegistered),
            Some(known) if known.epoch != self.broker_epoch => Err(ErrorCode::StaleBrokerEpoch),
            Some(_) => Ok(()),
        }
    }

    fn read(mut self, turn: &mut Turn<'_>) -> Flow {
        self.tries += 1;
        if self.tries > MAX_TRIES {
            return refuse(turn, ErrorCode::RequestTimedOut);
        }
        Flow::ask(StoreOp::ReadProducerIds, Step::AllocateProducerIds(self))
    }
}

fn refuse(turn: &mut Turn<'_>, error: ErrorCode) -> Flow {
    turn.answer(Err(error));
    Flow::Done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_follow_each_other_until_the_ids_are_used_up() {
        let after = |last| ProducerIdBlock::after(last, BrokerId(1)).map(|block| (block.first, block.last));
        assert_eq!(after(None), Some((0, 999)));
        assert_eq!(after(Some(999)), Some((1000, 1999)));
        assert_eq!(after(Some(i64::MAX - 1000)), Some((i64::MAX - 999, i64::MAX)));
        assert_eq!(after(Some(i64::MAX - 999)), None);
        assert_eq!(after(Some(i64::MAX)), None);
    }
}

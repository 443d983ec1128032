//! `/brokers/seqid`: the source of generated broker ids. Each write of it raises its version; the version that a write
//! returns is the sequence number of the broker that wrote.

use crate::store::{Op, Stat};
use bytes::Bytes;
use wire::types::BrokerId;

/// The path.
pub const PATH: &str = "/brokers/seqid";

/// The write that draws the next number.
pub fn draw() -> Op {
    Op::set(PATH, Bytes::new(), None)
}

/// The broker id for the stat that [`draw`] returned, above `reserved.broker.max.id`; `None` if ids are exhausted.
pub fn broker_id(drawn: &Stat, reserved_broker_max_id: i32) -> Option<BrokerId> {
    drawn.version.checked_add(reserved_broker_max_id).map(BrokerId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_version_is_added_to_the_reserved_ids() {
        assert_eq!(broker_id(&Stat { version: 1, ..Stat::default() }, 1000), Some(BrokerId(1001)));
        assert_eq!(broker_id(&Stat { version: i32::MAX, ..Stat::default() }, 1000), None);
    }
}

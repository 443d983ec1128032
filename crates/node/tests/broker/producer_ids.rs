//! Blocks of producer ids: each broker takes its own below `inter.broker.protocol.version` 3.0.

use metadata::store::{Blocking, Store};
use metadata::znode::producer_id_block::{PATH, ProducerIdBlock};
use wire::messages::{InitProducerIdRequest, InitProducerIdResponse};
use wire::types::BrokerId;

use crate::harness::{Node, answer, frame};

/// Takes the next block as another broker does.
fn taken_by_another(store: &dyn Store) -> ProducerIdBlock {
    let calls = Blocking::new(store);
    let (data, stat) = calls.get(PATH).unwrap();
    let latest = ProducerIdBlock::decode(data.as_deref()).unwrap();
    let block = ProducerIdBlock::next(latest.as_ref(), BrokerId(7)).unwrap();
    calls.set(PATH, block.encode(), Some(stat.version)).unwrap();
    block
}

/// The write is conditional, so one of two brokers that want the same block fails: it takes the next, and its client does
/// not notice.
#[test]
fn a_block_that_another_broker_takes_first_is_followed_by_the_next() {
    let node = Node::start(&[("inter.broker.protocol.version", "2.6")]);
    let init = InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() };
    node.gate.hold();
    let given = node.submit(frame(4, &init));
    node.gate.let_one_through();
    node.gate.wait_for_one();
    let block = taken_by_another(&node.store());
    node.gate.open();
    let response: InitProducerIdResponse = answer(&given, 4);
    assert_eq!((response.error_code, response.producer_id), (0, block.end + 1));
}

//! Offsets that a producer commits in transactions of its own: most of them are superseded, some are aborted.

use anyhow::Result;
use interop::groups::{self, ask};
use interop::raw::Connection;
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, EndTxnRequest, FindCoordinatorRequest, InitProducerIdRequest, ProducerId,
    TransactionalId, TxnOffsetCommitRequest,
};
use kafka_protocol::protocol::{Request, StrBytes};

use super::TOPIC;

/// The offset that is committed in the end.
pub(crate) const LAST: i64 = 49;
const TRANSACTION_TYPE: i8 = 1;

fn id() -> TransactionalId {
    TransactionalId(StrBytes::from_static_str("committer"))
}

/// Begins and ends transactions; those of the offsets that divide by five are aborted, and so is the last one.
pub(crate) fn commit(connection: &mut Connection, group: &str) -> Result<()> {
    groups::find_coordinator(connection, group)?;
    let request = FindCoordinatorRequest::default().with_key(id().0).with_key_type(TRANSACTION_TYPE);
    ask(connection, 3, &request, |it| vec![it.error_code])?;
    let request = InitProducerIdRequest::default()
        .with_transactional_id(Some(id()))
        .with_transaction_timeout_ms(60_000)
        .with_producer_id(ProducerId(-1))
        .with_producer_epoch(-1);
    let producer = ask(connection, 4, &request, |it| vec![it.error_code])?;
    for offset in 0..=LAST + 1 {
        let request = AddOffsetsToTxnRequest::default()
            .with_transactional_id(id())
            .with_producer_id(producer.producer_id)
            .with_producer_epoch(producer.producer_epoch)
            .with_group_id(groups::group_id(group));
        ask(connection, 3, &request, |it| vec![it.error_code])?;
        let request = offsets(group, offset)
            .with_producer_id(producer.producer_id)
            .with_producer_epoch(producer.producer_epoch);
        let errors = |it: &<TxnOffsetCommitRequest as Request>::Response| {
            it.topics.iter().flat_map(|topic| &topic.partitions).map(|it| it.error_code).collect()
        };
        ask(connection, 3, &request, errors)?;
        let request = EndTxnRequest::default()
            .with_transactional_id(id())
            .with_producer_id(producer.producer_id)
            .with_producer_epoch(producer.producer_epoch)
            .with_committed(offset % 5 != 0);
        ask(connection, 3, &request, |it| vec![it.error_code])?;
    }
    Ok(())
}

fn offsets(group: &str, offset: i64) -> TxnOffsetCommitRequest {
    let partition = TxnOffsetCommitRequestPartition::default()
        .with_partition_index(0)
        .with_committed_offset(offset)
        .with_committed_leader_epoch(0)
        .with_committed_metadata(Some(StrBytes::from_static_str("of a transaction")));
    let topic = TxnOffsetCommitRequestTopic::default()
        .with_name(interop::calls::topic_name(TOPIC))
        .with_partitions(vec![partition]);
    TxnOffsetCommitRequest::default()
        .with_transactional_id(id())
        .with_group_id(groups::group_id(group))
        .with_topics(vec![topic])
}

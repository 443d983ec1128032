//! Rules of transactions, one by one.

use super::*;

fn txn(producer_id: i64, first: i64, last: i64) -> AbortedTxn {
    AbortedTxn {
        producer_id,
        first_offset: Offset(first),
        last_offset: Offset(last),
        last_stable_offset: Offset(last + 1),
    }
}

fn data(producer_id: i64, offset: i64) -> BatchHeader {
    let mut header = BatchHeader { base_offset: Offset(offset), producer_id, ..BatchHeader::default() };
    header.records_count = 1;
    header.set_transactional(true);
    header
}

fn control(producer_id: i64, offset: i64) -> BatchHeader {
    let mut header = data(producer_id, offset);
    header.set_control(true);
    header
}

const ABORT: Option<MarkerType> = Some(MarkerType::Abort);
const COMMIT: Option<MarkerType> = Some(MarkerType::Commit);

#[test]
fn aborted_data_goes_and_its_marker_is_needed_in_the_same_pass() {
    let mut txns = Transactions::default();
    txns.know_aborted([txn(7, 10, 20)]);
    assert!(!txns.on_data(&data(7, 5)), "of a transaction before");
    assert_eq!(txns.on_control(&control(7, 6), COMMIT), Marker::Needed(None));
    assert!(txns.on_data(&data(7, 10)));
    assert!(!txns.on_data(&data(8, 11)), "of another producer");
    assert!(txns.on_data(&data(7, 15)));
    assert_eq!(txns.on_control(&control(7, 20), ABORT), Marker::Needed(Some(txn(7, 10, 20))));
    assert!(!txns.on_data(&data(7, 21)), "of the transaction after");
}

#[test]
fn a_marker_is_free_when_nothing_of_its_transaction_is_met() {
    let mut txns = Transactions::default();
    txns.know_aborted([txn(7, 10, 20)]);
    assert_eq!(txns.on_control(&control(7, 20), ABORT), Marker::Free);
    assert_eq!(txns.on_control(&control(7, 30), COMMIT), Marker::Free);
    assert_eq!(txns.on_control(&control(7, 40), ABORT), Marker::Free, "the index has forgotten it");
}

#[test]
fn what_compaction_left_of_a_marker_is_free_and_other_control_records_are_needed() {
    let mut txns = Transactions::default();
    let emptied = BatchHeader { records_count: 0, ..control(7, 20) };
    assert_eq!(txns.on_control(&emptied, None), Marker::Free);
    assert_eq!(txns.on_control(&control(7, 21), None), Marker::Needed(None));
}

#[test]
fn an_emptied_batch_of_a_transaction_needs_its_marker() {
    let mut txns = Transactions::default();
    assert!(!txns.on_data(&BatchHeader { records_count: 0, ..data(7, 5) }));
    assert_eq!(txns.on_control(&control(7, 6), COMMIT), Marker::Needed(None));
    assert_eq!(txns.on_control(&control(7, 7), COMMIT), Marker::Free);
}

#[test]
fn data_without_a_transaction_is_neither() {
    let mut txns = Transactions::default();
    txns.know_aborted([txn(7, 0, 20)]);
    let mut plain = data(7, 1);
    plain.set_transactional(false);
    assert!(!txns.on_data(&plain));
    assert_eq!(txns.on_control(&control(7, 20), ABORT), Marker::Free);
}

/// KAFKA-8351: each segment tells its transactions, and one that spans two of them is told twice.
#[test]
fn a_transaction_that_is_told_again_with_the_next_segment_stays_one() {
    let mut txns = Transactions::default();
    txns.know_aborted([txn(7, 10, 40)]);
    assert!(txns.on_data(&data(7, 10)));
    txns.know_aborted([txn(7, 10, 40), txn(7, 50, 60)]);
    assert!(txns.on_data(&data(7, 30)));
    assert_eq!(txns.on_control(&control(7, 40), ABORT), Marker::Needed(Some(txn(7, 10, 40))));
    assert!(!txns.on_data(&data(7, 41)), "told twice is not aborted twice");
    assert_eq!(txns.on_control(&control(7, 42), COMMIT), Marker::Needed(None));
    assert!(txns.on_data(&data(7, 50)));
}

#[test]
fn a_batch_that_begins_before_and_ends_in_the_transaction_counts() {
    let mut txns = Transactions::default();
    txns.know_aborted([txn(7, 12, 40)]);
    let wide = BatchHeader { last_offset_delta: 5, ..data(7, 10) };
    assert!(txns.on_data(&wide));
}

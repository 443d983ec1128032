use proptest::prelude::*;

use super::*;

const PRODUCER: i64 = 1000;

/// A data batch of `count` records from `sequence` on, at `offset`.
fn data(epoch: i16, sequence: i32, count: i32, offset: i64) -> ProducerBatch {
    ProducerBatch {
        producer_id: PRODUCER,
        producer_epoch: epoch,
        base_sequence: sequence,
        last_sequence: wire::batch::sequence_after(sequence, count - 1),
        base_offset: Offset(offset),
        last_offset: Offset(offset + i64::from(count) - 1),
        max_timestamp: 5000 + offset,
        content: BatchContent::Data { transactional: false },
    }
}

fn transactional(batch: ProducerBatch) -> ProducerBatch {
    ProducerBatch { content: BatchContent::Data { transactional: true }, ..batch }
}

fn marker(epoch: i16, offset: i64, aborted: bool, coordinator_epoch: i32) -> ProducerBatch {
    let end = EndMarker { aborted, coordinator_epoch, timestamp: 9000 + offset };
    ProducerBatch {
        base_sequence: -1,
        last_sequence: -1,
        content: BatchContent::Marker(end),
        ..data(epoch, 0, 1, offset)
    }
}

/// Judges one batch and applies it if it is accepted, as a log does for a single append.
fn append(states: &mut ProducerStates, batch: ProducerBatch, origin: AppendOrigin) -> Verdict {
    let mut pending = PendingUpdates::new();
    let verdict = pending.judge(states, &batch, origin);
    if verdict == Verdict::Accepted {
        for completed in states.apply(pending) {
            states.complete(&completed);
        }
        states.set_map_end(batch.last_offset.plus(1));
    }
    verdict
}

fn accepted(states: &mut ProducerStates, batch: ProducerBatch) {
    assert_eq!(append(states, batch, AppendOrigin::Client), Verdict::Accepted);
}

fn out_of_order(given: i32, last: i32) -> Verdict {
    Verdict::Rejected(Rejection::OutOfOrderSequence { given, last })
}

/// A producer that wrote six batches of two records, as a snapshot knows it.
fn after_a_snapshot(batches: &[ProducerBatch]) -> ProducerStates {
    let mut states = ProducerStates::new(Offset(0));
    batches.iter().for_each(|batch| accepted(&mut states, *batch));
    let kept = states.entries().map(|entry| {
        let mut kept = ProducerEntry::new(entry.producer_id);
        kept.set_epoch(entry.producer_epoch);
        entry.last_batch().into_iter().for_each(|batch| kept.remember(*batch));
        kept
    });
    ProducerStates::from_snapshot(kept.collect::<Vec<_>>(), states.map_end(), 0, Millis(i64::MAX))
}

#[test]
fn batches_before_a_snapshot_are_recalled_up_to_five_and_without_gaps() {
    let batches: Vec<_> = (0..6).map(|at| data(0, at * 2, 2, i64::from(at) * 2)).collect();
    let mut states = after_a_snapshot(&batches);
    assert_eq!(states.seen_from(), Offset(12));
    assert!(states.may_have_forgotten(&batches[1]));
    assert!(!states.may_have_forgotten(&batches[5]), "it is remembered");
    assert!(!states.may_have_forgotten(&data(0, 12, 2, 12)), "it is the next one");
    assert!(!states.may_have_forgotten(&data(1, 0, 2, 12)), "its epoch is new");
    let mut with_a_gap = states.clone();
    let gap = [&batches[..3], &batches[4..]].concat();
    with_a_gap.recall(gap.into_iter().rev(), Offset(0));
    assert_eq!(with_a_gap.get(PRODUCER).unwrap().batches().len(), 2);

    states.recall(batches.iter().rev().copied(), Offset(0));
    assert_eq!(states.seen_from(), Offset(0));
    for batch in &batches[1..] {
        assert!(matches!(append(&mut states, *batch, AppendOrigin::Client), Verdict::Duplicate(_)));
    }
    assert!(!states.may_have_forgotten(&batches[0]), "five are remembered");
    assert_eq!(append(&mut states, batches[0], AppendOrigin::Client), out_of_order(0, 11));
    accepted(&mut states, data(0, 12, 2, 12));
}

#[test]
fn other_epochs_and_markers_are_not_recalled() {
    let batches = [data(0, 0, 2, 0), data(1, 0, 2, 2), data(1, 2, 2, 4)];
    let mut states = after_a_snapshot(&batches);
    let marker = ProducerBatch { base_offset: Offset(3), last_offset: Offset(3), ..marker(1, 3, false, 0) };
    states.recall([batches[2], marker, batches[1], batches[0]], Offset(0));
    let entry = states.get(PRODUCER).unwrap();
    assert_eq!(
        entry.batches().iter().map(BatchMetadata::first_offset).collect::<Vec<_>>(),
        [Offset(2), Offset(4)]
    );
}

#[test]
fn a_repeated_batch_among_the_last_five_is_a_duplicate() {
    let mut states = ProducerStates::new(Offset(0));
    for at in 0..6 {
        accepted(&mut states, data(0, at * 2, 2, i64::from(at) * 2));
    }
    let repeated = append(&mut states, data(0, 2, 2, 99), AppendOrigin::Client);
    let first = BatchMetadata { last_sequence: 3, last_offset: Offset(3), offset_delta: 1, timestamp: 5002 };
    assert_eq!(repeated, Verdict::Duplicate(first));
    assert_eq!(first.first_offset(), Offset(2));
    assert_eq!(first.first_sequence(), 2);
}

#[test]
fn a_repeated_batch_older_than_the_window_is_out_of_order() {
    let mut states = ProducerStates::new(Offset(0));
    for at in 0..6 {
        accepted(&mut states, data(0, at, 1, i64::from(at)));
    }
    assert_eq!(append(&mut states, data(0, 0, 1, 6), AppendOrigin::Client), out_of_order(0, 5));
}

#[test]
fn a_batch_that_shares_only_one_end_with_a_known_one_is_no_duplicate() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, data(0, 0, 3, 0));
    assert_eq!(append(&mut states, data(0, 0, 2, 3), AppendOrigin::Client), out_of_order(0, 2));
    assert_eq!(append(&mut states, data(0, 1, 2, 3), AppendOrigin::Client), out_of_order(1, 2));
}

#[test]
fn duplicates_are_looked_for_only_when_a_client_writes() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, data(0, 0, 1, 0));
    assert_eq!(append(&mut states, data(0, 0, 1, 1), AppendOrigin::Coordinator), Verdict::Accepted);
    assert_eq!(append(&mut states, data(0, 0, 1, 2), AppendOrigin::Replication), Verdict::Accepted);
}

#[test]
fn an_older_epoch_is_refused_to_client_and_coordinator_and_accepted_in_replication() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, data(3, 0, 1, 0));
    let refused = Verdict::Rejected(Rejection::InvalidProducerEpoch { given: 2, known: 3 });
    assert_eq!(append(&mut states, data(2, 1, 1, 1), AppendOrigin::Client), refused);
    assert_eq!(append(&mut states, data(2, 1, 1, 1), AppendOrigin::Coordinator), refused);
    assert_eq!(append(&mut states, marker(2, 1, false, 0), AppendOrigin::Coordinator), refused);
    assert_eq!(append(&mut states, data(2, 1, 1, 1), AppendOrigin::Replication), Verdict::Accepted);
}

#[test]
fn a_new_epoch_must_start_at_sequence_zero() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, data(0, 0, 5, 0));
    assert_eq!(append(&mut states, data(1, 5, 1, 5), AppendOrigin::Client), out_of_order(5, 4));
    accepted(&mut states, data(1, 0, 1, 5));
    let entry = states.get(PRODUCER).expect("known");
    assert_eq!((entry.producer_epoch, entry.batches().len()), (1, 1));
}

#[test]
fn the_same_epoch_goes_on_with_the_next_sequence() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, data(0, 0, 3, 0));
    assert_eq!(append(&mut states, data(0, 4, 1, 3), AppendOrigin::Client), out_of_order(4, 2));
    accepted(&mut states, data(0, 3, 1, 3));
}

#[test]
fn the_sequence_wraps_to_zero_and_duplicates_across_the_wrap_are_known() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, data(0, 2_147_483_640, 5, 0));
    accepted(&mut states, data(0, 2_147_483_645, 6, 5));
    assert_eq!(states.get(PRODUCER).expect("known").last_sequence(), 2);
    let repeated = append(&mut states, data(0, 2_147_483_645, 6, 11), AppendOrigin::Client);
    assert!(matches!(repeated, Verdict::Duplicate(batch) if batch.first_offset() == Offset(5)));
    accepted(&mut states, data(0, 3, 1, 11));
}

#[test]
fn the_sequence_zero_follows_the_largest_one() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, data(0, i32::MAX, 1, 0));
    accepted(&mut states, data(0, 0, 1, 1));
}

#[test]
fn an_unknown_producer_may_start_at_any_sequence() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, data(4, 50, 2, 0));
    assert_eq!(states.get(PRODUCER).expect("known").last_sequence(), 51);
}

#[test]
fn after_a_marker_only_sequence_zero_of_its_epoch_is_in_order() {
    let mut states = ProducerStates::new(Offset(0));
    assert_eq!(append(&mut states, marker(2, 0, true, 0), AppendOrigin::Coordinator), Verdict::Accepted);
    assert_eq!(append(&mut states, data(2, 1, 1, 1), AppendOrigin::Client), out_of_order(1, -1));
    accepted(&mut states, data(2, 0, 1, 1));
}

#[test]
fn a_coordinator_append_checks_no_sequence() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, data(0, 0, 1, 0));
    assert_eq!(append(&mut states, data(0, 77, 1, 1), AppendOrigin::Coordinator), Verdict::Accepted);
}

#[test]
fn replication_accepts_a_gap() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, data(0, 0, 1, 0));
    assert_eq!(append(&mut states, data(0, 50, 1, 1), AppendOrigin::Replication), Verdict::Accepted);
    assert_eq!(states.get(PRODUCER).expect("known").last_sequence(), 50);
}

#[test]
fn records_outside_the_open_transaction_are_refused() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, transactional(data(0, 0, 1, 0)));
    let refused = Verdict::Rejected(Rejection::InvalidTxnState);
    assert_eq!(append(&mut states, data(0, 1, 1, 1), AppendOrigin::Client), refused);
    assert_eq!(append(&mut states, data(0, 1, 1, 1), AppendOrigin::Replication), Verdict::Accepted);
}

#[test]
fn the_first_transactional_batch_opens_a_transaction_at_its_base_offset() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, transactional(data(0, 0, 3, 7)));
    accepted(&mut states, transactional(data(0, 3, 1, 10)));
    assert_eq!(states.get(PRODUCER).expect("known").open_txn_first_offset, Some(Offset(7)));
    assert_eq!(states.first_unstable_offset(), Some(Offset(7)));
}

#[test]
fn a_marker_closes_the_transaction_and_sets_both_epochs_and_the_timestamp() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, transactional(data(0, 0, 3, 0)));
    let mut pending = PendingUpdates::new();
    assert_eq!(pending.judge(&states, &marker(1, 3, true, 8), AppendOrigin::Coordinator), Verdict::Accepted);
    let completed = states.apply(pending);
    let expected = CompletedTxn {
        producer_id: PRODUCER,
        first_offset: Offset(0),
        last_offset: Offset(3),
        aborted: true,
    };
    assert_eq!(completed, [expected]);
    let entry = states.get(PRODUCER).expect("known");
    assert_eq!((entry.producer_epoch, entry.coordinator_epoch, entry.last_timestamp), (1, 8, 9003));
    assert!(entry.batches().is_empty(), "batches of the old epoch are forgotten");
    assert_eq!(entry.open_txn_first_offset, None);
}

#[test]
fn a_marker_of_the_same_epoch_keeps_the_batches() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, transactional(data(0, 0, 3, 0)));
    append(&mut states, marker(0, 3, false, 0), AppendOrigin::Coordinator);
    assert_eq!(states.get(PRODUCER).expect("known").last_sequence(), 2);
    accepted(&mut states, transactional(data(0, 3, 1, 4)));
}

#[test]
fn a_marker_without_data_completes_no_transaction() {
    let mut states = ProducerStates::new(Offset(0));
    let mut pending = PendingUpdates::new();
    assert_eq!(pending.judge(&states, &marker(0, 0, true, 0), AppendOrigin::Coordinator), Verdict::Accepted);
    assert!(states.apply(pending).is_empty());
    assert_eq!(states.first_unstable_offset(), None);
}

#[test]
fn an_older_coordinator_is_fenced_but_accepted_in_replication() {
    let mut states = ProducerStates::new(Offset(0));
    append(&mut states, marker(0, 0, true, 5), AppendOrigin::Coordinator);
    let fenced = Verdict::Rejected(Rejection::TransactionCoordinatorFenced { given: 4, known: 5 });
    assert_eq!(append(&mut states, marker(0, 1, true, 4), AppendOrigin::Coordinator), fenced);
    assert_eq!(append(&mut states, marker(0, 1, true, 4), AppendOrigin::Replication), Verdict::Accepted);
}

#[test]
fn a_control_batch_without_a_marker_changes_nothing() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, transactional(data(0, 0, 1, 0)));
    let before = states.entries().copied().collect::<Vec<_>>();
    let emptied = ProducerBatch { content: BatchContent::OtherControl, ..marker(9, 1, true, 9) };
    assert_eq!(append(&mut states, emptied, AppendOrigin::Replication), Verdict::Accepted);
    assert_eq!(states.entries().copied().collect::<Vec<_>>(), before);
}

#[test]
fn nothing_changes_until_the_updates_are_applied() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, data(0, 0, 1, 0));
    let before = states.clone();
    let mut pending = PendingUpdates::new();
    assert_eq!(pending.judge(&states, &data(0, 1, 1, 1), AppendOrigin::Client), Verdict::Accepted);
    drop(pending);
    assert_eq!(states, before);
}

#[test]
fn a_batch_sees_those_that_wait_before_it() {
    let mut states = ProducerStates::new(Offset(0));
    let mut pending = PendingUpdates::new();
    assert_eq!(pending.judge(&states, &data(0, 0, 2, 0), AppendOrigin::Client), Verdict::Accepted);
    assert_eq!(pending.judge(&states, &data(0, 5, 1, 2), AppendOrigin::Client), out_of_order(5, 1));
    assert_eq!(pending.judge(&states, &data(0, 2, 1, 2), AppendOrigin::Client), Verdict::Accepted);
    assert!(matches!(pending.judge(&states, &data(0, 0, 2, 3), AppendOrigin::Client), Verdict::Duplicate(_)));
    states.apply(pending);
    assert_eq!(states.get(PRODUCER).expect("known").last_sequence(), 2);
}

#[test]
fn a_completed_transaction_is_unstable_until_its_marker_is_replicated() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, transactional(data(0, 0, 2, 0)));
    append(&mut states, marker(0, 2, false, 0), AppendOrigin::Coordinator);
    states.on_high_watermark(Offset(2));
    assert_eq!(states.first_unstable_offset(), Some(Offset(0)));
    states.on_high_watermark(Offset(3));
    assert_eq!(states.first_unstable_offset(), None);
}

#[test]
fn a_transaction_that_was_not_completed_after_its_marker_stays_open() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, transactional(data(0, 0, 2, 0)));
    let mut pending = PendingUpdates::new();
    pending.judge(&states, &marker(0, 2, true, 0), AppendOrigin::Coordinator);
    let completed = states.apply(pending);
    states.on_high_watermark(Offset(3));
    assert_eq!(states.first_unstable_offset(), Some(Offset(0)), "the transaction index was not written");
    states.complete(&completed[0]);
    states.on_high_watermark(Offset(3));
    assert_eq!(states.first_unstable_offset(), None);
}

#[test]
fn the_stable_offset_after_an_abort_is_the_next_open_transaction_or_the_end_of_the_marker() {
    let mut states = ProducerStates::new(Offset(0));
    let other = |batch| ProducerBatch { producer_id: 2000, ..batch };
    accepted(&mut states, transactional(data(0, 0, 2, 0)));
    let alone = CompletedTxn {
        producer_id: PRODUCER,
        first_offset: Offset(0),
        last_offset: Offset(9),
        aborted: true,
    };
    assert_eq!(states.last_stable_offset_after(&alone), Offset(10));
    accepted(&mut states, other(transactional(data(0, 0, 2, 2))));
    assert_eq!(states.last_stable_offset_after(&alone), Offset(2));
}

#[test]
fn a_transaction_that_began_after_the_marker_in_the_same_group_does_not_raise_its_stable_offset() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, transactional(data(0, 0, 2, 0)));
    let mut pending = PendingUpdates::new();
    pending.judge(&states, &marker(0, 2, true, 0), AppendOrigin::Coordinator);
    let later = ProducerBatch { producer_id: 2000, ..transactional(data(0, 0, 1, 8)) };
    pending.judge(&states, &later, AppendOrigin::Client);
    let completed = states.apply(pending);
    assert_eq!(states.last_stable_offset_after(&completed[0]), Offset(3));
}

#[test]
fn silent_producers_expire_but_not_those_with_an_open_transaction() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, transactional(data(0, 0, 1, 0)));
    accepted(&mut states, ProducerBatch { producer_id: 2000, ..data(0, 0, 1, 1) });
    let silent = 5001;
    assert_eq!(states.expire(silent + 99, Millis(100)), 0);
    assert_eq!(states.expire(silent + 100, Millis(100)), 1);
    assert!(states.get(PRODUCER).is_some() && states.get(2000).is_none());
}

#[test]
fn the_timestamp_of_a_marker_keeps_a_producer_alive() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, transactional(data(0, 0, 1, 0)));
    append(&mut states, marker(0, 1, true, 0), AppendOrigin::Coordinator);
    assert_eq!(states.expire(9001 + 99, Millis(100)), 0);
    assert_eq!(states.expire(9001 + 100, Millis(100)), 1);
}

#[test]
fn producers_outlive_their_records() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, data(0, 0, 1, 0));
    states.on_log_start(Offset(10));
    assert!(states.get(PRODUCER).is_some());
    assert_eq!(states.map_end(), Offset(10));
}

#[test]
fn a_snapshot_brings_back_producers_and_open_transactions_and_drops_expired_ones() {
    let mut states = ProducerStates::new(Offset(0));
    accepted(&mut states, transactional(data(0, 0, 1, 0)));
    accepted(&mut states, ProducerBatch { producer_id: 2000, ..data(0, 0, 1, 1) });
    let mut loaded = ProducerStates::from_snapshot(states.entries().copied(), Offset(2), 5002, Millis(1000));
    loaded.recall([], Offset(0));
    assert_eq!(loaded, states);
    let later = ProducerStates::from_snapshot(states.entries().copied(), Offset(2), 99_999, Millis(1000));
    assert_eq!(later.entries().map(|entry| entry.producer_id).collect::<Vec<_>>(), [PRODUCER]);
    assert_eq!(later.first_unstable_offset(), Some(Offset(0)));
}

/// Every batch that was accepted, per producer; each question is answered by reading all of it again.
#[derive(Default)]
struct Model {
    log: Vec<ProducerBatch>,
}

impl Model {
    fn of(&self, producer_id: i64) -> Vec<&ProducerBatch> {
        self.log.iter().filter(|batch| batch.producer_id == producer_id).collect()
    }

    /// The data batches since the epoch last changed, and whether a transaction is open.
    fn window(&self, producer_id: i64) -> (Option<i16>, Vec<&ProducerBatch>, bool) {
        let all = self.of(producer_id);
        let epoch = all.last().map(|batch| batch.producer_epoch);
        let same = all.iter().rev().take_while(|batch| Some(batch.producer_epoch) == epoch);
        let mut window: Vec<_> =
            same.filter(|b| matches!(b.content, BatchContent::Data { .. })).copied().collect();
        window.reverse();
        let open = all.iter().fold(false, |open, batch| match batch.content {
            BatchContent::Data { transactional } => open || transactional,
            _ => false,
        });
        (epoch, window, open)
    }

    fn verdict(&self, batch: &ProducerBatch, origin: AppendOrigin) -> &'static str {
        let (epoch, window, open) = self.window(batch.producer_id);
        let recent = &window[window.len().saturating_sub(5)..];
        let sequences = (batch.base_sequence, batch.last_sequence);
        let repeated = epoch == Some(batch.producer_epoch)
            && recent.iter().any(|b| (b.base_sequence, b.last_sequence) == sequences);
        let last = window.last().map_or(-1, |b| i64::from(b.last_sequence));
        let next = if last == i64::from(i32::MAX) { 0 } else { last + 1 };
        let in_order = match epoch {
            None => true,
            Some(known) if known == batch.producer_epoch => i64::from(batch.base_sequence) == next,
            Some(_) => batch.base_sequence == 0,
        };
        let plain = matches!(batch.content, BatchContent::Data { transactional: false });
        match origin {
            AppendOrigin::Client if repeated => "duplicate",
            AppendOrigin::Replication => "accepted",
            _ if epoch.is_some_and(|known| batch.producer_epoch < known) => "epoch",
            AppendOrigin::Client if !in_order => "sequence",
            _ if open && plain => "transaction",
            _ => "accepted",
        }
    }
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted => "accepted",
        Verdict::Duplicate(_) => "duplicate",
        Verdict::Rejected(Rejection::InvalidProducerEpoch { .. }) => "epoch",
        Verdict::Rejected(Rejection::OutOfOrderSequence { .. }) => "sequence",
        Verdict::Rejected(Rejection::InvalidTxnState) => "transaction",
        Verdict::Rejected(Rejection::TransactionCoordinatorFenced { .. }) => "fenced",
    }
}

fn step() -> impl Strategy<Value = (i64, i16, i32, i32, u8, u8)> {
    (0..2i64, 0..3i16, 0..8i32, 1..3i32, 0..8u8, 0..8u8)
}

proptest! {
    #[test]
    fn verdicts_agree_with_a_model_that_reads_everything_again(
        steps in prop::collection::vec(step(), 0..60),
        grouped in any::<bool>(),
    ) {
        let mut states = ProducerStates::new(Offset(0));
        let mut pending = PendingUpdates::new();
        let mut model = Model::default();
        let mut offset = 0;
        for (producer_id, epoch, jump, count, kind, origin) in steps {
            let (known, window, _) = model.window(producer_id);
            let follow = window.last().map_or(0, |b| b.last_sequence + 1);
            // Mostly the next sequence of the known epoch, so that long runs are reached.
            let (epoch, sequence) =
                if jump < 6 { (known.unwrap_or(epoch), follow) } else { (epoch, jump - 6 + follow / 2) };
            let batch = ProducerBatch { producer_id, ..data(epoch, sequence, count, offset) };
            let (batch, origin) = match (kind, origin) {
                (0, _) => (ProducerBatch { producer_id, ..marker(epoch, offset, false, 0) }, AppendOrigin::Coordinator),
                (1 | 2, _) => (transactional(batch), AppendOrigin::Client),
                (_, 0) => (batch, AppendOrigin::Replication),
                (_, 1) => (batch, AppendOrigin::Coordinator),
                _ => (batch, AppendOrigin::Client),
            };
            let expected = model.verdict(&batch, origin);
            let verdict = if grouped {
                pending.judge(&states, &batch, origin)
            } else {
                append(&mut states, batch, origin)
            };
            prop_assert_eq!(name(verdict), expected);
            if verdict == Verdict::Accepted {
                model.log.push(batch);
                offset = batch.last_offset.0 + 1;
            }
        }
        for completed in states.apply(pending) {
            states.complete(&completed);
        }
        for producer_id in 0..2 {
            let (epoch, window, open) = model.window(producer_id);
            let entry = states.get(producer_id);
            prop_assert_eq!(entry.map(|e| e.producer_epoch), epoch);
            let last = window.last().map_or(-1, |b| b.last_sequence);
            prop_assert_eq!(entry.map_or(-1, ProducerEntry::last_sequence), last);
            prop_assert_eq!(entry.is_some_and(|e| e.open_txn_first_offset.is_some()), open);
        }
    }
}

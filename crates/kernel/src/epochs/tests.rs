use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn history(entries: &[(i32, i64)]) -> EpochHistory {
    let history = EpochHistory::from_entries(
        entries.iter().map(|(epoch, start)| EpochEntry { epoch: LeaderEpoch(*epoch), start: Offset(*start) }),
    );
    assert_eq!(pairs(&history), entries, "the entries of a test must be in order");
    history
}

fn pairs(history: &EpochHistory) -> Vec<(i32, i64)> {
    history.entries().iter().map(|entry| (entry.epoch.0, entry.start.0)).collect()
}

fn end(history: &EpochHistory, epoch: i32, log_end: i64) -> (i32, i64) {
    let end = history.end_offset_for(LeaderEpoch(epoch), Offset(log_end));
    (end.epoch.0, end.end.0)
}

#[test]
fn assign_enters_the_first_epoch_even_if_it_is_zero() {
    let mut h = EpochHistory::new();
    assert!(h.assign(LeaderEpoch(0), Offset(0)));
    assert_eq!(pairs(&h), [(0, 0)]);
}

#[test]
fn assign_ignores_the_latest_epoch_at_an_equal_or_higher_offset() {
    let mut h = history(&[(0, 0), (2, 5)]);
    assert!(!h.assign(LeaderEpoch(2), Offset(5)));
    assert!(!h.assign(LeaderEpoch(2), Offset(9)));
    assert_eq!(pairs(&h), [(0, 0), (2, 5)]);
}

#[test]
fn assign_moves_the_latest_epoch_to_a_lower_offset() {
    let mut h = history(&[(0, 0), (2, 5)]);
    assert!(h.assign(LeaderEpoch(2), Offset(4)));
    assert_eq!(pairs(&h), [(0, 0), (2, 4)]);
}

#[test]
fn assign_of_a_lower_epoch_removes_the_higher_ones() {
    let mut h = history(&[(0, 0), (2, 3)]);
    assert!(h.assign(LeaderEpoch(1), Offset(5)));
    assert_eq!(pairs(&h), [(0, 0), (1, 5)]);
}

#[test]
fn assign_removes_an_epoch_that_wrote_nothing() {
    let mut h = history(&[(0, 0), (1, 2)]);
    assert!(h.assign(LeaderEpoch(3), Offset(2)));
    assert_eq!(pairs(&h), [(0, 0), (3, 2)]);
}

#[test]
fn assign_ignores_negative_epochs_and_offsets() {
    let mut h = history(&[(1, 5)]);
    assert!(!h.assign(LeaderEpoch(-1), Offset(9)));
    assert!(!h.assign(LeaderEpoch(2), Offset(-1)));
    assert_eq!(pairs(&h), [(1, 5)]);
}

#[test]
fn observe_enters_a_new_epoch_and_leaves_a_known_one() {
    let mut h = EpochHistory::new();
    assert!(h.observe(LeaderEpoch(0), Offset(0)));
    assert!(!h.observe(LeaderEpoch(0), Offset(5)));
    assert!(h.observe(LeaderEpoch(2), Offset(7)));
    assert!(!h.observe(LeaderEpoch(-1), Offset(9)));
    assert_eq!(pairs(&h), [(0, 0), (2, 7)]);
}

#[test]
fn observe_removes_an_epoch_whose_records_are_not_there() {
    let mut h = history(&[(0, 0), (2, 15), (5, 18)]);
    assert!(h.observe(LeaderEpoch(2), Offset(18)));
    assert_eq!(pairs(&h), [(0, 0), (2, 15)]);
    assert!(h.observe(LeaderEpoch(3), Offset(19)));
    assert_eq!(pairs(&h), [(0, 0), (2, 15), (3, 19)]);
}

#[test]
fn observe_enters_an_epoch_before_those_that_are_known() {
    let mut h = history(&[(0, 0), (3, 30)]);
    assert!(h.observe(LeaderEpoch(2), Offset(18)));
    assert!(h.observe(LeaderEpoch(3), Offset(30)));
    assert_eq!(pairs(&h), [(0, 0), (2, 18), (3, 30)]);
}

#[test]
fn truncate_from_end_drops_an_entry_that_starts_exactly_there() {
    let mut h = history(&[(0, 0), (1, 5), (2, 9)]);
    assert!(h.truncate_from_end(Offset(9)));
    assert_eq!(pairs(&h), [(0, 0), (1, 5)]);
    assert!(!h.truncate_from_end(Offset(6)));
    assert!(h.truncate_from_end(Offset(0)));
    assert!(h.is_empty());
}

#[test]
fn truncate_from_end_ignores_a_negative_offset() {
    let mut h = history(&[(0, 0), (1, 5)]);
    assert!(!h.truncate_from_end(Offset(-1)));
    assert_eq!(pairs(&h), [(0, 0), (1, 5)]);
}

#[test]
fn truncate_from_start_keeps_the_covering_epoch_at_the_new_start() {
    let mut h = history(&[(0, 0), (1, 5), (2, 9)]);
    assert!(h.truncate_from_start(Offset(7)));
    assert_eq!(pairs(&h), [(1, 7), (2, 9)]);
}

#[test]
fn truncate_from_start_keeps_an_entry_that_starts_exactly_there() {
    let mut h = history(&[(0, 0), (1, 5), (2, 9)]);
    assert!(h.truncate_from_start(Offset(5)));
    assert_eq!(pairs(&h), [(1, 5), (2, 9)]);
    assert!(!h.truncate_from_start(Offset(5)));
}

#[test]
fn truncate_from_start_does_nothing_below_the_first_start() {
    let mut h = history(&[(1, 5), (2, 9)]);
    assert!(!h.truncate_from_start(Offset(4)));
    assert_eq!(pairs(&h), [(1, 5), (2, 9)]);
}

#[test]
fn truncate_from_start_beyond_every_entry_keeps_the_latest_epoch() {
    let mut h = history(&[(1, 5), (2, 9)]);
    assert!(h.truncate_from_start(Offset(100)));
    assert_eq!(pairs(&h), [(2, 100)]);
}

#[test]
fn the_end_of_epoch_minus_one_is_undefined() {
    assert_eq!(end(&history(&[(0, 0)]), -1, 7), (-1, -1));
}

#[test]
fn the_end_of_the_latest_epoch_is_the_log_end() {
    assert_eq!(end(&history(&[(0, 0), (3, 5)]), 3, 7), (3, 7));
}

#[test]
fn the_end_of_an_epoch_above_all_or_of_an_empty_history_is_undefined() {
    assert_eq!(end(&history(&[(0, 0), (3, 5)]), 4, 7), (-1, -1));
    assert_eq!(end(&EpochHistory::new(), 0, 7), (-1, -1));
}

#[test]
fn the_end_of_an_epoch_below_all_is_its_own_number_and_the_first_start() {
    assert_eq!(end(&history(&[(2, 5), (3, 8)]), 1, 9), (1, 5));
}

#[test]
fn the_end_of_an_older_or_missing_epoch_is_the_start_of_the_next_higher() {
    let h = history(&[(0, 0), (2, 5), (5, 8)]);
    assert_eq!(end(&h, 2, 9), (2, 8));
    assert_eq!(end(&h, 4, 9), (2, 8));
    assert_eq!(end(&h, 1, 9), (0, 5));
}

#[test]
fn the_epoch_of_an_offset_is_the_last_one_that_starts_at_or_below_it() {
    let h = history(&[(1, 5), (2, 9)]);
    assert_eq!(h.epoch_of(Offset(4)), None);
    assert_eq!(h.epoch_of(Offset(5)), Some(LeaderEpoch(1)));
    assert_eq!(h.epoch_of(Offset(8)), Some(LeaderEpoch(1)));
    assert_eq!(h.epoch_of(Offset(9)), Some(LeaderEpoch(2)));
}

#[derive(Clone, Debug)]
enum Action {
    Assign(i32, i64),
    TruncateFromEnd(i64),
    TruncateFromStart(i64),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (-1..8i32, -1..20i64).prop_map(|(epoch, start)| Action::Assign(epoch, start)),
        1 => (-1..20i64).prop_map(Action::TruncateFromEnd),
        1 => (-1..20i64).prop_map(Action::TruncateFromStart),
    ]
}

/// The same rules on a plain map, written as filters over all entries.
fn apply_to_model(model: &mut BTreeMap<i32, i64>, action: &Action) {
    match *action {
        Action::Assign(epoch, start) => {
            let same = model.last_key_value().is_some_and(|(e, s)| *e == epoch && start >= *s);
            if epoch >= 0 && start >= 0 && !same {
                model.retain(|e, s| *e < epoch && *s < start);
                model.insert(epoch, start);
            }
        }
        Action::TruncateFromEnd(offset) => model.retain(|_, s| offset < 0 || *s < offset),
        Action::TruncateFromStart(offset) => {
            let covering = model.iter().filter(|(_, s)| **s <= offset).map(|(e, _)| *e).max();
            model.retain(|_, s| *s > offset);
            if let Some(epoch) = covering {
                model.insert(epoch, offset);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_sequence_of_actions_agrees_with_a_plain_map(actions in prop::collection::vec(action(), 0..40)) {
        let mut history = EpochHistory::new();
        let mut model = BTreeMap::new();
        for action in &actions {
            let before = history.clone();
            let changed = match *action {
                Action::Assign(epoch, start) => history.assign(LeaderEpoch(epoch), Offset(start)),
                Action::TruncateFromEnd(offset) => history.truncate_from_end(Offset(offset)),
                Action::TruncateFromStart(offset) => history.truncate_from_start(Offset(offset)),
            };
            apply_to_model(&mut model, action);
            prop_assert_eq!(changed, history != before);
            prop_assert_eq!(pairs(&history), model.iter().map(|(e, s)| (*e, *s)).collect::<Vec<_>>());
            for pair in history.entries().windows(2) {
                prop_assert!(pair[0].epoch < pair[1].epoch && pair[0].start < pair[1].start);
            }
        }
    }

    #[test]
    fn after_observing_all_batches_the_history_names_the_epoch_of_each(
        stale in prop::collection::vec(action(), 0..10),
        steps in prop::collection::vec((0..3i32, 1..4i64), 1..20),
    ) {
        let mut model = BTreeMap::new();
        stale.iter().for_each(|action| apply_to_model(&mut model, action));
        let mut history = EpochHistory::from_entries(
            model.iter().map(|(e, s)| EpochEntry { epoch: LeaderEpoch(*e), start: Offset(*s) }),
        );
        let (mut epoch, mut offset) = (0, 0);
        let mut batches = Vec::new();
        for (rise, length) in steps {
            epoch += rise;
            batches.push((LeaderEpoch(epoch), Offset(offset)));
            history.observe(LeaderEpoch(epoch), Offset(offset));
            offset += length;
        }
        history.truncate_from_end(Offset(offset));
        for (epoch, offset) in batches {
            prop_assert_eq!(history.epoch_of(offset), Some(epoch));
        }
        for pair in history.entries().windows(2) {
            prop_assert!(pair[0].epoch < pair[1].epoch && pair[0].start < pair[1].start);
        }
    }

    #[test]
    fn the_end_of_an_epoch_agrees_with_a_search_of_all_entries(
        actions in prop::collection::vec(action(), 0..20),
        asked in -1..9i32,
    ) {
        let mut model = BTreeMap::new();
        actions.iter().for_each(|action| apply_to_model(&mut model, action));
        let history = EpochHistory::from_entries(
            model.iter().map(|(e, s)| EpochEntry { epoch: LeaderEpoch(*e), start: Offset(*s) }),
        );
        let log_end = 50;
        let latest = model.keys().max().copied();
        let floor = model.keys().filter(|e| **e <= asked).max().copied();
        let next = model.iter().find(|(e, _)| **e > asked).map(|(_, s)| *s);
        let expected = match (asked, next) {
            (-1, _) => (-1, -1),
            _ if Some(asked) == latest => (asked, log_end),
            (_, None) => (-1, -1),
            (_, Some(start)) => (floor.unwrap_or(asked), start),
        };
        prop_assert_eq!(end(&history, asked, log_end), expected);
    }
}

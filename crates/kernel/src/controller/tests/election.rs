//! The four strategies, row by row.

use std::collections::BTreeSet;

use wire::types::{BrokerId, ControllerEpoch, LeaderEpoch};

use super::parse::list;
use super::print::ids;
use crate::controller::election::{Ballot, Liveness, Strategy};
use crate::controller::values::{LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment};

const CLEAN: Strategy = Strategy::Offline { allow_unclean: false };
const UNCLEAN: Strategy = Strategy::Offline { allow_unclean: true };

/// Who is there, and the outcome.
struct Row {
    strategy: Strategy,
    replicas: &'static str,
    removing: &'static str,
    isr: &'static str,
    online: &'static str,
    shutting_down: &'static str,
    /// Leader, in-sync replicas, recipients.
    expected: Option<(i32, &'static str, &'static str)>,
}

const ROW: Row = Row {
    strategy: CLEAN,
    replicas: "1,2,3",
    removing: "none",
    isr: "1,2,3",
    online: "1,2,3",
    shutting_down: "none",
    expected: None,
};

fn elect(row: &Row, is_unclean_allowed: bool) -> Option<(LeaderAndIsr, Vec<BrokerId>, bool)> {
    let assignment =
        ReplicaAssignment { replicas: list(row.replicas), adding: Vec::new(), removing: list(row.removing) };
    let stored = LeaderAndIsr {
        leader: BrokerId(9),
        leader_epoch: LeaderEpoch(4),
        isr: list(row.isr),
        recovery_state: LeaderRecoveryState::Recovered,
        controller_epoch: ControllerEpoch(1),
        partition_epoch: 7,
    };
    let (online, shutting_down) = (list(row.online), list(row.shutting_down));
    let liveness = |replica: BrokerId| match (online.contains(&replica), shutting_down.contains(&replica)) {
        (false, _) => Liveness::Offline,
        (true, true) => Liveness::ShuttingDown,
        (true, false) => Liveness::Online,
    };
    let ballot = Ballot {
        assignment: &assignment,
        stored: &stored,
        liveness: &liveness,
        shutting_down: &shutting_down.iter().copied().collect::<BTreeSet<_>>(),
        is_unclean_allowed,
        uses_recovery_state: true,
        controller_epoch: ControllerEpoch(2),
    };
    ballot.elect(row.strategy).map(|elected| (elected.state, elected.recipients, elected.is_unclean))
}

fn check(rows: &[Row]) {
    for (number, row) in rows.iter().enumerate() {
        let elected = elect(row, false);
        let outcome = elected.map(|(state, to, _)| (state.leader.0, ids(&state.isr), ids(&to)));
        let expected = row.expected.map(|(leader, isr, to)| (leader, isr.to_owned(), to.to_owned()));
        assert_eq!(outcome, expected, "row {number}");
    }
}

#[test]
fn offline_takes_the_first_assigned_replica_that_is_online_and_in_sync() {
    check(&[
        Row { expected: Some((1, "1,2,3", "1,2,3")), ..ROW },
        Row { online: "2,3", expected: Some((2, "2,3", "2,3")), ..ROW },
        Row { isr: "3,2", online: "1,2,3", expected: Some((2, "3,2", "1,2,3")), ..ROW },
        // A broker that is shutting down is not online, neither as leader nor in sync.
        Row { shutting_down: "1", expected: Some((2, "2,3", "2,3")), ..ROW },
        Row { isr: "1", online: "2,3", expected: None, ..ROW },
        Row { online: "none", expected: None, ..ROW },
        // An in-sync replica that is no longer assigned cannot lead.
        Row { isr: "4", online: "1,2,3,4", expected: None, ..ROW },
    ]);
}

#[test]
fn an_unclean_election_takes_the_first_online_only_when_no_in_sync_replica_is() {
    check(&[
        Row { strategy: UNCLEAN, isr: "1", online: "3,2", expected: Some((2, "2", "2,3")), ..ROW },
        Row { strategy: UNCLEAN, isr: "3", online: "2,3", expected: Some((3, "3", "2,3")), ..ROW },
        Row { strategy: UNCLEAN, isr: "1", online: "none", expected: None, ..ROW },
    ]);
}

#[test]
fn reassign_takes_the_first_target_replica_that_is_online_and_in_sync_and_keeps_the_in_sync_replicas() {
    check(&[
        Row { strategy: Strategy::Reassign, removing: "1", expected: Some((2, "1,2,3", "2,3")), ..ROW },
        Row {
            strategy: Strategy::Reassign,
            removing: "1",
            online: "1,3",
            expected: Some((3, "1,2,3", "2,3")),
            ..ROW
        },
        Row { strategy: Strategy::Reassign, removing: "1,2", isr: "1,2", expected: None, ..ROW },
    ]);
}

#[test]
fn preferred_takes_the_first_replica_or_nobody() {
    check(&[
        Row { strategy: Strategy::Preferred, isr: "3,1", expected: Some((1, "3,1", "1,2,3")), ..ROW },
        Row { strategy: Strategy::Preferred, isr: "2,3", expected: None, ..ROW },
        Row { strategy: Strategy::Preferred, online: "2,3", expected: None, ..ROW },
        Row { strategy: Strategy::Preferred, shutting_down: "1", expected: None, ..ROW },
    ]);
}

#[test]
fn controlled_shutdown_takes_the_first_that_stays_and_tells_those_that_leave_too() {
    let strategy = Strategy::ControlledShutdown;
    check(&[
        Row { strategy, shutting_down: "1", expected: Some((2, "2,3", "1,2,3")), ..ROW },
        Row { strategy, shutting_down: "1,2", expected: Some((3, "3", "1,2,3")), ..ROW },
        Row {
            strategy,
            shutting_down: "1",
            online: "1,3",
            isr: "1,3",
            expected: Some((3, "3", "1,3")),
            ..ROW
        },
        Row { strategy, shutting_down: "1", isr: "1", expected: None, ..ROW },
        Row { strategy, shutting_down: "1,2,3", expected: None, ..ROW },
    ]);
}

#[test]
fn an_election_raises_the_leader_epoch_and_keeps_the_rest_to_be_written_over() {
    let (state, _, is_unclean) = elect(&ROW, true).unwrap();
    assert!(!is_unclean);
    assert_eq!(state.leader_epoch, LeaderEpoch(5));
    assert_eq!(state.controller_epoch, ControllerEpoch(2));
    assert_eq!(state.partition_epoch, 7);
    assert_eq!(state.recovery_state, LeaderRecoveryState::Recovered);
}

#[test]
fn what_the_topic_allows_counts_as_much_as_what_the_caller_allows_and_the_leader_recovers() {
    let (state, _, is_unclean) = elect(&Row { isr: "1", online: "2,3", ..ROW }, true).unwrap();
    assert!(is_unclean);
    assert_eq!((state.leader, state.recovery_state), (BrokerId(2), LeaderRecoveryState::Recovering));
    // It counts for no other strategy.
    let row = Row { strategy: Strategy::Preferred, isr: "2", ..ROW };
    assert!(elect(&row, true).is_none());
}

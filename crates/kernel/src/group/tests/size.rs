//! Large groups: what a rebalance says and keeps grows with its members, not with their square.

use super::*;

/// How much a group of so many members says from its first JoinGroup to its first assignment: commands, members in
/// answers, bytes of records.
fn said(members: usize) -> usize {
    let mut bench = Bench::new();
    let ids: Vec<_> = (0..members).map(|member| format!("m{member:04}")).collect();
    bench.stable(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    let weight = |command: &Command| match command {
        Command::Answer { answer: Answer::Join(joined), .. } => 1 + joined.members.len(),
        Command::Append { batch, .. } => {
            batch.records.iter().filter_map(|(_, value)| value.as_ref()).map(Bytes::len).sum()
        }
        _ => 1,
    };
    bench.trace.iter().map(|(_, command)| weight(command)).sum()
}

// KAFKA-7142
#[test]
fn a_rebalance_of_twice_the_members_says_twice_as_much() {
    let (small, large) = (said(100), said(200));
    assert!(large < small * 21 / 10, "{small} of 100 members, {large} of 200");
}

#[test]
fn members_that_have_gone_leave_nothing_behind() {
    let mut bench = Bench::new();
    let ids: Vec<_> = (0..50).map(|member| format!("m{member}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    bench.stable(&ids);
    for id in ids {
        assert_eq!(bench.leave(id, None), 0);
    }
    bench.join(JoinRequest { requires_known_member_id: true, ..joining("a") });
    bench.wait(i64::from(SESSION_MS));
    let group = &bench.group;
    assert_eq!(group.state, State::Empty);
    assert_eq!(group.timers, Timers::default());
    assert_eq!((group.members.len(), group.pending_members.len(), group.pending_sync.len()), (0, 0, 0));
    assert_eq!((group.supported_protocols.len(), group.static_members.len()), (0, 0));
    assert_eq!(group.in_flight, BTreeMap::new());
}

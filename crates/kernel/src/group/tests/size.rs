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

#[test]
fn no_more_member_ids_are_on_their_way_than_the_limit() {
    let mut bench = Bench::new();
    let mut ask = |id: String| {
        let request = bench.request();
        let join = JoinRequest { requires_known_member_id: true, ..joining(&id) };
        let mut out = Vec::new();
        bench.group.step(bench.now(), Event::Join(request, join), &mut out);
        bench.obey(&out);
        bench.joined(request).error.code()
    };
    for id in 0..join::MAX_PENDING_MEMBERS {
        assert_eq!(ask(format!("m{id}")), 79);
    }
    assert_eq!(ask("one too many".to_owned()), 15);
    assert_eq!(bench.group.pending_members.len(), join::MAX_PENDING_MEMBERS);
    bench.wait(i64::from(SESSION_MS));
    assert!(bench.group.pending_members.is_empty() && bench.group.holds_nothing());
}

#[test]
fn a_broker_that_has_no_room_for_another_id_gives_out_none_but_takes_those_that_come_back() {
    let ask = |id: &str, may_be_given_id| JoinRequest {
        requires_known_member_id: true,
        may_be_given_id,
        ..joining(id)
    };
    let mut bench = Bench::new();
    bench.join(ask("a", true));
    let request = bench.join(ask("b", false));
    assert_eq!((bench.joined(request).error.code(), bench.joined(request).member_id.as_str()), (15, ""));
    let request = bench.join(JoinRequest { may_be_given_id: false, ..rejoining("a") });
    bench.wait(3_000);
    assert_eq!(bench.joined(request).error.code(), 0);
    let mut bench = Bench::new();
    bench.join(ask("c", false));
    assert!(bench.group.holds_nothing());
}

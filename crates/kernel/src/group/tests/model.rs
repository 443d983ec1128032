//! Random histories of one group: requests of members that may or may not be known, appends that succeed, fail or take
//! their time, loads, and time that goes on.

use proptest::prelude::*;

use super::*;

/// How an append ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Done,
    Lost,
    /// With an error, although it is in the log.
    InDoubt,
}

#[derive(Clone, Debug)]
enum Act {
    /// Who joins: without an id (perhaps of an instance), or with one that was seen.
    Join {
        who: usize,
        instance: Option<u8>,
        known: bool,
        old: bool,
        metadata: u8,
    },
    Sync {
        who: usize,
        stale: bool,
    },
    Heartbeat {
        who: usize,
    },
    Leave {
        who: usize,
    },
    Commit {
        who: usize,
        simple: bool,
        transaction: Option<i64>,
        offset: i64,
    },
    EndTransaction {
        producer: i64,
        committed: bool,
    },
    Hold(bool),
    EndAppend(End),
    Wait(i64),
    Expire,
    PartitionsDeleted,
    DeleteOffsets,
    Delete,
}

fn acts() -> impl Strategy<Value = Act> {
    let who = 0_usize..6;
    let instance = proptest::option::weighted(0.3, 0_u8..2);
    prop_oneof![
        8 => (who.clone(), instance, any::<bool>(), any::<bool>(), 0_u8..2).prop_map(
            |(who, instance, known, old, metadata)| Act::Join { who, instance, known, old, metadata }
        ),
        8 => (who.clone(), proptest::bool::weighted(0.1)).prop_map(|(who, stale)| Act::Sync { who, stale }),
        4 => who.clone().prop_map(|who| Act::Heartbeat { who }),
        1 => who.clone().prop_map(|who| Act::Leave { who }),
        4 => (who, any::<bool>(), proptest::option::weighted(0.4, 0_i64..2), 0_i64..9).prop_map(
            |(who, simple, transaction, offset)| Act::Commit { who, simple, transaction, offset }
        ),
        2 => (0_i64..2, any::<bool>()).prop_map(|(producer, committed)| Act::EndTransaction { producer, committed }),
        2 => any::<bool>().prop_map(Act::Hold),
        4 => prop_oneof![6 => Just(End::Done), 1 => Just(End::Lost), 1 => Just(End::InDoubt)].prop_map(Act::EndAppend),
        5 => prop_oneof![Just(1_i64), Just(3_000), Just(11_000), Just(61_000)].prop_map(Act::Wait),
        1 => Just(Act::Expire),
        1 => Just(Act::PartitionsDeleted),
        1 => Just(Act::DeleteOffsets),
        1 => Just(Act::Delete),
    ]
}

struct World {
    bench: Bench,
    /// Ids that were given out, newest last.
    ids: Vec<(String, Option<String>)>,
    fresh: u32,
    /// Whether replay must give what is live: not once offsets of an open transaction were deleted, which its marker
    /// brings back in a replay, as in Kafka.
    is_exact: bool,
    /// Whether a commit was told as failed that is in the log.
    has_doubts: bool,
}

impl World {
    fn who(&self, who: usize) -> (String, Option<String>) {
        let newest = self.ids.iter().rev().take(6).nth(who);
        newest.cloned().unwrap_or_else(|| ("stranger".to_owned(), None))
    }

    fn act(&mut self, act: Act) {
        let (generation, told) = (self.bench.group.generation, format!("{act:?}"));
        let (deletes, looks_for_the_end) = (
            matches!(act, Act::PartitionsDeleted | Act::DeleteOffsets | Act::Delete),
            matches!(act, Act::PartitionsDeleted | Act::DeleteOffsets | Act::Expire),
        );
        if deletes {
            self.is_exact &= self.bench.group.open_transactions().next().is_none();
        }
        match act {
            Act::Join { who, instance, known, old, metadata } => {
                self.join(who, instance.map(|it| format!("i{it}")), known, old, metadata);
            }
            Act::Sync { who, stale } => {
                let (id, instance) = self.who(who);
                let request = self.bench.request();
                let assignments =
                    self.bench.group.members.keys().map(|id| (id.clone(), Bytes::from_static(b"x")));
                let assignments = assignments.collect();
                let generation = if stale { generation - 1 } else { generation };
                let instance_id = instance.map(Str::from);
                let sync = SyncRequest { assignments, instance_id, ..sync_of(&id, generation) };
                self.bench.step(Event::Sync(request, sync));
            }
            Act::Heartbeat { who } => {
                let (id, instance) = self.who(who);
                self.bench.heartbeat(&id, instance.as_deref(), generation);
            }
            Act::Leave { who } => {
                let (id, instance) = self.who(who);
                self.bench.leave(&id, instance.as_deref());
            }
            Act::Commit { who, simple, transaction, offset } => {
                let (id, _) = self.who(who);
                let (id, generation) = if simple { (String::new(), -1) } else { (id, generation) };
                let producer = transaction.map(|id| Producer { id, epoch: 0 });
                let offsets = [("t", 0, offset), ("u", 0, offset)];
                self.bench.commit(CommitRequest { producer, ..commit_of(&id, generation, &offsets) });
            }
            Act::EndTransaction { producer, committed } => {
                self.bench.end_transaction(producer, committed);
            }
            Act::Hold(holds) => self.bench.holds_appends = holds,
            Act::EndAppend(end) => self.end_append(end),
            Act::Wait(ms) => self.bench.wait(ms),
            Act::Expire => drop(self.bench.step(Event::ExpireOffsets)),
            Act::PartitionsDeleted => {
                drop(self.bench.step(Event::PartitionsDeleted(Arc::new([tp("u", 0)].into()))))
            }
            Act::DeleteOffsets => {
                let request = self.bench.request();
                self.bench.step(Event::DeleteOffsets(request, [tp("t", 0)].into()));
            }
            Act::Delete => {
                let request = self.bench.request();
                self.bench.step(Event::Delete(request));
            }
        }
        let (holds_nothing, is_forgotten) = (self.bench.group.holds_nothing(), self.bench.is_forgotten);
        assert!(!is_forgotten || deletes || looks_for_the_end, "ended by {told}: {:?}", self.bench.group);
        assert!(!looks_for_the_end || !holds_nothing, "holds nothing after {told}: {:?}", self.bench.group);
        self.judge();
    }

    fn join(&mut self, who: usize, instance: Option<String>, known: bool, old: bool, metadata: u8) {
        let (id, instance) = if known { self.who(who) } else { (String::new(), instance) };
        self.fresh += 1;
        let fresh = format!("m{}", self.fresh);
        if !known {
            self.ids.push((fresh.clone(), instance.clone()));
        }
        let join = JoinRequest {
            member_id: Str::from(id),
            instance_id: instance.map(Str::from),
            protocols: vec![protocol("range", &subscription(&["t"])), protocol("other", &[metadata])],
            requires_known_member_id: !old,
            supports_skipping_assignment: !old,
            ..joining(&fresh)
        };
        self.bench.join(join);
    }

    fn end_append(&mut self, end: End) {
        let Some((append, base)) = self.bench.held.first().copied() else { return };
        let in_flight = self.bench.group.in_flight.get(&append);
        let is_commit = matches!(in_flight, Some(in_flight::InFlight::Commit(_)));
        let is_plain = self.bench.log.iter().any(|(at, batch)| *at == base && batch.producer.is_none());
        let error = match end {
            End::Done => ErrorCode::None,
            // Of other records nobody is told that they were not stored, but for assignments, which are stored again.
            End::InDoubt if is_commit && is_plain => {
                self.has_doubts = true;
                ErrorCode::RequestTimedOut
            }
            End::Lost | End::InDoubt => ErrorCode::NotEnoughReplicas,
        };
        self.bench.end_append(error);
    }

    /// G2 once commits have failed that are in the log: they may be found there, but nothing else that is not live.
    fn judge_doubtful(&self, loaded: &Group) {
        let group = &self.bench.group;
        let live: BTreeMap<_, _> = group.committed().collect();
        let replayed: BTreeMap<_, _> = loaded.committed().collect();
        for (partition, it) in &replayed {
            let is_newer = |live: &&Committed| live.batch_offset < it.batch_offset || live == it;
            let known = match live.get(partition) {
                Some(live) => is_newer(live),
                None => group.offsets.is_uncertain(partition),
            };
            assert!(known, "G2: {partition} is {it:?} in replay only: {group:?}");
        }
        assert!(live.keys().all(|it| replayed.contains_key(it)), "G2: lost in replay: {group:?}");
    }

    /// G2: what is in the log gives the same offsets, and the same members if the group is Stable.
    fn judge_replay(&self) {
        let group = &self.bench.group;
        if !self.is_exact || !group.in_flight.is_empty() {
            return;
        }
        let loaded = self.bench.reloaded();
        let Some(loaded) = loaded.first() else {
            assert!(group.offsets.is_empty(), "G2: replay gives nothing: {group:?}");
            return;
        };
        if self.has_doubts {
            self.judge_doubtful(loaded);
        } else {
            assert_eq!(loaded.offsets, group.offsets, "G2");
        }
        if group.state == State::Stable {
            assert_eq!(loaded.generation, group.generation, "G2");
            assert_eq!(loaded.static_members, group.static_members, "G2");
            assert_eq!(loaded.leader, group.leader, "G2");
            let assignments = |group: &Group| {
                let members = group.members.values();
                members.map(|it| (it.member_id.clone(), it.assignment.clone())).collect::<Vec<_>>()
            };
            assert_eq!(assignments(loaded), assignments(group), "G2");
        }
    }

    fn judge(&mut self) {
        let group = &self.bench.group;
        if self.bench.is_forgotten {
            // The edge drops it; whoever comes next makes a new one.
            assert_eq!(group.state, State::Dead);
            assert!(self.bench.open.is_empty(), "G3: {:?} are never answered", self.bench.open);
            let mut next = Bench::with(*group.settings());
            next.now_ms = self.bench.now_ms;
            next.requests = self.bench.requests;
            next.log = std::mem::take(&mut self.bench.log);
            next.markers = std::mem::take(&mut self.bench.markers);
            next.log_end = self.bench.log_end;
            self.bench = next;
            return;
        }
        self.judge_replay();
        let members = group.members.values();
        let parked = members.map(|it| usize::from(it.awaiting_join.is_some()) + it.awaiting_sync.len());
        let in_flight = group
            .in_flight
            .values()
            .filter(|it| matches!(it, in_flight::InFlight::Commit(_) | in_flight::InFlight::Replacement(_)));
        assert_eq!(self.bench.open.len(), parked.sum::<usize>() + in_flight.count(), "G3: a request is lost");
        let waits = group.members.values().any(Member::is_parked);
        let storing = !group.in_flight.is_empty();
        assert!(!waits || storing || group.deadline().is_some(), "a request waits for nothing: {group:?}");
        if group.state == State::Stable && !storing {
            let new = group.members.values().find(|it| it.is_new);
            assert_eq!(new, None, "a member of a Stable group has not been told so");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn no_history_loses_a_request_or_breaks_a_group(acts in proptest::collection::vec(acts(), 1..120)) {
        let bench = Bench::with(Settings { max_size: 4, offsets_retention: Millis(60_000), ..settings() });
        let mut world = World { bench, ids: Vec::new(), fresh: 0, is_exact: true, has_doubts: false };
        for act in acts {
            world.act(act);
        }
        world.bench.step(Event::Unload);
        prop_assert!(world.bench.open.is_empty(), "G3: {:?} are never answered", world.bench.open);
    }
}

//! Random histories of one leader, its followers and a controller, against what is true of the followers' logs.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Act {
    Append(i64),
    /// A follower copies some records, then fetches.
    Fetch(i32, i64),
    /// A follower loses its tail, as after a lost power, and fetches.
    Lose(i32, i64),
    Wait(i64),
    Live(Vec<i32>),
    MinIsr(i32),
    /// The oldest open change is answered: with its confirmation, or otherwise.
    Answer(u8),
    /// The controller gives a new epoch; by 1, or by more: then others have led, and followers were cut.
    Epoch(bool, Vec<i32>),
}

fn acts() -> impl Strategy<Value = Act> {
    let follower = 2..5;
    let some = || proptest::sample::subsequence(vec![2, 3, 4], 0..=3);
    prop_oneof![
        4 => (0i64..5).prop_map(Act::Append),
        8 => (follower.clone(), 0i64..6).prop_map(|(id, n)| Act::Fetch(id, n)),
        1 => (follower, 1i64..4).prop_map(|(id, n)| Act::Lose(id, n)),
        3 => prop_oneof![Just(1i64), Just(LAG_MS / 2), Just(LAG_MS + 1)].prop_map(Act::Wait),
        1 => some().prop_map(Act::Live),
        1 => (1..5).prop_map(Act::MinIsr),
        4 => (0u8..6).prop_map(Act::Answer),
        1 => (any::<bool>(), some()).prop_map(|(gap, isr)| Act::Epoch(gap, isr)),
    ]
}

/// What is true, whatever the leader believes.
struct World {
    bench: Bench,
    /// The ends of the followers' logs.
    ends: BTreeMap<i32, i64>,
    /// Those that have fetched since they were last forgotten.
    told: BTreeSet<i32>,
    /// The state that the controller has.
    isr: Vec<BrokerId>,
    partition_epoch: i32,
    open: Vec<IsrChange>,
    min_isr: usize,
}

impl World {
    fn new() -> Self {
        let bench = Bench::start(&[1, 2, 3, 4], &[1, 2, 3], 0, 4);
        Self {
            isr: bench.leader.isr().to_vec(),
            partition_epoch: bench.leader.partition_epoch(),
            bench,
            ends: [(2, 4), (3, 4), (4, 0)].into(),
            told: BTreeSet::new(),
            open: Vec::new(),
            min_isr: 1,
        }
    }

    fn act(&mut self, act: &Act) {
        let before = self.bench.clone();
        let commands = match act {
            Act::Append(records) => self.bench.append(*records),
            Act::Fetch(id, copied) => {
                let end = (self.ends[id] + copied).min(self.bench.log_end);
                self.fetch(*id, end)
            }
            // A member of the ISR that loses records breaks the promise; only others are allowed to.
            Act::Lose(id, lost) if !self.is_maximal(BrokerId(*id)) => {
                let end = (self.ends[id] - lost).max(0);
                self.fetch(*id, end)
            }
            Act::Lose(..) => Vec::new(),
            Act::Wait(ms) => self.bench.wait(*ms),
            Act::Live(ids) => self.bench.step(Event::LiveBrokers(live(ids))),
            Act::MinIsr(min_insync_replicas) => {
                self.min_isr = usize::try_from(*min_insync_replicas).unwrap();
                let settings = Settings {
                    replica_lag_time_max: Millis(LAG_MS),
                    min_insync_replicas: *min_insync_replicas,
                };
                self.bench.step(Event::Settings(settings))
            }
            Act::Answer(how) => self.answer(*how),
            Act::Epoch(gap, isr) => self.next_epoch(*gap, isr),
        };
        self.judge(&before, &commands);
        self.open.extend(submitted(&commands));
    }

    fn fetch(&mut self, id: i32, end: i64) -> Vec<Command> {
        self.ends.insert(id, end);
        self.told.insert(id);
        self.bench.fetch(id, end)
    }

    fn answer(&mut self, how: u8) -> Vec<Command> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let change = self.open.remove(0);
        let current = change.leader_epoch == self.bench.leader.leader_epoch();
        let same = change.isr == self.isr;
        let applies = current && change.partition_epoch == self.partition_epoch;
        let answer = match how {
            // Done, or done and the answer lost: then it is asked for again, and is found to be done.
            0..=2 if applies => {
                self.isr.clone_from(&change.isr);
                self.partition_epoch += 1;
                if how == 0 { IsrAnswer::Failed } else { self.state() }
            }
            3 if current && same => self.state(),
            3 | 4 if applies => IsrAnswer::NotAttempted,
            _ if current && same => self.state(),
            5 if current => IsrAnswer::Failed,
            _ => IsrAnswer::Superseded,
        };
        self.bench.answer(change, answer)
    }

    fn state(&self) -> IsrAnswer {
        confirmed(self.bench.leader.leader_epoch().0, self.partition_epoch, &self.isr)
    }

    fn next_epoch(&mut self, gap: bool, isr: &[i32]) -> Vec<Command> {
        let high_watermark = self.bench.high_watermark();
        if gap {
            // Whoever led in between had all that was committed, and nothing more.
            for end in self.ends.values_mut() {
                *end = (*end).min(high_watermark);
            }
            self.told.clear();
        }
        // The controller only ever takes members away.
        self.isr.retain(|id| *id == ME || isr.contains(&id.0));
        let epoch = self.bench.leader.leader_epoch().0 + if gap { 2 } else { 1 };
        self.partition_epoch = self.partition_epoch.max(epoch * 10);
        let mut next = leadership(epoch, &[1, 2, 3, 4], &[]);
        next.isr.clone_from(&self.isr);
        next.partition_epoch = self.partition_epoch;
        self.bench.lead_again(next)
    }

    fn is_maximal(&self, id: BrokerId) -> bool {
        self.isr.contains(&id) || self.bench.leader.is_in_maximal_isr(id)
    }

    fn judge(&self, before: &Bench, commands: &[Command]) {
        let leader = &self.bench.leader;
        assert!(leader.high_watermark() >= before.leader.high_watermark(), "R1");
        let moved = commands.iter().any(|command| matches!(command, Command::AdvanceHighWatermark(_)));
        assert_eq!(moved, leader.high_watermark() != before.leader.high_watermark());
        if moved {
            let min_isr = self.min_isr.min(4);
            assert!(leader.isr().len() >= min_isr, "{} in sync, {min_isr} wanted", leader.isr().len());
            for (id, end) in &self.ends {
                if self.is_maximal(BrokerId(*id)) {
                    assert!(
                        *end >= leader.high_watermark().0,
                        "replica {id} in the ISR ends at {end}: {leader:?}"
                    );
                    assert!(self.told.contains(id), "R3: replica {id} has told nothing since");
                }
            }
        }
        if let Some(change) = submitted(commands) {
            assert!(change.isr.contains(&ME), "R2");
            assert_eq!(change.leader_epoch, leader.leader_epoch());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn what_the_high_watermark_has_passed_is_in_every_log_of_the_isr(
        history in proptest::collection::vec(acts(), 0..60)
    ) {
        let mut world = World::new();
        for act in &history {
            world.act(act);
        }
    }
}

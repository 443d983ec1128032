//! Random histories of a cluster: whatever happens to brokers, leaders and answers, the logs of followers become their
//! leader's, and what was committed is not cut.

use proptest::prelude::*;

use super::world::{LAG_MS, World};
use super::*;

const BROKERS: [i32; 3] = [1, 2, 3];

#[derive(Clone, Debug)]
enum Act {
    /// The leader appends batches of these sizes.
    Append(Vec<usize>),
    /// A follower gets an answer, or its request does and the answer is lost.
    Fetch(i32, bool),
    /// A broker stops, with a high watermark in its checkpoint that lags by some records.
    Crash(i32, i64),
    /// What a stopped broker had not synced is gone: some records at its end.
    LosePower(i32, i64),
    Start(i32),
    /// An election from the ISR, of which some brokers hear only later.
    Elect(i32, Vec<i32>),
    /// An election of anybody who is up.
    ElectUncleanly(i32),
    Inform(i32),
    Wait(i64),
    DeleteRecords(i64),
}

fn broker() -> impl Strategy<Value = i32> {
    proptest::sample::select(&BROKERS[..])
}

fn safe_acts() -> impl Strategy<Value = Act> {
    let unaware = proptest::sample::subsequence(BROKERS.to_vec(), 0..=2);
    prop_oneof![
        4 => proptest::collection::vec(1usize..4, 1..3).prop_map(Act::Append),
        16 => (broker(), proptest::bool::weighted(0.1)).prop_map(|(id, lost)| Act::Fetch(id, lost)),
        2 => (broker(), 0i64..3).prop_map(|(id, lag)| Act::Crash(id, lag)),
        3 => broker().prop_map(Act::Start),
        3 => (broker(), unaware).prop_map(|(id, unaware)| Act::Elect(id, unaware)),
        2 => broker().prop_map(Act::Inform),
        2 => prop_oneof![Just(BACKOFF_MS), Just(LAG_MS + 1)].prop_map(Act::Wait),
        1 => (0i64..4).prop_map(Act::DeleteRecords),
    ]
}

fn all_acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        10 => safe_acts(),
        1 => (broker(), 1i64..4).prop_map(|(id, records)| Act::LosePower(id, records)),
        1 => broker().prop_map(Act::ElectUncleanly),
    ]
}

fn protocols() -> impl Strategy<Value = MetadataVersion> {
    prop_oneof![Just(NEW), Just(ASKING)]
}

struct History {
    world: World,
    records: usize,
    /// What has happened.
    told: Vec<String>,
}

impl History {
    fn new(protocol: MetadataVersion) -> Self {
        let mut world = World::new(protocol, &BROKERS);
        world.most_batches = 2;
        world.elect(1, None, &[]);
        Self { world, records: 0, told: Vec::new() }
    }

    fn act(&mut self, act: &Act) {
        self.act_unchecked(act);
        self.check();
    }

    fn act_unchecked(&mut self, act: &Act) {
        let world = &mut self.world;
        match act {
            Act::Append(sizes) => self.append(sizes),
            Act::Fetch(id, lost) => drop(world.exchange(*id, *lost)),
            Act::Crash(id, lag) if world.is_up(*id) => {
                let checkpoint = world.log(*id).high_watermark - lag;
                world.crash(*id, Some(checkpoint));
            }
            Act::LosePower(id, records) if !world.is_up(*id) => {
                let end = world.log(*id).log_end - records;
                world.lose(*id, end.max(world.log(*id).log_start));
            }
            Act::Start(id) if !world.is_up(*id) => world.start(*id),
            Act::Elect(id, unaware) if world.is_up(*id) && world.isr().contains(id) => {
                let unaware: Vec<_> = unaware.iter().copied().filter(|other| other != id).collect();
                world.elect(*id, None, &unaware);
            }
            Act::ElectUncleanly(id) if world.is_up(*id) => world.elect(*id, None, &[]),
            Act::Inform(id) => world.inform_if_overtaken(*id),
            Act::Wait(ms) => world.wait(*ms),
            Act::DeleteRecords(records) => {
                if let Some(leader) = world.leading() {
                    let log = world.log(leader);
                    let offset = (log.log_start + records).min(log.high_watermark);
                    world.delete_records(leader, offset);
                }
            }
            _ => {}
        }
        self.told.push(format!("> {act:?}"));
        self.told.extend(self.world.take_lines());
    }

    fn append(&mut self, sizes: &[usize]) {
        let Some(leader) = self.world.leading() else { return };
        let mut batches = Vec::new();
        for size in sizes {
            batches.push((0..*size).map(|at| format!("r{}", self.records + at)).collect());
            self.records += size;
        }
        self.world.append(leader, &batches);
    }

    /// R4: two logs that hold the same batch hold the same ones below it, as far as both reach.
    fn check(&self) {
        for id in BROKERS {
            for other in BROKERS {
                let (one, two) = (self.world.log(id), self.world.log(other));
                let start = one.log_start.max(two.log_start);
                let seen = |log: &MemoryLog, end: i64| -> Vec<_> {
                    log.batches.iter().filter(|it| it.last() >= start && it.base <= end).cloned().collect()
                };
                let same = |batch: &&memory::MemoryBatch| {
                    two.batches.iter().any(|it| (it.base, it.epoch) == (batch.base, batch.epoch))
                };
                if let Some(common) = one.batches.iter().rfind(same) {
                    assert_eq!(seen(one, common.base), seen(two, common.base), "R4: {one}\n{two}");
                }
            }
        }
    }

    /// The logs and how they became what they are.
    fn tell(&self) -> String {
        let logs = BROKERS.map(|id| format!("{id}: {}", self.world.log(id)));
        format!("{}\n{}", self.told.join("\n"), logs.join("\n"))
    }

    /// All come back, one of the ISR leads and appends, and everybody copies.
    fn heal(&mut self) {
        for id in BROKERS {
            if !self.world.is_up(id) {
                self.world.start(id);
            }
        }
        let leader = self.world.isr()[0];
        self.world.elect(leader, None, &[]);
        self.append(&[1]);
        self.world.settle();
        self.told.extend(self.world.take_lines());
        self.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn committed_records_are_never_cut_and_all_logs_become_the_leaders(
        protocol in protocols(),
        acts in proptest::collection::vec(safe_acts(), 0..70),
    ) {
        let mut history = History::new(protocol);
        for act in &acts {
            history.act(act);
            prop_assert_eq!(&history.world.confirmed_but_cut, &[], "{}", history.tell());
        }
        history.heal();
        prop_assert_eq!(&history.world.confirmed_but_cut, &[], "{}", history.tell());
        prop_assert!(history.world.is_sound(), "{:?}\n{}", history.world.judge(), history.tell());
    }

    #[test]
    fn all_logs_become_the_leaders_whatever_was_lost_before(
        protocol in protocols(),
        acts in proptest::collection::vec(all_acts(), 0..70),
    ) {
        let mut history = History::new(protocol);
        for act in &acts {
            history.act(act);
        }
        history.heal();
        // A log that was cut inside a batch, because another leader had deleted records up to there, may not fit a third
        // leader's batches. It does not take them then, and says so.
        let judged = history.world.judge();
        let equal = judged[0] == "the logs are equal";
        let told = judged.iter().any(|line| line.ends_with("has given up"));
        prop_assert!(equal || told, "{}", history.tell());
    }
}

/// The histories do contain what they are about: without epochs they find a lost record.
#[test]
fn truncation_by_the_high_watermark_loses_committed_records_in_some_history() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let histories = proptest::collection::vec(safe_acts(), 0..70);
    let loses = (0..2_000).any(|_| {
        let acts = histories.new_tree(&mut runner).unwrap().current();
        let mut history = History::new(WITHOUT_EPOCHS);
        for act in &acts {
            // What such a history does to the order of batches is of no interest here.
            history.act_unchecked(act);
            if !history.world.confirmed_but_cut.is_empty() {
                return true;
            }
        }
        false
    });
    assert!(loses);
}

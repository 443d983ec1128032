//! Random histories: brokers and controllers come and go, answers of the store are late, leaders change their in-sync
//! replicas. Whatever happens, no record that was confirmed is given up, nobody hears what was not written, and when
//! everybody is back the cluster is led.

use proptest::prelude::*;
use wire::types::{BrokerId, TopicPartition};

use super::story::Story;
use crate::controller::values::LeaderAndIsr;

/// Something that happens.
#[derive(Clone, Debug)]
enum Action {
    /// A session ends, and with it the broker.
    Crash(i32),
    /// A broker registers, and its controller stands.
    Start(i32),
    /// A session ends under a broker.
    Expire(i32),
    /// The leader of a partition, if it is alive, asks for other in-sync replicas.
    Alter { partition: usize, replicas: u8 },
    /// A broker asks to be relieved.
    ShutDown(i32),
    /// The next operation of a kind fails.
    Fail(&'static str, &'static str),
    /// The answer to the next operation of a kind is lost, and it is done again.
    Lose(&'static str),
    /// A partition is added to the topic.
    Grow(usize),
    /// Somebody deletes `/controller`.
    NoController,
    /// Time passes.
    Tick,
    /// Some of the events under way reach some controller.
    Deliver(Vec<u8>),
}

const BROKERS: i32 = 3;
const REPLICAS: [&str; 4] = ["1,2,3", "2,3,1", "3,1,2", "1,2"];

fn action() -> impl Strategy<Value = Action> {
    let broker = 1..=BROKERS;
    prop_oneof![
        2 => broker.clone().prop_map(Action::Crash),
        3 => broker.clone().prop_map(Action::Start),
        1 => broker.clone().prop_map(Action::Expire),
        3 => (0..4usize, any::<u8>()).prop_map(|(partition, replicas)| Action::Alter { partition, replicas }),
        1 => broker.prop_map(Action::ShutDown),
        1 => (
            prop::sample::select(vec!["Write", "Read", "Create", "Elect", "Delete"]),
            prop::sample::select(vec!["moved", "lost", "broken"]),
        )
            .prop_map(|(operation, how)| Action::Fail(operation, how)),
        1 => prop::sample::select(vec!["Write", "Create", "Elect"]).prop_map(Action::Lose),
        1 => (0..REPLICAS.len()).prop_map(Action::Grow),
        1 => Just(Action::NoController),
        1 => Just(Action::Tick),
        8 => prop::collection::vec(any::<u8>(), 1..20).prop_map(Action::Deliver),
    ]
}

impl Action {
    fn happen(&self, story: &mut Story) {
        match self {
            Self::Crash(id) => story.happen(&format!("crash {id}")),
            Self::Start(id) if !story.is_registered(BrokerId(*id)) => {
                story.happen(&format!("controller {id}"))
            }
            Self::Start(_) => {}
            Self::Expire(id) if story.is_registered(BrokerId(*id)) => {
                story.happen(&format!("expire {id}"));
                story.happen(&format!("controller {id}"));
            }
            Self::Expire(_) => {}
            Self::Alter { partition, replicas } => {
                let name = TopicPartition::new("t", i32::try_from(*partition).unwrap());
                if let Some(line) = story.stored(&name).and_then(|stored| alter(&name, stored, *replicas)) {
                    story.happen_if_active(&line);
                }
            }
            Self::ShutDown(id) => story.happen_if_active(&format!("shut-down {id}")),
            Self::Fail(operation, how) => story.happen(&format!("fail {operation} {how}")),
            Self::Lose(operation) => story.happen(&format!("lose {operation}")),
            Self::Grow(replicas) => story.happen(&format!("grow t {}", REPLICAS[*replicas])),
            Self::NoController => story.happen("no-controller"),
            Self::Tick => story.happen("tick 400"),
            Self::Deliver(choices) => choices.iter().for_each(|choice| story.deliver(usize::from(*choice))),
        }
    }
}

/// The request of a leader for some of the replicas, itself included.
fn alter(name: &TopicPartition, stored: &LeaderAndIsr, replicas: u8) -> Option<String> {
    let leader = stored.leader;
    if leader == BrokerId::NONE {
        return None;
    }
    let others = (1..=BROKERS).filter(|id| *id != leader.0 && replicas & (1 << id) != 0);
    let isr: Vec<_> = std::iter::once(leader.0).chain(others).map(|id| id.to_string()).collect();
    let (epoch, version) = (stored.leader_epoch, stored.partition_epoch);
    Some(format!("alter {leader} v3 {name} epoch {epoch} isr {} v{version}", isr.join(",")))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 4,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_the_cluster_is_led_when_everybody_is_back(
        actions in prop::collection::vec(action(), 1..80)
    ) {
        let mut story = Story::default();
        story.forbid_unclean_elections();
        for id in 1..=BROKERS {
            story.line(&format!("controller {id}"));
        }
        story.line(&format!("topic t {}", REPLICAS.join(" ")));
        for action in &actions {
            action.happen(&mut story);
        }
        story.forget_faults();
        for id in 1..=BROKERS {
            story.line("tick 2000");
            Action::Crash(id).happen(&mut story);
            Action::Start(id).happen(&mut story);
        }
        for _ in 0..3 {
            story.line("tick 2000");
        }
        story.check_answers();
        let context = story.context_in_office();
        for name in story.partitions() {
            let stored = story.stored(&name).expect("a state");
            prop_assert!(stored.isr.contains(&stored.leader), "{name} is not led: {stored}");
            let known = context.leadership(&name).expect("a leadership");
            // What was read while a replica went offline is known in the reader's name.
            let known = LeaderAndIsr { controller_epoch: stored.controller_epoch, ..known.clone() };
            prop_assert_eq!(&known, stored);
        }
    }
}

//! Random histories of topics that are made and deleted while brokers and controllers come and go. No topic goes before
//! its last log (the model of the store asserts it), and when everybody is back, each one that was to go is gone, without
//! another controller being elected for it.

use proptest::prelude::*;
use wire::types::BrokerId;

use super::parse::topic;
use super::story::Story;

/// Something that happens.
#[derive(Clone, Debug)]
enum Action {
    Create(usize),
    Delete(usize),
    Grow(usize),
    Crash(i32),
    Start(i32),
    Expire(i32),
    ShutDown(i32),
    /// The next deletion of a replica on a broker fails.
    Stumble(i32),
    Fail(&'static str, &'static str),
    NoController,
    Tick,
    Deliver(Vec<u8>),
}

/// Brokers 1 and 2 have a controller; the others are only brokers.
const CONTROLLERS: i32 = 2;
const BROKERS: i32 = 5;
const TOPICS: [&str; 3] = ["topic a 3,4,5 4,5,1", "topic b 3,4", "topic c 5"];
const NAMES: [&str; 3] = ["a", "b", "c"];

/// What happens while one controller stays in office.
fn in_one_term() -> impl Strategy<Value = Action> {
    let (broker, topic) = (CONTROLLERS + 1..=BROKERS, 0..NAMES.len());
    prop_oneof![
        3 => topic.clone().prop_map(Action::Create),
        4 => topic.clone().prop_map(Action::Delete),
        1 => topic.prop_map(Action::Grow),
        2 => broker.clone().prop_map(Action::Crash),
        3 => broker.clone().prop_map(Action::Start),
        1 => broker.clone().prop_map(Action::ShutDown),
        1 => broker.prop_map(Action::Stumble),
        12 => prop::collection::vec(any::<u8>(), 1..10).prop_map(Action::Deliver),
    ]
}

/// Anything.
fn action() -> impl Strategy<Value = Action> {
    let broker = 1..=CONTROLLERS;
    prop_oneof![
        20 => in_one_term(),
        1 => broker.clone().prop_map(Action::Crash),
        2 => broker.clone().prop_map(Action::Start),
        1 => broker.prop_map(Action::Expire),
        1 => (
            prop::sample::select(vec!["Write", "Read", "Create", "DeleteTopic", "Drop", "Elect"]),
            prop::sample::select(vec!["moved", "lost", "broken"]),
        )
            .prop_map(|(operation, how)| Action::Fail(operation, how)),
        1 => Just(Action::NoController),
        1 => Just(Action::Tick),
    ]
}

impl Action {
    fn happen(&self, story: &mut Story) {
        match self {
            Self::Create(at) if !story.world.topics.contains_key(&topic(NAMES[*at])) => {
                story.happen(TOPICS[*at])
            }
            Self::Delete(at) => story.happen(&format!("delete {}", NAMES[*at])),
            Self::Grow(at) if story.world.topics.contains_key(&topic(NAMES[*at])) => {
                story.happen(&format!("grow {} 2,1", NAMES[*at]));
            }
            Self::Create(_) | Self::Grow(_) => {}
            Self::Crash(id) => story.happen(&format!("crash {id}")),
            Self::Start(id) if !story.is_registered(BrokerId(*id)) => {
                let kind = if *id <= CONTROLLERS { "controller" } else { "brokers" };
                story.happen(&format!("{kind} {id}"));
            }
            Self::Start(_) => {}
            Self::Expire(id) if story.is_registered(BrokerId(*id)) => {
                story.happen(&format!("expire {id}"));
                story.happen(&format!("controller {id}"));
            }
            Self::Expire(_) => {}
            Self::ShutDown(id) => story.happen_if_active(&format!("shut-down {id}")),
            Self::Stumble(id) => {
                story.receivers.get_or_insert_default().clumsy.insert(BrokerId(*id));
            }
            Self::Fail(operation, how) => story.happen(&format!("fail {operation} {how}")),
            Self::NoController => story.happen("no-controller"),
            Self::Tick => story.happen("tick 400"),
            Self::Deliver(choices) => choices.iter().for_each(|choice| story.deliver(usize::from(*choice))),
        }
    }
}

/// The brokers with a controller are started anew, and one of them takes office.
fn begin_a_term(story: &mut Story) {
    story.forget_faults();
    for id in 1..=CONTROLLERS {
        story.line("tick 2000");
        story.line(&format!("crash {id}"));
        story.line(&format!("controller {id}"));
    }
    for _ in 0..3 {
        story.line("tick 2000");
    }
}

/// The other brokers are started anew, and stumble no more; all that is under way arrives.
fn bring_everybody_back(story: &mut Story) {
    story.receivers.get_or_insert_default().clumsy.clear();
    for id in CONTROLLERS + 1..=BROKERS {
        story.line(&format!("crash {id}"));
        story.line(&format!("brokers {id}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_a_topic_that_is_to_go_is_gone_when_everybody_is_back(
        actions in prop::collection::vec(action(), 1..60),
        last_term in prop::collection::vec(in_one_term(), 1..60),
    ) {
        let mut story = Story::default();
        story.receivers = Some(Default::default());
        (1..=BROKERS).for_each(|id| Action::Start(id).happen(&mut story));
        story.line("tick 0");
        actions.iter().for_each(|action| action.happen(&mut story));
        begin_a_term(&mut story);
        last_term.iter().for_each(|action| action.happen(&mut story));
        bring_everybody_back(&mut story);
        story.check_answers();
        prop_assert!(story.world.admin.deletions.is_empty(), "not gone: {:?}", story.world.admin.deletions);
        let context = story.context_in_office();
        let deletions = &context.deletions;
        prop_assert!(deletions.queued.is_empty() && deletions.started.is_empty() && deletions.ineligible.is_empty());
        let known: Vec<_> = context.topics().collect();
        prop_assert_eq!(&known, &story.world.topics.keys().collect::<Vec<_>>());
        for (_, partition) in &story.world.logs {
            prop_assert!(known.contains(&&partition.topic), "a log of {} is left", partition);
        }
        for (partition, known) in context.partitions() {
            let leader = known.leadership.as_ref().map(|state| state.leader);
            prop_assert!(leader.is_some_and(|leader| leader != BrokerId::NONE), "{} is not led", partition);
        }
    }
}

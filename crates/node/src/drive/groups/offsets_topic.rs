//! How many partitions `__consumer_offsets` has, which decides where a group is kept.
//!
//! All brokers must use the same number, and none may change it while it serves: groups would be looked for elsewhere. So
//! it is the store's, which holds the whole assignment from the creation on; the image shows only partitions that have had
//! a leader. It is read at the start, before a partition is led, and when the image first shows the topic; until it is
//! known nobody is told who coordinates. It belongs to one topic id: a topic that is made again is read again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::metadata_image::{MetadataImage, TopicImage};
use kernel::topic_name::CONSUMER_OFFSETS;
use metadata::store::{Request, Response, StoreError};
use metadata::znode::topic::{self, TopicAssignment};
use wire::types::{TopicId, TopicName};

use crate::broker::Broker;

/// The pause before the store is asked again by requests that need the number, in milliseconds.
const ASK_PAUSE_MS: i64 = 100;

/// The topic as it was first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Its id, if it has one.
    id: Option<TopicId>,
    /// How many partitions it had then.
    partitions: i32,
}

impl Seen {
    /// The topic as the store has it.
    pub(crate) fn of(assignment: &TopicAssignment) -> Option<Self> {
        let last = *assignment.partitions.keys().next_back()?;
        Some(Self { id: assignment.topic_id.filter(|id| !id.is_zero()), partitions: last.saturating_add(1) })
    }

    /// The topic as the image shows it; none if it cannot be the whole.
    fn shown(topic: &TopicImage) -> Option<Self> {
        let last = *topic.partitions.keys().next_back()?;
        let partitions = last.saturating_add(1);
        let is_whole = usize::try_from(partitions) == Ok(topic.partitions.len());
        is_whole.then_some(Self { id: Some(topic.id).filter(|id| !id.is_zero()), partitions })
    }

    /// Whether it may be the topic of this id; zero if that is not known.
    fn may_be(&self, id: TopicId) -> bool {
        id.is_zero() || self.id.is_none_or(|known| known == id)
    }
}

/// What is known of the topic.
#[derive(Debug, Default)]
pub(super) struct OffsetsTopic(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    seen: Option<Seen>,
    /// How often it was forgotten: what was asked before that does not count.
    forgotten: u64,
    /// When a request asked last, in milliseconds on the monotonic clock.
    asked_ms: Option<i64>,
}

impl OffsetsTopic {
    /// What was found at the start.
    pub(super) fn new(seen: Option<Seen>) -> Self {
        Self(Mutex::new(State { seen, ..State::default() }))
    }

    /// How many partitions it has, if that is known of the topic that the image shows.
    pub(super) fn partitions(&self, image: &MetadataImage) -> Option<i32> {
        self.of(image.topic(CONSUMER_OFFSETS).map_or(TopicId::ZERO, |topic| topic.id))
    }

    fn of(&self, id: TopicId) -> Option<i32> {
        self.lock().seen.filter(|seen| seen.may_be(id)).map(|seen| seen.partitions)
    }

    /// The topic is deleted.
    pub(super) fn forget(&self) {
        let mut state = self.lock();
        state.seen = None;
        state.forgotten = state.forgotten.wrapping_add(1);
    }

    /// The store was asked after the topic had been forgotten `forgotten` times.
    fn learned(&self, forgotten: u64, seen: Seen) {
        let mut state = self.lock();
        let is_same = |before: Seen| before.id == seen.id;
        if state.forgotten == forgotten && !state.seen.is_some_and(is_same) {
            state.seen = Some(seen);
        }
    }

    /// Whether a request is to ask the store.
    fn is_time_to_ask(&self, now_ms: i64) -> bool {
        let mut state = self.lock();
        let is_due = state.asked_ms.is_none_or(|asked_ms| now_ms.saturating_sub(asked_ms) >= ASK_PAUSE_MS);
        if is_due {
            state.asked_ms = Some(now_ms);
        }
        is_due
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the number must be read before a partition of this topic is led; the id is zero if it is not known.
pub(crate) fn needs_to_learn(broker: &Broker, topic: &TopicName, id: TopicId) -> bool {
    topic.as_str() == CONSUMER_OFFSETS && broker.groups().offsets_topic.of(id).is_none()
}

/// Reads the number, then goes on, on a thread for work: whether it is known now or not.
pub(crate) fn learn(broker: &Arc<Broker>, then: impl FnOnce() + Send + 'static) {
    let broker = broker.clone();
    read(&broker.clone(), move || broker.run_job(then));
}

/// Has the number read, unless that has just been asked for.
pub(super) fn learn_by_and_by(broker: &Arc<Broker>, image: &MetadataImage) {
    if image.topic(CONSUMER_OFFSETS).is_some()
        && broker.groups().offsets_topic.is_time_to_ask(broker.now().mono_ms)
    {
        read(broker, || {});
    }
}

fn read(broker: &Arc<Broker>, then: impl FnOnce() + Send + 'static) {
    let forgotten = broker.groups().offsets_topic.lock().forgotten;
    let broker = broker.clone();
    let path = topic::path(&TopicName::from(CONSUMER_OFFSETS));
    let request = Request::get(path);
    broker.store().clone().submit(
        request,
        Box::new(move |answer| {
            if let Some(seen) = seen_in(&broker.image(), answer) {
                broker.groups().offsets_topic.learned(forgotten, seen);
            }
            then();
        }),
    );
}

fn seen_in(image: &MetadataImage, answer: Result<Response, StoreError>) -> Option<Seen> {
    match answer {
        Ok(Response::Data { data, .. }) => match TopicAssignment::decode(data.as_deref()) {
            Ok(assignment) => Seen::of(&assignment),
            Err(error) => {
                tracing::error!(topic = CONSUMER_OFFSETS, %error, "the topic of offsets cannot be read: no group is served");
                None
            }
        },
        // It is on its way out; until the controller says so, it is what is shown.
        Err(error) if error.is_no_node() => {
            image.topic(CONSUMER_OFFSETS).and_then(|topic| Seen::shown(topic))
        }
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(topic = CONSUMER_OFFSETS, %error, "the topic of offsets cannot be read yet");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::metadata_image::PartitionImage;
    use metadata::znode::topic::PartitionAssignment;
    use wire::types::{BrokerId, ControllerEpoch, LeaderEpoch};

    use super::*;

    const ID: TopicId = TopicId([1; 16]);
    const NEXT: TopicId = TopicId([2; 16]);

    fn seen(id: TopicId, partitions: i32) -> Seen {
        Seen { id: Some(id), partitions }
    }

    #[test]
    fn all_partitions_of_the_assignment_count() {
        let none = || PartitionAssignment::of(Vec::new());
        let partitions = [0, 1, 3].into_iter().map(|index| (index, none())).collect();
        let assignment = TopicAssignment { topic_id: Some(ID), partitions };
        assert_eq!(Seen::of(&assignment), Some(seen(ID, 4)));
        assert_eq!(Seen::of(&TopicAssignment::default()), None);
    }

    #[test]
    fn a_picture_that_lacks_a_partition_tells_no_number() {
        let led = PartitionImage {
            leader: BrokerId(0),
            leader_epoch: LeaderEpoch(0),
            partition_epoch: 0,
            controller_epoch: ControllerEpoch(1),
            replicas: vec![BrokerId(0)],
            isr: vec![BrokerId(0)],
            offline: Vec::new(),
        };
        let shown = |indexes: &[i32]| {
            let partitions = indexes.iter().map(|index| (*index, led.clone())).collect();
            Seen::shown(&TopicImage { name: TopicName::from(CONSUMER_OFFSETS), id: ID, partitions })
        };
        assert_eq!(shown(&[0, 1, 2]), Some(seen(ID, 3)));
        assert_eq!((shown(&[0, 2]), shown(&[1]), shown(&[])), (None, None, None));
    }

    #[test]
    fn the_number_stays_until_the_topic_is_another_one() {
        let topic = OffsetsTopic::default();
        assert_eq!(topic.of(ID), None);
        topic.learned(0, seen(ID, 50));
        topic.learned(0, seen(ID, 60));
        assert_eq!((topic.of(ID), topic.of(TopicId::ZERO), topic.of(NEXT)), (Some(50), Some(50), None));
        topic.learned(0, seen(NEXT, 60));
        assert_eq!((topic.of(ID), topic.of(NEXT)), (None, Some(60)));
    }

    #[test]
    fn what_was_asked_before_a_deletion_is_not_believed_after_it() {
        let topic = OffsetsTopic::default();
        topic.learned(0, seen(ID, 50));
        topic.forget();
        topic.learned(0, seen(ID, 50));
        assert_eq!(topic.of(TopicId::ZERO), None);
        topic.learned(1, seen(NEXT, 60));
        assert_eq!(topic.of(NEXT), Some(60));
    }

    #[test]
    fn requests_do_not_ask_all_the_time() {
        let topic = OffsetsTopic::default();
        assert!(topic.is_time_to_ask(1_000));
        assert!(!topic.is_time_to_ask(1_000 + ASK_PAUSE_MS - 1));
        assert!(topic.is_time_to_ask(1_000 + ASK_PAUSE_MS));
    }
}

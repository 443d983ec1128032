//! The group coordinator: the groups whose partition of `__consumer_offsets` this broker leads (KIP-62, KIP-211, KIP-394).
//!
//! A group's decisions are `kernel::group`'s. Here a request finds its group ([`ask`]), what the group wants is done
//! ([`slot`], [`obey`]), and groups come and go with the leadership of their partition ([`elected`], [`resigned`]): they
//! are read from its log before anybody is served ([`load`]).

mod given_out;
mod load;
mod meters;
mod obey;
mod offsets_topic;
mod registry;
mod slot;
mod unused;
mod writers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kernel::group::absent::{WhenAbsent, without_group};
use kernel::group::gate::{Api, Ownership, gate};
use kernel::group::{Answer, Event, Group, Overview, RequestId, Settings, State, id};
use kernel::metadata_image::MetadataImage;
use kernel::topic_name::CONSUMER_OFFSETS;
use wire::Str;
use wire::batch::{Compression, CompressionType};
use wire::error_code::ErrorCode;
use wire::types::{LeaderEpoch, Millis, Now, TopicPartition};

pub(crate) use self::meters::{Meter, Meters};
pub(crate) use self::offsets_topic::{Seen, learn, needs_to_learn};

use self::given_out::GivenOut;
use self::load::Loads;
use self::offsets_topic::OffsetsTopic;
use self::registry::{Groups, Registry};
use self::slot::Slot;
use self::unused::Unused;
use self::writers::Writers;
use crate::broker::{Broker, BrokerState};
use crate::config::KafkaConfig;

/// The groups of this broker, and all that is needed to serve them.
pub(crate) struct GroupCoordinator {
    settings: Arc<Settings>,
    writing: Writing,
    load_buffer_bytes: usize,
    offsets_topic: OffsetsTopic,
    registry: Registry,
    loads: Loads,
    writers: Writers,
    given_out: GivenOut,
    unused: Unused,
    requests: AtomicU64,
    meters: Meters,
}

/// How records of groups are written.
#[derive(Clone, Copy, Debug)]
struct Writing {
    acks_all: bool,
    timeout_ms: i64,
    compression: Compression,
}

impl GroupCoordinator {
    /// A coordinator that leads nothing yet. `seen`: the topic of offsets, if the store has one.
    pub(crate) fn new(config: &KafkaConfig, seen: Option<Seen>, now: Now) -> Self {
        let codec =
            u8::try_from(config.offsets_topic_compression_codec).ok().and_then(CompressionType::from_id);
        Self {
            settings: Arc::new(settings(config)),
            writing: Writing {
                acks_all: config.offsets_commit_required_acks == -1,
                timeout_ms: i64::from(config.offsets_commit_timeout_ms),
                compression: codec.unwrap_or(CompressionType::None).into(),
            },
            load_buffer_bytes: config.offsets_load_buffer_size,
            offsets_topic: OffsetsTopic::new(seen),
            registry: Registry::default(),
            loads: Loads::default(),
            writers: Writers::default(),
            given_out: GivenOut::default(),
            unused: Unused::default(),
            requests: AtomicU64::new(0),
            meters: Meters::new(now.mono_ms),
        }
    }

    /// The meters.
    pub(crate) fn meters(&self) -> &Meters {
        &self.meters
    }

    /// Whether one more new member may be given an id to come back with.
    pub(crate) fn may_give_out_id(&self) -> bool {
        self.given_out.has_room()
    }

    /// Forgets the groups, and those who wait for them.
    pub(crate) fn let_go(&self) {
        self.registry.let_go();
        self.unused.let_go();
    }

    /// Lets each group be looked at, one after the other; it is locked meanwhile.
    pub(crate) fn look_at_each(&self, mut look: impl FnMut(&Group)) {
        for slot in self.registry.slots() {
            slot.look(&mut look);
        }
    }

    /// How many groups there are in each state, and how many offsets they have committed.
    pub(crate) fn counts(&self) -> (BTreeMap<State, usize>, usize) {
        let mut states: BTreeMap<_, _> = State::ALL.into_iter().map(|state| (state, 0)).collect();
        let mut offsets = 0_usize;
        for slot in self.registry.slots() {
            let (state, committed) = slot.look(|group| (group.state(), group.committed().count()));
            *states.entry(state).or_default() += 1;
            offsets = offsets.saturating_add(committed);
        }
        (states, offsets)
    }
}

fn settings(config: &KafkaConfig) -> Settings {
    Settings {
        min_session_timeout_ms: config.group_min_session_timeout_ms,
        max_session_timeout_ms: config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms: config.group_initial_rebalance_delay_ms,
        max_size: config.group_max_size,
        offset_metadata_max: config.offset_metadata_max_bytes,
        offsets_retention: Millis(i64::from(config.offsets_retention_minutes).saturating_mul(60_000)),
        inter_broker_protocol: config.inter_broker_protocol_version,
    }
}

/// Which partition of `__consumer_offsets` keeps the group; none as long as it is not known how many there are.
pub(crate) fn partition_of(broker: &Arc<Broker>, image: &MetadataImage, group_id: &str) -> Option<i32> {
    let count = broker.groups().offsets_topic.partitions(image);
    if count.is_none() {
        offsets_topic::learn_by_and_by(broker, image);
    }
    count.map(|count| id::partition_of(group_id, count))
}

/// Hands a request to its group. `done` gets the group's answer, or what the gate says; before this returns or later.
pub(crate) fn ask(
    broker: &Arc<Broker>,
    api: Api,
    group_id: &Str,
    event: impl FnOnce(RequestId) -> Event,
    done: impl FnOnce(Result<Answer, ErrorCode>) + Send + 'static,
) {
    let groups = broker.groups();
    let (index, found) = match find(broker, api, group_id) {
        Ok(found) => found,
        Err(error) => return done(Err(error)),
    };
    let request = RequestId(groups.requests.fetch_add(1, Ordering::Relaxed));
    let event = event(request);
    let slot = match found {
        Some(slot) => slot,
        None => match without_group(&groups.settings, &event) {
            WhenAbsent::Answer(_, answer) => return done(Ok(answer)),
            WhenAbsent::Ignore => return done(Err(ErrorCode::UnknownServerError)),
            WhenAbsent::Create => match make(broker, index, group_id) {
                Ok(slot) => slot,
                Err(ownership) => {
                    let error = gate(api, group_id, ownership).unwrap_or(ErrorCode::NotCoordinator);
                    return done(Err(error));
                }
            },
        },
    };
    slot.ask(broker, request, event, Box::new(move |answer| done(Ok(answer))));
}

/// Looks at a group; there may be none of that name.
///
/// # Errors
/// What the gate says.
pub(crate) fn look<T>(
    broker: &Arc<Broker>,
    api: Api,
    group_id: &str,
    look: impl FnOnce(Option<&Group>) -> T,
) -> Result<T, ErrorCode> {
    look_at(|| find(broker, api, group_id).map(|(_, slot)| slot), look)
}

/// Looks at what `find` finds. A group that has ended since was deleted, or is coordinated elsewhere: to its offsets that
/// makes all the difference, so whoever meets one asks again.
fn look_at<T>(
    find: impl Fn() -> Result<Option<Arc<Slot>>, ErrorCode>,
    look: impl FnOnce(Option<&Group>) -> T,
) -> Result<T, ErrorCode> {
    let mut look = look;
    let mut dead: Option<Arc<Slot>> = None;
    loop {
        let slot = match find()? {
            Some(slot) if dead.as_ref().is_none_or(|dead| !Arc::ptr_eq(dead, &slot)) => slot,
            _ => return Ok(look(None)),
        };
        let looked = slot.look(|group| match group.state() {
            State::Dead => Err(look),
            _ => Ok(look(Some(group))),
        });
        match looked {
            Ok(told) => return Ok(told),
            Err(back) => look = back,
        }
        dead = Some(slot);
    }
}

/// All groups of this broker, as far as they are loaded, and the error if that is not all.
pub(crate) fn list(broker: &Broker) -> (ErrorCode, Vec<Overview>) {
    if is_inactive(broker) {
        return (ErrorCode::CoordinatorNotAvailable, Vec::new());
    }
    let registry = &broker.groups().registry;
    let error =
        if registry.is_any_loading() { ErrorCode::CoordinatorLoadInProgress } else { ErrorCode::None };
    (error, registry.slots().iter().map(|slot| slot.look(Group::overview)).collect())
}

/// The partition of a group, and the group if it is there.
///
/// # Errors
/// What the gate says.
fn find(broker: &Arc<Broker>, api: Api, group_id: &str) -> Result<(i32, Option<Arc<Slot>>), ErrorCode> {
    let image = broker.image();
    let (ownership, index, slot) = match partition_of(broker, &image, group_id) {
        _ if is_inactive(broker) => (Ownership::Inactive, -1, None),
        Some(index) => {
            let (ownership, slot) = broker.groups().registry.find(index, group_id);
            (ownership, index, slot)
        }
        // There is a coordinator, but who it is, is not known here yet.
        None if image.topic(CONSUMER_OFFSETS).is_some() => (Ownership::Inactive, -1, None),
        None => (Ownership::Elsewhere, -1, None),
    };
    match gate(api, group_id, ownership) {
        Some(error) => Err(error),
        None => Ok((index, slot)),
    }
}

/// Whether the broker is going, or gone.
fn is_inactive(broker: &Broker) -> bool {
    broker.is_shutting_down() || broker.state() == BrokerState::NotRunning as u8
}

fn make(broker: &Broker, index: i32, group_id: &Str) -> Result<Arc<Slot>, Ownership> {
    let groups = broker.groups();
    groups.registry.find_or_make(index, group_id, |home| {
        let group = Group::new(group_id, groups.settings.clone(), broker.now());
        Slot::new(group, index, home)
    })
}

/// This broker leads a partition, in `epoch`: if it is one of groups, they are loaded, unless they are here already.
pub(crate) fn elected(broker: &Arc<Broker>, partition: &TopicPartition, epoch: LeaderEpoch) {
    if partition.topic.as_str() == CONSUMER_OFFSETS
        && let Some(load) = broker.groups().registry.elected(partition.partition, epoch)
    {
        load::begin(broker, load);
    }
}

/// This broker does not lead a partition any more, by a decision of `epoch` if that is known: if it is one of groups,
/// they end here, and whoever waits for one of them is sent to look for the coordinator.
pub(crate) fn resigned(broker: &Arc<Broker>, partition: &TopicPartition, epoch: Option<LeaderEpoch>) {
    if partition.topic.as_str() == CONSUMER_OFFSETS {
        unload(broker, partition, broker.groups().registry.resigned(partition.partition, epoch));
    }
}

/// The log of a partition is deleted here, perhaps with the whole topic: if it is one of groups, they end here, and what
/// was known of it does not count for the next one of its name.
pub(crate) fn log_deleted(broker: &Arc<Broker>, partition: &TopicPartition, with_topic: bool) {
    if partition.topic.as_str() != CONSUMER_OFFSETS {
        return;
    }
    if with_topic {
        broker.groups().offsets_topic.forget();
    }
    unload(broker, partition, broker.groups().registry.deleted(partition.partition));
}

fn unload(broker: &Arc<Broker>, partition: &TopicPartition, groups: Groups) {
    if !groups.is_empty() {
        tracing::info!(%partition, groups = groups.len(), "the groups of a partition are coordinated elsewhere");
    }
    for slot in groups.values() {
        slot.unload(broker);
    }
}

/// Offsets that nobody has needed for long enough go. May block on disks.
pub(crate) fn expire_offsets(broker: &Arc<Broker>) {
    for slot in broker.groups().registry.slots() {
        slot.tell(broker, Event::ExpireOffsets);
    }
}

/// Partitions are gone, and with them what groups have committed for them. When this returns no group remembers any of
/// that, so that a topic of the same name that is made next begins with none. May block on disks.
pub(crate) fn partitions_deleted(broker: &Arc<Broker>, partitions: BTreeSet<TopicPartition>) {
    if partitions.is_empty() {
        return;
    }
    let slots = broker.groups().registry.partitions_deleted(&partitions);
    let partitions = Arc::new(partitions);
    for slot in slots {
        slot.tell(broker, Event::PartitionsDeleted(partitions.clone()));
    }
}

/// The image has changed: it may show the topic of offsets, or do so no more.
pub(crate) fn image_changed(broker: &Arc<Broker>, before: &MetadataImage, after: &MetadataImage) {
    match (before.topic(CONSUMER_OFFSETS), after.topic(CONSUMER_OFFSETS)) {
        (Some(_), None) => broker.groups().offsets_topic.forget(),
        (_, Some(_)) if broker.groups().offsets_topic.partitions(after).is_none() => {
            offsets_topic::learn_by_and_by(broker, after);
        }
        _ => {}
    }
}

impl std::fmt::Debug for GroupCoordinator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupCoordinator").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::slot::Home;
    use super::*;

    pub(super) fn slot(is_dead: bool) -> Arc<Slot> {
        named("g", is_dead)
    }

    pub(super) fn named(group_id: &str, is_dead: bool) -> Arc<Slot> {
        let (config, _) = KafkaConfig::without_file(&[]).unwrap();
        let now = Now { mono_ms: 0, wall_ms: 0 };
        let mut group = Group::new(&Str::from(group_id), Arc::new(settings(&config)), now);
        if is_dead {
            group.step(now, Event::Unload, &mut Vec::new());
        }
        Slot::new(group, 0, Home::default())
    }

    /// What is looked at if these are found, one after the other.
    fn state(found: &[Result<Option<&Arc<Slot>>, ErrorCode>]) -> Result<Option<State>, ErrorCode> {
        let found: Vec<_> = found.iter().rev().map(|it| it.map(|slot| slot.cloned())).collect();
        let found = RefCell::new(found);
        look_at(|| found.borrow_mut().pop().unwrap(), |group| group.map(Group::state))
    }

    #[test]
    fn a_group_that_ends_between_finding_and_looking_is_not_taken_for_one_without_offsets() {
        let (dead, live) = (slot(true), slot(false));
        let elsewhere = ErrorCode::NotCoordinator;
        assert_eq!(state(&[Ok(Some(&live))]), Ok(Some(State::Empty)));
        assert_eq!(state(&[Ok(Some(&dead)), Err(elsewhere)]), Err(elsewhere));
        assert_eq!(state(&[Ok(Some(&dead)), Ok(Some(&live))]), Ok(Some(State::Empty)));
        assert_eq!(state(&[Ok(Some(&dead)), Ok(Some(&slot(true))), Err(elsewhere)]), Err(elsewhere));
    }

    #[test]
    fn a_group_that_was_deleted_is_none() {
        let dead = slot(true);
        assert_eq!(state(&[Ok(Some(&dead)), Ok(None)]), Ok(None));
        // It is not out of the registry yet.
        assert_eq!(state(&[Ok(Some(&dead)), Ok(Some(&dead))]), Ok(None));
    }
}

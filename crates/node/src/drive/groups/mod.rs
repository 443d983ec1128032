//! The group coordinator: the groups whose partition of `__consumer_offsets` this broker leads (KIP-62, KIP-211, KIP-394).
//!
//! A group's decisions are `kernel::group`'s. Here a request finds its group ([`ask`]), what the group wants is done
//! ([`slot`], [`obey`]), and groups come and go with the leadership of their partition ([`elected`], [`resigned`]): they
//! are read from its log before anybody is served ([`load`]).

mod load;
mod meters;
mod obey;
mod registry;
mod slot;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

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

use self::load::Loads;
use self::registry::Registry;
use self::slot::Slot;
use crate::broker::{Broker, BrokerState};
use crate::config::KafkaConfig;

/// The groups of this broker, and all that is needed to serve them.
pub(crate) struct GroupCoordinator {
    settings: Arc<Settings>,
    writing: Writing,
    load_buffer_bytes: usize,
    /// `offsets.topic.num.partitions`, which counts until the topic has been seen.
    partitions_if_new: i32,
    /// How many partitions the topic had when it was first seen. It must never change: groups would be looked for elsewhere.
    partitions: OnceLock<i32>,
    registry: Registry,
    loads: Loads,
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
    /// A coordinator that leads nothing yet.
    pub(crate) fn new(config: &KafkaConfig, now: Now) -> Self {
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
            partitions_if_new: config.offsets_topic_num_partitions,
            partitions: OnceLock::new(),
            registry: Registry::default(),
            loads: Loads::default(),
            requests: AtomicU64::new(0),
            meters: Meters::new(now.mono_ms),
        }
    }

    /// The meters.
    pub(crate) fn meters(&self) -> &Meters {
        &self.meters
    }

    /// Which partition of `__consumer_offsets` keeps the group.
    pub(crate) fn partition_of(&self, image: &MetadataImage, group_id: &str) -> i32 {
        let count = match self.partitions.get() {
            Some(count) => *count,
            None => match image.topic(CONSUMER_OFFSETS) {
                Some(topic) => {
                    let seen = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
                    *self.partitions.get_or_init(|| seen)
                }
                None => self.partitions_if_new,
            },
        };
        id::partition_of(group_id, count)
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

/// Hands a request to its group. `done` gets the group's answer, or what the gate says; before this returns or later.
pub(crate) fn ask(
    broker: &Arc<Broker>,
    api: Api,
    group_id: &Str,
    event: impl FnOnce(RequestId) -> Event,
    done: impl FnOnce(Result<Answer, ErrorCode>) + Send + 'static,
) {
    let groups = broker.groups();
    let index = groups.partition_of(&broker.image(), group_id);
    let (ownership, found) = find(broker, index, group_id);
    if let Some(error) = gate(api, group_id, ownership) {
        return done(Err(error));
    }
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
    broker: &Broker,
    api: Api,
    group_id: &str,
    look: impl FnOnce(Option<&Group>) -> T,
) -> Result<T, ErrorCode> {
    let index = broker.groups().partition_of(&broker.image(), group_id);
    let (ownership, found) = find(broker, index, group_id);
    if let Some(error) = gate(api, group_id, ownership) {
        return Err(error);
    }
    Ok(match found {
        Some(slot) => slot.look(|group| look(Some(group))),
        None => look(None),
    })
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

fn find(broker: &Broker, index: i32, group_id: &str) -> (Ownership, Option<Arc<Slot>>) {
    if is_inactive(broker) {
        return (Ownership::Inactive, None);
    }
    broker.groups().registry.find(index, group_id)
}

/// Whether the broker is going, or gone.
fn is_inactive(broker: &Broker) -> bool {
    broker.is_shutting_down() || broker.state() == BrokerState::NotRunning as u8
}

fn make(broker: &Broker, index: i32, group_id: &Str) -> Result<Arc<Slot>, Ownership> {
    let groups = broker.groups();
    groups.registry.find_or_make(index, group_id, |led_since| {
        let group = Group::new(group_id, groups.settings.clone(), broker.now());
        Slot::new(group, index, led_since)
    })
}

/// This broker leads a partition, in `epoch`: if it is one of groups, they are loaded, unless they are here already.
pub(crate) fn elected(broker: &Arc<Broker>, partition: &TopicPartition, epoch: LeaderEpoch) {
    if partition.topic.as_str() == CONSUMER_OFFSETS
        && broker.groups().registry.elected(partition.partition, epoch)
    {
        load::begin(broker, partition.partition, epoch);
    }
}

/// This broker does not lead a partition any more, by a decision of `epoch` if that is known: if it is one of groups,
/// they end here, and whoever waits for one of them is sent to look for the coordinator.
pub(crate) fn resigned(broker: &Arc<Broker>, partition: &TopicPartition, epoch: Option<LeaderEpoch>) {
    if partition.topic.as_str() != CONSUMER_OFFSETS {
        return;
    }
    let slots = broker.groups().registry.resigned(partition.partition, epoch);
    if !slots.is_empty() {
        tracing::info!(%partition, groups = slots.len(), "the groups of a partition are coordinated elsewhere");
    }
    for slot in slots {
        slot.tell(broker, Event::Unload);
    }
}

/// Offsets that nobody has needed for long enough go. May block on disks.
pub(crate) fn expire_offsets(broker: &Arc<Broker>) {
    for slot in broker.groups().registry.slots() {
        slot.tell(broker, Event::ExpireOffsets);
    }
}

/// Partitions are gone, and with them what groups have committed for them.
pub(crate) fn partitions_deleted(broker: &Arc<Broker>, partitions: BTreeSet<TopicPartition>) {
    if partitions.is_empty() || broker.groups().registry.is_empty() {
        return;
    }
    let then = broker.clone();
    broker.run_job(move || {
        for slot in then.groups().registry.slots() {
            slot.tell(&then, Event::PartitionsDeleted(partitions.clone()));
        }
    });
}

impl std::fmt::Debug for GroupCoordinator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupCoordinator").field("settings", &self.settings).finish_non_exhaustive()
    }
}

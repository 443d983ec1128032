//! A Fetch request in the one form that the rest works on: which partitions, how much, how long to wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use kernel::fetch::session::{self, FetchPartition, PartitionKey, Session, SessionError, TopicRef};
use kernel::planted::Faults;
use storage::partition_log::ReadBound;
use wire::error_code::ErrorCode;
use wire::messages::FetchRequest;
use wire::types::{BrokerEpoch, BrokerId, LeaderEpoch, Offset, TopicName};

use crate::broker::Broker;
use crate::call::Call;

/// The first version that names topics by id.
pub(super) const TOPIC_ID_VERSION: i16 = 13;
/// The first version that is served: older ones need records in older formats.
pub(super) const FIRST_SERVED_VERSION: i16 = 4;

/// The first version whose consumers know followers that they may read from.
const FIRST_VERSION_FROM_FOLLOWERS: i16 = 11;

/// The first version in which a follower tells its broker epoch (KIP-903).
const FIRST_VERSION_WITH_BROKER_EPOCH: i16 = 15;

/// One partition to read.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) key: PartitionKey,
    /// The topic's name; `None` if its id is unknown.
    pub(super) topic: Option<TopicName>,
    pub(super) asked: FetchPartition,
}

/// Where a consumer is that may be sent to a follower near it (KIP-392).
#[derive(Clone, Debug)]
pub(super) struct ConsumerPlace {
    /// Its rack; not empty.
    pub(super) rack: String,
    /// The listener that it came in by.
    pub(super) listener: String,
}

/// What is to become of the fetcher's memory.
#[derive(Debug)]
pub(super) enum SessionPlan {
    /// The fetcher has none and wants none.
    None,
    /// A full fetch that opens one.
    Open,
    /// An incremental fetch of this one.
    Known(i32, Arc<Mutex<Session>>),
}

/// A request ready to be read.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) version: i16,
    pub(super) replica_id: BrokerId,
    /// The registration of the broker that follows; -1 if the version of the request does not tell it.
    pub(super) broker_epoch: BrokerEpoch,
    pub(super) max_wait_ms: i64,
    pub(super) min_bytes: i64,
    pub(super) max_bytes: usize,
    pub(super) read_committed: bool,
    /// Where the consumer is; `None` if it is served here wherever it is.
    pub(super) place: Option<ConsumerPlace>,
    pub(super) session: SessionPlan,
    pub(super) targets: Vec<Target>,
    /// Faults planted by a test build; none otherwise.
    pub(super) faults: Faults,
}

/// What became of the request.
pub(super) enum Planned {
    Fetch(Plan),
    /// The whole request fails.
    Refused(ErrorCode),
}

impl Plan {
    /// Brings a request into form; opens no session yet, but moves a known one on.
    pub(super) fn of(broker: &Broker, call: &Call, request: FetchRequest) -> Planned {
        let version = call.version();
        let (replica_id, broker_epoch) = if version >= FIRST_VERSION_WITH_BROKER_EPOCH {
            (request.replica_state.replica_id, request.replica_state.replica_epoch)
        } else {
            (request.replica_id, -1)
        };
        let mut plan = Self {
            version,
            replica_id: BrokerId(replica_id),
            broker_epoch: BrokerEpoch(broker_epoch),
            max_wait_ms: i64::from(request.max_wait_ms),
            min_bytes: i64::from(request.min_bytes),
            max_bytes: limit(request.max_bytes).min(limit(broker.config().fetch_max_bytes)),
            read_committed: request.isolation_level == 1,
            place: None,
            session: SessionPlan::None,
            targets: Vec::new(),
            faults: broker.config().planted_faults,
        };
        // A wish beyond the limit could never be fulfilled and would always wait its time out.
        plan.min_bytes = plan.min_bytes.min(i64::try_from(plan.max_bytes).unwrap_or(i64::MAX));
        // The configuration accepts one selector only, the one that goes by racks.
        let selects = broker.config().replica_selector_class.is_some() && !request.rack_id.is_empty();
        if selects && plan.may_read_from_follower() {
            let listener = call.connection.listener.clone();
            plan.place = Some(ConsumerPlace { rack: request.rack_id.as_str().to_owned(), listener });
        }
        match plan.enter_session(broker, &request) {
            Ok(()) => {
                plan.resolve(broker);
                Planned::Fetch(plan)
            }
            Err(error) => Planned::Refused(error),
        }
    }

    /// Whether another broker asks, to copy what it follows.
    pub(super) fn is_from_follower(&self) -> bool {
        self.replica_id.0 >= 0
    }

    /// Whether a follower may answer as well as a leader (KIP-392).
    pub(super) fn may_read_from_follower(&self) -> bool {
        !self.is_from_follower() && self.version >= FIRST_VERSION_FROM_FOLLOWERS
    }

    /// How far the fetcher may see.
    pub(super) fn bound(&self) -> ReadBound {
        if self.is_from_follower() {
            ReadBound::LogEnd
        } else if self.read_committed {
            ReadBound::LastStable
        } else {
            ReadBound::HighWatermark
        }
    }

    fn enter_session(&mut self, broker: &Broker, request: &FetchRequest) -> Result<(), ErrorCode> {
        let (id, epoch) = if self.version >= 7 {
            (request.session_id, request.session_epoch)
        } else {
            (session::NO_SESSION, session::FINAL_EPOCH)
        };
        let sessions = broker.fetch_sessions();
        if epoch == session::INITIAL_EPOCH || epoch == session::FINAL_EPOCH {
            if id != session::NO_SESSION {
                sessions.close(id);
            }
            self.targets =
                asked(request, self.version).map(|(key, asked)| Target { key, topic: None, asked }).collect();
            if epoch == session::INITIAL_EPOCH && !self.targets.is_empty() {
                self.session = SessionPlan::Open;
            }
            return Ok(());
        }
        let known = sessions.get(id, broker.now().mono_ms).ok_or(ErrorCode::FetchSessionIdNotFound)?;
        let mut session = known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let uses_topic_ids = self.version >= TOPIC_ID_VERSION;
        session
            .begin(epoch, uses_topic_ids, asked(request, self.version), forgotten(request, self.version))
            .map_err(|error| match error {
                SessionError::Epoch => ErrorCode::InvalidFetchSessionEpoch,
                SessionError::TopicIds => ErrorCode::FetchSessionTopicIdError,
            })?;
        let remembered = session.partitions();
        self.targets =
            remembered.map(|(key, asked)| Target { key: key.clone(), topic: None, asked }).collect();
        let size = session.len();
        drop(session);
        if size == 0 {
            sessions.close(id);
        } else {
            sessions.resized(id, size);
            self.session = SessionPlan::Known(id, known);
        }
        Ok(())
    }

    fn resolve(&mut self, broker: &Broker) {
        let image = broker.image();
        let mut names: BTreeMap<TopicRef, Option<TopicName>> = BTreeMap::new();
        for target in &mut self.targets {
            target.topic = match &target.key.topic {
                TopicRef::Name(name) => Some(name.clone()),
                by_id @ TopicRef::Id(id) => names
                    .entry(by_id.clone())
                    .or_insert_with(|| image.topic_by_id(*id).map(|topic| topic.name.clone()))
                    .clone(),
            };
        }
    }
}

fn limit(bytes: i32) -> usize {
    usize::try_from(bytes).unwrap_or(0)
}

fn asked(request: &FetchRequest, version: i16) -> impl Iterator<Item = (PartitionKey, FetchPartition)> {
    request.topics.iter().flat_map(move |topic| {
        let name = reference(version, topic.topic_id, &topic.topic);
        topic.partitions.iter().map(move |it| {
            let asked = FetchPartition {
                max_bytes: it.partition_max_bytes,
                fetch_offset: Offset(it.fetch_offset),
                current_leader_epoch: LeaderEpoch(it.current_leader_epoch),
                log_start: Offset(it.log_start_offset),
                last_fetched_epoch: LeaderEpoch(it.last_fetched_epoch),
            };
            (PartitionKey { topic: name.clone(), partition: it.partition }, asked)
        })
    })
}

fn forgotten(request: &FetchRequest, version: i16) -> impl Iterator<Item = PartitionKey> {
    request.forgotten_topics_data.iter().flat_map(move |topic| {
        let name = reference(version, topic.topic_id, &topic.topic);
        topic
            .partitions
            .iter()
            .map(move |partition| PartitionKey { topic: name.clone(), partition: *partition })
    })
}

fn reference(version: i16, id: wire::types::TopicId, name: &str) -> TopicRef {
    if version >= TOPIC_ID_VERSION { TopicRef::Id(id) } else { TopicRef::Name(TopicName::from(name)) }
}

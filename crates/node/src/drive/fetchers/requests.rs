//! A fetcher's questions as bytes, in the versions that `inter.broker.protocol.version` names: brokers do not negotiate
//! these.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kernel::replica::fetcher::{Command, EpochQuestion, Event, FetchRequest as Fetch, RequestId, Target};
use wire::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic, ReplicaState};
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use wire::messages::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use wire::messages::{FetchRequest, ListOffsetsRequest, Message, OffsetForLeaderEpochRequest};
use wire::types::{LeaderEpoch, TopicPartition};
use wire::{EncodeError, Str};

use super::answers::{Asked, Kind};
use super::replica_fetcher::{Input, ReplicaFetcher};
use super::serve;
use crate::broker::Broker;
use crate::drive::to_broker;
use crate::peers::{PeerAddress, PeerRequest};

/// The first version of Fetch that tells the follower's id in a structure of its own (KIP-903).
const FIRST_FETCH_WITH_REPLICA_STATE: i16 = 15;
/// The timestamps that stand for the two ends of a log.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;

/// Sends what the machine asks; returns the event if it cannot be sent. The answer comes back as [`Input::Answered`].
pub(super) fn send(broker: &Arc<Broker>, fetcher: &Arc<ReplicaFetcher>, question: Command) -> Option<Event> {
    let correlation_id = fetcher.next_correlation_id();
    let (asked, frame) = write(broker, fetcher, correlation_id, question)?;
    let id = asked.id;
    let ready = frame.map_err(|error| format!("the request cannot be written: {error}"));
    let ready = ready.and_then(|frame| {
        let address = address_of_leader(broker, fetcher).ok_or("nobody knows where the leader listens")?;
        Ok((frame, address))
    });
    let (frame, address) = match ready {
        Ok(ready) => ready,
        Err(reason) => {
            fetcher.request_failed(&reason);
            return Some(Event::RequestFailed(id));
        }
    };
    fetcher.request_sent(broker, &address);
    let timeout_ms = u64::try_from(broker.config().replica_socket_timeout_ms).unwrap_or(0);
    let request = PeerRequest {
        channel: fetcher.channel(),
        address,
        frame,
        timeout: Duration::from_millis(timeout_ms),
    };
    let (then, fetcher) = (broker.clone(), fetcher.clone());
    to_broker::send(
        broker,
        request,
        Box::new(move |answer| serve(&then, fetcher.put(Input::Answered(asked, answer)))),
    );
    None
}

type Frame = Result<Bytes, EncodeError>;

fn write(
    broker: &Broker,
    fetcher: &ReplicaFetcher,
    correlation_id: i32,
    question: Command,
) -> Option<(Asked, Frame)> {
    let protocol = broker.config().inter_broker_protocol_version;
    let asked = |id: RequestId, version: i16, kind: Kind| Asked { id, version, correlation_id, kind };
    Some(match question {
        Command::SendFetch(fetch) => {
            let version = protocol.fetch_version(fetch.by_id);
            let request = fetch_request(broker, version, &fetch);
            let frame = frame(broker, fetcher, version, correlation_id, &request);
            (asked(fetch.id, version, Kind::Fetch), frame)
        }
        Command::SendOffsetsForLeaderEpoch(id, questions) => {
            let version = protocol.offset_for_leader_epoch_version();
            let request = epoch_request(broker, &questions);
            let frame = frame(broker, fetcher, version, correlation_id, &request);
            (asked(id, version, Kind::Epochs), frame)
        }
        Command::SendListOffsets(id, target, partitions) => {
            let version = protocol.list_offsets_version();
            let request = offsets_request(broker, target, &partitions);
            let frame = frame(broker, fetcher, version, correlation_id, &request);
            (asked(id, version, Kind::Offsets), frame)
        }
        // The others are no questions.
        _ => return None,
    })
}

fn frame<M: Message>(
    broker: &Broker,
    fetcher: &ReplicaFetcher,
    version: i16,
    correlation_id: i32,
    request: &M,
) -> Frame {
    // Kafka's name for it.
    let client_id = format!("broker-{}-fetcher-{}", broker.id(), fetcher.key().number);
    let mut header = to_broker::header(broker.id(), M::API_KEY, version, correlation_id);
    header.client_id = Some(Str::from(client_id));
    to_broker::encode(&header, request)
}

fn fetch_request(broker: &Broker, version: i16, fetch: &Fetch) -> FetchRequest {
    let config = broker.config();
    let mut request = FetchRequest {
        max_wait_ms: config.replica_fetch_wait_max_ms,
        min_bytes: config.replica_fetch_min_bytes,
        max_bytes: config.replica_fetch_response_max_bytes,
        session_id: fetch.session_id,
        session_epoch: fetch.session_epoch,
        ..FetchRequest::default()
    };
    if version >= FIRST_FETCH_WITH_REPLICA_STATE {
        request.replica_state =
            ReplicaState { replica_id: broker.id().0, replica_epoch: broker.control().broker_epoch().0 };
    } else {
        request.replica_id = broker.id().0;
    }
    for (name, asked) in &fetch.partitions {
        let it = asked.fetch;
        let partition = FetchPartition {
            partition: name.partition,
            current_leader_epoch: it.current_leader_epoch.0,
            fetch_offset: it.fetch_offset.0,
            last_fetched_epoch: it.last_fetched_epoch.0,
            log_start_offset: it.log_start.0,
            partition_max_bytes: it.max_bytes,
            ..FetchPartition::default()
        };
        let topic = Str::from(&name.topic);
        match request.topics.last_mut().filter(|last| last.topic == topic && last.topic_id == asked.topic_id)
        {
            Some(last) => last.partitions.push(partition),
            None => request.topics.push(FetchTopic {
                topic,
                topic_id: asked.topic_id,
                partitions: vec![partition],
            }),
        }
    }
    for (name, id) in &fetch.forgotten {
        let topic = Str::from(&name.topic);
        let forgotten = &mut request.forgotten_topics_data;
        match forgotten.last_mut().filter(|last| last.topic == topic && last.topic_id == *id) {
            Some(last) => last.partitions.push(name.partition),
            None => {
                forgotten.push(ForgottenTopic { topic, topic_id: *id, partitions: vec![name.partition] });
            }
        }
    }
    request
}

fn epoch_request(broker: &Broker, questions: &[EpochQuestion]) -> OffsetForLeaderEpochRequest {
    let mut topics: Vec<OffsetForLeaderTopic> = Vec::new();
    for question in questions {
        let partition = OffsetForLeaderPartition {
            partition: question.partition.partition,
            current_leader_epoch: question.current_leader_epoch.0,
            leader_epoch: question.epoch.0,
        };
        let topic = Str::from(&question.partition.topic);
        match topics.last_mut().filter(|last| last.topic == topic) {
            Some(last) => last.partitions.push(partition),
            None => topics.push(OffsetForLeaderTopic { topic, partitions: vec![partition] }),
        }
    }
    OffsetForLeaderEpochRequest { replica_id: broker.id().0, topics }
}

fn offsets_request(
    broker: &Broker,
    target: Target,
    partitions: &[(TopicPartition, LeaderEpoch)],
) -> ListOffsetsRequest {
    let mut topics: Vec<ListOffsetsTopic> = Vec::new();
    for (name, epoch) in partitions {
        let partition = ListOffsetsPartition {
            partition_index: name.partition,
            current_leader_epoch: epoch.0,
            timestamp: if target == Target::Latest { LATEST } else { EARLIEST },
            ..ListOffsetsPartition::default()
        };
        let topic = Str::from(&name.topic);
        match topics.last_mut().filter(|last| last.name == topic) {
            Some(last) => last.partitions.push(partition),
            None => topics.push(ListOffsetsTopic { name: topic, partitions: vec![partition] }),
        }
    }
    ListOffsetsRequest { replica_id: broker.id().0, topics, ..ListOffsetsRequest::default() }
}

/// Where the leader listens for brokers, as far as is known.
fn address_of_leader(broker: &Broker, fetcher: &ReplicaFetcher) -> Option<PeerAddress> {
    let image = broker.image();
    let leader = image.brokers().get(&fetcher.key().leader)?;
    let endpoint = leader.endpoint(&broker.config().listeners.inter_broker)?;
    Some(PeerAddress { host: endpoint.host.clone(), port: u16::try_from(endpoint.port).ok()? })
}

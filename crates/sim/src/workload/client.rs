//! A client: what it knows of the cluster, and its calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::api::ApiKey;
use wire::error_code::ErrorCode;
use wire::header::{RequestHeader, decode_response_header, encode_request_header};
use wire::messages::metadata_request::MetadataRequestTopic;
use wire::messages::{Message, MetadataRequest, MetadataResponse, Request};
use wire::types::BrokerId;
use wire::{Decoder, Encoder, Str};

use crate::network::{Key, Lane, Place};
use crate::world::{BROKERS, World};

/// The version of Metadata that clients use.
const METADATA_VERSION: i16 = 12;
/// How long a call may take, in microseconds.
const TIMEOUT_US: u64 = 2_500_000;

/// A partition as a client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The leader, if there is one.
    pub(crate) leader: Option<BrokerId>,
    /// Its epoch.
    pub(crate) epoch: i32,
}

/// See the module's text.
pub(crate) struct Client {
    number: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    correlation_id: i32,
    controller: Option<BrokerId>,
    partitions: BTreeMap<(String, i32), Known>,
}

impl Client {
    /// A client that knows nothing yet.
    pub(crate) fn new(number: u32) -> Arc<Self> {
        Arc::new(Self { number, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where its messages come from.
    pub(crate) fn place(&self) -> Place {
        Place::Client(self.number)
    }

    /// What it knows of a partition.
    pub(crate) fn known(&self, topic: &str, partition: i32) -> Option<Known> {
        self.lock().partitions.get(&(topic.to_owned(), partition)).copied()
    }

    /// The leader and its epoch, if it knows them.
    pub(crate) fn leader(&self, topic: &str, partition: i32) -> Option<(BrokerId, i32)> {
        let known = self.known(topic, partition)?;
        Some((known.leader?, known.epoch))
    }

    /// The controller, if it knows it.
    pub(crate) fn controller(&self) -> Option<BrokerId> {
        self.lock().controller
    }

    /// Asks `to`; `then` gets the answer, or why there is none.
    pub(crate) fn call<M: Request>(
        &self,
        world: &Arc<World>,
        to: BrokerId,
        version: i16,
        request: &M,
        then: impl FnOnce(&Arc<World>, Result<M::Response, String>) + Send + 'static,
    ) {
        let correlation_id = {
            let mut state = self.lock();
            state.correlation_id += 1;
            state.correlation_id
        };
        let header = RequestHeader {
            api_key: M::API_KEY,
            api_version: version,
            correlation_id,
            client_id: Some(Str::from(format!("client-{}", self.number))),
        };
        let mut encoder = Encoder::new();
        encode_request_header(&mut encoder, &header).expect("a header");
        request.encode(&mut encoder, version).expect("a request that its version can carry");
        let key = Key { from: self.place(), to, lane: Lane::Client };
        let back = world.weak();
        let done = move |answer: Result<bytes::Bytes, node::peers::PeerError>| {
            let Some(world) = back.upgrade() else { return };
            let answer = answer.map_err(|error| error.to_string());
            then(&world, answer.and_then(|bytes| decode::<M::Response>(bytes, version, correlation_id)));
        };
        world.network.request(world, key, None, encoder.into_bytes(), TIMEOUT_US, Box::new(done));
    }

    /// Asks any broker what the cluster looks like, and goes on whether it is told or not.
    pub(crate) fn refresh(
        self: &Arc<Self>,
        world: &Arc<World>,
        topic: Option<&str>,
        then: impl FnOnce(&Arc<World>) + Send + 'static,
    ) {
        let topics = topic.map(|name| {
            vec![MetadataRequestTopic { name: Some(Str::from(name)), ..MetadataRequestTopic::default() }]
        });
        let request = MetadataRequest {
            topics: Some(topics.unwrap_or_default()),
            allow_auto_topic_creation: false,
            ..MetadataRequest::default()
        };
        let to = *world.chances.clients.pick(&BROKERS).unwrap_or(&BROKERS[0]);
        let client = self.clone();
        self.call(world, to, METADATA_VERSION, &request, move |world, answer| {
            if let Ok(response) = answer {
                client.learn(response);
            }
            then(world);
        });
    }

    /// Takes in what a broker tells; what is older than what it knows it does not believe.
    fn learn(&self, response: MetadataResponse) {
        let mut state = self.lock();
        state.controller = Some(BrokerId(response.controller_id)).filter(|id| id.0 >= 0);
        for topic in response.topics {
            let name = topic.name.map(|name| name.to_string()).unwrap_or_default();
            if topic.error_code != ErrorCode::None.code() {
                continue;
            }
            for partition in topic.partitions {
                let leader = Some(BrokerId(partition.leader_id)).filter(|id| id.0 >= 0);
                let told = Known { leader, epoch: partition.leader_epoch };
                let key = (name.clone(), partition.partition_index);
                let known = state.partitions.entry(key).or_insert(told);
                if told.epoch >= known.epoch {
                    *known = told;
                }
            }
        }
    }
}

fn decode<M: Message>(bytes: bytes::Bytes, version: i16, correlation_id: i32) -> Result<M, String> {
    let mut decoder = Decoder::new(bytes);
    let key = ApiKey::from_code(M::API_KEY).ok_or("unknown key")?;
    let correlated = decode_response_header(&mut decoder, key.response_header_version(version));
    if correlated.map_err(|error| error.to_string())? != correlation_id {
        return Err("the answer belongs to another request".to_owned());
    }
    M::decode(&mut decoder, version).map_err(|error| error.to_string())
}

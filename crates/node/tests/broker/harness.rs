//! A broker in this process on a directory of its own, and calls to it.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use metadata::embedded::{EmbeddedSession, EmbeddedStore};
use metadata::store::Store;
use node::StoreEvents;
use node::broker::{Broker, Environment};
use node::call::{Connection, Outcome, Reply};
use node::clock::{Clock, SystemClock};
use node::config::KafkaConfig;
use storage::disk::{Disk, FileRange, RealDisk};
use tempfile::TempDir;
use wire::api::ApiKey;
use wire::error_code::ErrorCode;
use wire::header::{RequestHeader, decode_response_header, encode_request_header};
use wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use wire::messages::{CreateTopicsRequest, Message, ProduceRequest, Request};
use wire::response::Part;
use wire::types::Now;
use wire::{Decoder, Encoder, Str};

use crate::gate::Gate;
use crate::held_jobs::HeldJobs;
use crate::peers::TestPeers;

/// How long an answer may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The machine's time, and what a test adds to it.
#[derive(Default)]
struct TestClock {
    clock: SystemClock,
    ahead_ms: AtomicI64,
}

impl Clock for TestClock {
    fn now(&self) -> Now {
        let (now, ahead_ms) = (self.clock.now(), self.ahead_ms.load(Ordering::SeqCst));
        Now { mono_ms: now.mono_ms + ahead_ms, wall_ms: now.wall_ms + ahead_ms }
    }
}

/// A broker and what it stands on.
pub(crate) struct Node {
    pub(crate) broker: Arc<Broker>,
    connection: Arc<Connection>,
    clock: Arc<TestClock>,
    /// The gate before the broker's store.
    pub(crate) gate: Arc<Gate<EmbeddedSession>>,
    /// The other brokers, played by the test.
    pub(crate) peers: Arc<TestPeers>,
    /// Where work is done that may block, but for loads.
    pub(crate) jobs: Arc<HeldJobs>,
    /// Where groups are loaded.
    pub(crate) group_loads: Arc<HeldJobs>,
    // Ends after the broker, before the directory.
    store: EmbeddedStore,
    dir: Option<TempDir>,
}

impl Node {
    /// A broker on an empty directory, with Kafka's defaults and these settings on top.
    pub(crate) fn start(settings: &[(&str, &str)]) -> Self {
        Self::start_on(TempDir::new().unwrap(), settings)
    }

    /// A broker on empty log directories of these names, on a disk of the test's own.
    pub(crate) fn start_with_disk(disk: Arc<dyn Disk>, names: &[&str]) -> Self {
        Self::start_full(TempDir::new().unwrap(), disk, names, &[])
    }

    /// A broker on a directory that may hold what an earlier one left.
    pub(crate) fn start_on(dir: TempDir, settings: &[(&str, &str)]) -> Self {
        Self::start_full(dir, Arc::new(RealDisk), &["logs"], settings)
    }

    fn start_full(dir: TempDir, disk: Arc<dyn Disk>, names: &[&str], settings: &[(&str, &str)]) -> Self {
        let logs: Vec<_> = names.iter().map(|name| dir.path().join(name).display().to_string()).collect();
        let mut overrides = vec![("log.dirs".to_owned(), logs.join(","))];
        overrides.extend(settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let (config, _) = KafkaConfig::without_file(&overrides).unwrap();
        let store = EmbeddedStore::open_file(&dir.path().join("metadata.redb")).unwrap();
        let store_events = Arc::new(StoreEvents::default());
        let gate = Arc::new(Gate::before(store.session(store_events.sink())));
        let clock = Arc::new(TestClock::default());
        let peers = Arc::new(TestPeers::default());
        let (jobs, group_loads) = (Arc::new(HeldJobs::default()), Arc::new(HeldJobs::default()));
        let environment = Environment {
            store: gate.clone(),
            store_events,
            clock: clock.clone(),
            disk,
            executor: jobs.clone(),
            group_loads: group_loads.clone(),
            endpoints: Box::new(|config| config.listeners.advertised.clone()),
            seed: 7,
            membership: node::Membership::Alone,
            peers: peers.clone(),
        };
        let broker = node::start(config, environment).unwrap();
        let connection = connection("PLAINTEXT", 0);
        Self { broker, connection, clock, gate, peers, jobs, group_loads, store, dir: Some(dir) }
    }

    /// Stops the broker in order and starts it again on the same directory.
    pub(crate) fn restart(mut self, settings: &[(&str, &str)]) -> Self {
        self.broker.shut_down();
        let dir = self.dir.take().unwrap();
        drop(self);
        Self::start_on(dir, settings)
    }

    /// As after `kill -9`: nothing is closed. Gives the directory for a later start.
    pub(crate) fn killed(mut self) -> TempDir {
        self.peers.forget();
        self.dir.take().unwrap()
    }

    /// As after `kill -9`: nothing is closed; `edit` sees the log directory before the next start.
    pub(crate) fn restart_killed(self, settings: &[(&str, &str)], edit: impl FnOnce(&Path)) -> Self {
        let dir = self.killed();
        edit(&dir.path().join("logs"));
        Self::start_on(dir, settings)
    }

    /// The log directory.
    pub(crate) fn logs(&self) -> PathBuf {
        self.dir.as_ref().unwrap().path().join("logs")
    }

    /// Hands in a frame; the outcome comes when it comes.
    pub(crate) fn submit(&self, frame: Bytes) -> Receiver<Outcome> {
        self.submit_on(&self.connection, frame)
    }

    /// As [`Self::submit`], from a connection of another listener.
    pub(crate) fn submit_over(&self, listener: &str, frame: Bytes) -> Receiver<Outcome> {
        self.submit_on(&connection(listener, 0), frame)
    }

    /// As [`Self::submit`], from the connection of this number.
    pub(crate) fn submit_numbered(&self, number: u64, frame: Bytes) -> Receiver<Outcome> {
        self.submit_on(&connection("PLAINTEXT", number), frame)
    }

    fn submit_on(&self, connection: &Arc<Connection>, frame: Bytes) -> Receiver<Outcome> {
        let (sender, receiver) = mpsc::channel();
        let reply = Reply::new(move |outcome| {
            // A test that has failed no longer listens.
            let _ = sender.send(outcome);
        });
        self.broker.handle(connection, frame, reply);
        receiver
    }

    /// Hands in a frame with a reply of the test's own.
    pub(crate) fn submit_with(&self, frame: Bytes, reply: Reply) {
        self.broker.handle(&self.connection, frame, reply);
    }

    /// A session of the test's own with the broker's store.
    pub(crate) fn store(&self) -> impl Store {
        self.store.session(Arc::new(|_| {}))
    }

    /// The store takes the broker for dead.
    pub(crate) fn expire_session(&self) {
        self.store.expire(self.gate.session_id().unwrap());
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, by: Duration) {
        let by_ms = i64::try_from(by.as_millis()).unwrap();
        self.clock.ahead_ms.fetch_add(by_ms, Ordering::SeqCst);
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn call<R: Request>(&self, version: i16, request: &R) -> R::Response {
        answer(&self.submit(frame(version, request)), version)
    }

    /// Creates a topic with defaults but for `configs`.
    pub(crate) fn create_topic(&self, name: &str, partitions: i32, configs: &[(&str, &str)]) {
        let configs = configs.iter().map(|(key, value)| CreatableTopicConfig {
            name: Str::from(*key),
            value: Some(Str::from(*value)),
        });
        let topic = CreatableTopic {
            name: Str::from(name),
            num_partitions: partitions,
            replication_factor: 1,
            configs: configs.collect(),
            ..CreatableTopic::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() };
        let response = self.call(7, &request);
        assert_eq!(response.topics[0].error_code, 0, "{:?}", response.topics[0]);
    }

    /// Produces one batch with acks -1; returns base offset or error.
    pub(crate) fn produce(&self, topic: &str, partition: i32, records: Bytes) -> Result<i64, ErrorCode> {
        let response = self.call(9, &produce_request(topic, partition, records, -1));
        let it = &response.responses[0].partition_responses[0];
        match ErrorCode::from_code(it.error_code).unwrap() {
            ErrorCode::None => Ok(it.base_offset),
            error => Err(error),
        }
    }
}

pub(crate) fn connection(listener: &str, number: u64) -> Arc<Connection> {
    Arc::new(Connection {
        listener: listener.to_owned(),
        client_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        id: "127.0.0.1:9092-127.0.0.1:40000-0".to_owned(),
        number,
        principal: "User:ANONYMOUS".to_owned(),
        client_software: OnceLock::new(),
    })
}

/// A produce of one batch.
pub(crate) fn produce_request(topic: &str, partition: i32, records: Bytes, acks: i16) -> ProduceRequest {
    let partition_data = vec![PartitionProduceData { index: partition, records: Some(records) }];
    ProduceRequest {
        acks,
        timeout_ms: 1000,
        topic_data: vec![TopicProduceData { name: Str::from(topic), partition_data }],
        ..ProduceRequest::default()
    }
}

/// The bytes of a request, without its size.
pub(crate) fn frame<R: Message>(version: i16, request: &R) -> Bytes {
    let header = RequestHeader {
        api_key: R::API_KEY,
        api_version: version,
        correlation_id: 42,
        client_id: Some(Str::from("test")),
    };
    let mut encoder = Encoder::new();
    encode_request_header(&mut encoder, &header).unwrap();
    request.encode(&mut encoder, version).unwrap();
    encoder.into_bytes()
}

/// The message of an answer, file ranges read.
pub(crate) fn answer<M: Message>(receiver: &Receiver<Outcome>, version: i16) -> M {
    answer_within(PATIENCE, receiver, version)
}

/// As [`answer`], of what may take long.
pub(crate) fn answer_within<M: Message>(patience: Duration, receiver: &Receiver<Outcome>, version: i16) -> M {
    let Outcome::Respond(parts) = receiver.recv_timeout(patience).unwrap() else {
        panic!("{} v{version} was not answered", M::NAME);
    };
    let mut decoder = Decoder::new(joined(&parts));
    let key = ApiKey::from_code(M::API_KEY).unwrap();
    let correlation_id = decode_response_header(&mut decoder, key.response_header_version(version)).unwrap();
    assert_eq!(correlation_id, 42);
    let message = M::decode(&mut decoder, version).unwrap();
    assert_eq!(decoder.remaining(), 0, "{} v{version} has bytes behind its last field", M::NAME);
    message
}

/// The bytes of an answer, file ranges read.
pub(crate) fn joined(parts: &[Part<FileRange>]) -> Bytes {
    let mut bytes = BytesMut::new();
    for part in parts {
        match part {
            Part::Bytes(part) => bytes.extend_from_slice(part),
            Part::Range(range) => bytes.extend_from_slice(&range.to_vec().unwrap()),
        }
    }
    bytes.freeze()
}

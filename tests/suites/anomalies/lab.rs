//! Two brokers with the replicas of one partition, each behind a proxy, and a test in the place of their controller.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::batch::{Draft, now_ms};
use interop::broker::{Broker, Kind, Member, Options};
use interop::broker_proxy::{Action, Applied, BrokerProxy, Direction, Gate, Rule};
use interop::calls;
use interop::checker::{Dump, dump_directory};
use interop::ports;
use interop::raw::Connection;
use interop::stand_in::{Place, StandIn, Versions};
use interop::wait;
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::{DeleteRecordsRequest, OffsetForLeaderEpochResponse};
use kafka_protocol::protocol::{Decodable, HeaderVersion};

/// The topic of all stories; partition 0.
pub(crate) const TOPIC: &str = "t";
/// Fetch, OffsetsForLeaderEpoch.
const FETCH: i16 = 1;
const OFFSETS_FOR_LEADER_EPOCH: i16 = 23;
/// A response with records is larger than this, one without is smaller: values are padded.
const WITH_RECORDS: usize = 400;
/// How long a condition may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How long the end of a story may take where a fault is planted: it never comes.
const PLANTED_LIMIT: Duration = Duration::from_secs(8);
const REQUEST_TIMED_OUT: i16 = 7;
/// What a client tries again after.
const RETRIABLE: [i16; 4] = [3, 5, 6, 9];

/// What the brokers speak among each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// `inter.broker.protocol.version` 2.6: a follower asks where epochs end before it fetches.
    Asking,
    /// 3.9: the leader tells in its answer to a fetch where the logs part.
    ByFetch,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Self::Asking => "2.6",
            Self::ByFetch => "3.9",
        }
    }

    fn versions(self) -> Versions {
        match self {
            Self::Asking => Versions { leader_and_isr: 4, update_metadata: 6 },
            Self::ByFetch => Versions { leader_and_isr: 7, update_metadata: 8 },
        }
    }
}

/// Where stories take place.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    /// `host:port` of a ZooKeeper.
    pub(crate) zookeeper: String,
    pub(crate) protocol: Protocol,
    pub(crate) planted_faults: Option<&'static str>,
    pub(crate) story: &'static str,
}

/// How long a follower may be behind until its leader takes it out of the in-sync replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lag {
    /// Longer than a story.
    Long,
    /// Two seconds.
    Short,
}

/// See the module.
pub(crate) struct Lab {
    // Declared first: brokers end before what they speak to.
    brokers: BTreeMap<i32, Broker>,
    proxies: BTreeMap<i32, BrokerProxy>,
    pub(crate) stand_in: StandIn,
    refused_epochs: Arc<AtomicU64>,
    may_refuse: bool,
    stage: Stage,
}

impl Stage {
    /// Brokers that lead and follow nothing yet.
    pub(crate) fn lab(&self, lag: Lag) -> Result<Lab> {
        let chroot = format!("/{}", self.story);
        let (mut brokers, mut proxies, mut places) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for id in [1, 2] {
            let port = ports::free()?;
            let proxy = BrokerProxy::start(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
            let connect = format!("{}{chroot}", self.zookeeper);
            let member = Member { id, connect, advertised_port: Some(proxy.port()) };
            let broker = Broker::prepare_member(Kind::Blumfeld, self.options(lag), port, member)?;
            places.insert(id, Place { address: broker.bootstrap(), advertised_port: proxy.port() });
            brokers.insert(id, broker);
            proxies.insert(id, proxy);
        }
        let versions = self.protocol.versions();
        let stand_in = StandIn::begin(&self.zookeeper, &chroot, TOPIC, places, versions)?;
        let refused_epochs = Arc::new(AtomicU64::new(0));
        let mut lab =
            Lab { brokers, proxies, stand_in, refused_epochs, may_refuse: false, stage: self.clone() };
        lab.count_refused_epochs();
        for id in [1, 2] {
            lab.start(id)?;
        }
        Ok(lab)
    }

    fn options(&self, lag: Lag) -> Options {
        let lag_ms = if lag == Lag::Short { "2000" } else { "120000" };
        let mut options = Options::with(&[
            ("inter.broker.protocol.version", self.protocol.name()),
            ("replica.lag.time.max.ms", lag_ms),
            ("replica.fetch.wait.max.ms", "200"),
            ("replica.fetch.backoff.ms", "100"),
            // The file tells what the log has.
            ("replica.high.watermark.checkpoint.interval.ms", "50"),
            ("min.insync.replicas", "1"),
        ]);
        options.planted_faults = self.planted_faults;
        options
    }
}

impl Lab {
    /// Whether the brokers are built to fail.
    pub(crate) fn is_planted(&self) -> bool {
        self.stage.planted_faults.is_some()
    }

    pub(crate) fn protocol(&self) -> Protocol {
        self.stage.protocol
    }

    /// How long the end of the story may take.
    pub(crate) fn limit_of_end(&self) -> Duration {
        if self.is_planted() { PLANTED_LIMIT } else { LIMIT }
    }

    fn broker(&mut self, id: i32) -> Result<&mut Broker> {
        self.brokers.get_mut(&id).context("no such broker")
    }

    fn proxy(&self, id: i32) -> Result<&BrokerProxy> {
        self.proxies.get(&id).context("no such broker")
    }

    /// Starts a broker; it leads and follows nothing until it is told.
    pub(crate) fn start(&mut self, id: i32) -> Result<()> {
        self.broker(id)?.resume()
    }

    /// Ends a broker with SIGKILL.
    pub(crate) fn kill(&mut self, id: i32) -> Result<()> {
        self.broker(id)?.kill()
    }

    /// Decides who leads, and tells these brokers.
    pub(crate) fn lead(&self, leader: i32, epoch: i32, isr: &[i32], told: &[i32]) -> Result<()> {
        self.stand_in.decide(leader, epoch, isr)?;
        told.iter().try_for_each(|id| self.stand_in.tell(*id))
    }

    /// Broker 1 leads in epoch 0 and both have A: the beginning of most stories.
    pub(crate) fn both_have_a(&self) -> Result<()> {
        self.lead(1, 0, &[1, 2], &[1, 2])?;
        self.append(1, &["A"], -1)?;
        self.until_high_watermark(1, 1)?;
        self.until_high_watermark(2, 1)
    }

    /// Appends records as one batch.
    pub(crate) fn append(&self, leader: i32, names: &[&str], acks: i16) -> Result<()> {
        let answer = self.try_append(leader, names, acks)?;
        ensure!(answer == 0, "Produce of {names:?} to {leader}: error {answer}");
        Ok(())
    }

    /// The same with each record in a batch of its own.
    pub(crate) fn append_each(&self, leader: i32, names: &[String], acks: i16) -> Result<()> {
        names.iter().try_for_each(|name| self.append(leader, &[name], acks))
    }

    fn try_append(&self, leader: i32, names: &[&str], acks: i16) -> Result<i16> {
        let address = self.brokers.get(&leader).context("no such broker")?.bootstrap();
        let values: Vec<Vec<u8>> = names.iter().map(|name| padded(name)).collect();
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let batch = Draft::of_values(now_ms(), &values).build();
        let mut connection = Connection::open(&address)?;
        wait::until("a leader that takes records", LIMIT, || {
            let request = calls::produce_request(TOPIC, 0, batch.clone(), acks);
            let response = connection.call(9, &request)?;
            let topic = response.responses.first().context("no topic in the answer")?;
            let code = topic.partition_responses.first().context("no partition in the answer")?.error_code;
            Ok((!RETRIABLE.contains(&code)).then_some(code))
        })
    }

    /// `host:port` of a broker.
    pub(crate) fn address(&self, id: i32) -> Result<String> {
        Ok(self.brokers.get(&id).context("no such broker")?.bootstrap())
    }

    fn folder(&self, id: i32) -> Result<PathBuf> {
        Ok(self.brokers.get(&id).context("no such broker")?.data().join(format!("{TOPIC}-0")))
    }

    /// The log of a replica as it lies on disk; empty before there is one.
    pub(crate) fn log(&self, id: i32) -> Result<Dump> {
        let folder = self.folder(id)?;
        if folder.is_dir() { dump_directory(&folder) } else { Ok(Dump::default()) }
    }

    /// Cuts the last batches off the log of a broker that is down, from the one with `base_offset` on.
    pub(crate) fn lose_from(&self, id: i32, base_offset: i64) -> Result<()> {
        let segment = self.folder(id)?.join("00000000000000000000.log");
        let bytes = std::fs::read(&segment)?;
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let base = rest.first_chunk().copied().map(i64::from_be_bytes).context("no such batch")?;
            if base >= base_offset {
                break;
            }
            let size = rest.get(8..).and_then(|rest| rest.first_chunk()).copied().map(i32::from_be_bytes);
            at += 12 + usize::try_from(size.context("a short batch")?)?;
        }
        Ok(std::fs::OpenOptions::new().write(true).open(&segment)?.set_len(u64::try_from(at)?)?)
    }

    /// The leader epochs of a replica with their start offsets, as its file has them.
    pub(crate) fn epochs(&self, id: i32) -> Result<Vec<(i32, i64)>> {
        let text = std::fs::read_to_string(self.folder(id)?.join("leader-epoch-checkpoint"))?;
        text.lines()
            .skip(2)
            .map(two_numbers)
            .map(|pair| pair.and_then(|(a, b)| Ok((i32::try_from(a)?, b))))
            .collect()
    }

    /// The high watermark of a replica, as its broker's file has it.
    pub(crate) fn high_watermark(&self, id: i32) -> Result<Option<i64>> {
        let data = self.brokers.get(&id).context("no such broker")?.data();
        let Ok(text) = std::fs::read_to_string(data.join("replication-offset-checkpoint")) else {
            return Ok(None);
        };
        let entry = text.lines().find_map(|line| line.strip_prefix(&format!("{TOPIC} 0 ")));
        entry.map(|offset| Ok(offset.trim().parse()?)).transpose()
    }

    pub(crate) fn until_high_watermark(&self, id: i32, offset: i64) -> Result<()> {
        self.until(&format!("high watermark {offset} on {id}"), || {
            Ok(self.high_watermark(id)? == Some(offset))
        })
    }

    pub(crate) fn until_end(&self, id: i32, end: i64) -> Result<()> {
        self.until(&format!("log end {end} on {id}"), || Ok(self.log(id)?.end() == end))
    }

    pub(crate) fn until_isr(&self, isr: &[i32]) -> Result<()> {
        self.until(&format!("in-sync replicas {isr:?}"), || {
            let mut found = self.stand_in.leadership()?.isr;
            found.sort_unstable();
            Ok(found == isr)
        })
    }

    /// Waits for a condition.
    pub(crate) fn until(&self, what: &str, condition: impl Fn() -> Result<bool>) -> Result<()> {
        wait::until(what, LIMIT, || Ok(condition()?.then_some(())))
    }

    /// Deletes the records of a leader's log before `offset`. Followers that do not follow are not waited for.
    pub(crate) fn delete_records(&self, leader: i32, offset: i64) -> Result<()> {
        let partition = DeleteRecordsPartition::default().with_partition_index(0).with_offset(offset);
        let topic = DeleteRecordsTopic::default()
            .with_name(calls::topic_name(TOPIC))
            .with_partitions(vec![partition]);
        let request = DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(100);
        let response = Connection::open(&self.address(leader)?)?.call(1, &request)?;
        let answer =
            response.topics.first().and_then(|it| it.partitions.first()).context("an empty answer")?;
        ensure!([0, REQUEST_TIMED_OUT].contains(&answer.error_code), "DeleteRecords: {answer:?}");
        Ok(())
    }

    /// The value of a metric of a broker.
    pub(crate) fn metric(&self, id: i32, name: &str) -> Result<f64> {
        self.brokers.get(&id).context("no such broker")?.metric(name)
    }

    /// How many times a follower has asked its leader how the logs compare: for ends of epochs, or by a fetch.
    pub(crate) fn questions_to(&self, leader: i32) -> Result<u64> {
        let key = if self.protocol() == Protocol::Asking && !self.is_planted() {
            OFFSETS_FOR_LEADER_EPOCH
        } else {
            FETCH
        };
        Ok(self.proxy(leader)?.count(Direction::Request, key))
    }

    /// How many OffsetsForLeaderEpoch both leaders were asked; an error if one was refused that should not be.
    pub(crate) fn epoch_questions(&self) -> Result<u64> {
        let refused = self.refused_epochs.load(Ordering::SeqCst);
        let fine = self.may_refuse || refused == 0;
        ensure!(fine, "{refused} answers of OffsetsForLeaderEpoch are errors");
        Ok(self.proxies.values().map(|it| it.count(Direction::Request, OFFSETS_FOR_LEADER_EPOCH)).sum())
    }

    /// Refused questions are part of the story.
    pub(crate) fn may_refuse_questions(&mut self) {
        self.may_refuse = true;
    }

    fn count_refused_epochs(&self) {
        for proxy in self.proxies.values() {
            let refused = Arc::clone(&self.refused_epochs);
            // It looks and lets everything pass.
            let look = Rule::for_responses(Action::Pass).of_key(OFFSETS_FOR_LEADER_EPOCH);
            proxy.rule(look.where_frame(move |header, frame| {
                if has_error(header.version, frame) {
                    refused.fetch_add(1, Ordering::SeqCst);
                }
                false
            }));
        }
    }

    /// What `follower` asks of `leader` is held at the proxy from now on.
    pub(crate) fn hold_requests(&self, follower: i32, leader: i32) -> Result<Held> {
        let gate = Arc::new(Gate::new(false));
        let rule = |key| Rule::for_requests(Action::Hold(Arc::clone(&gate))).of_key(key).of_broker(follower);
        let proxy = self.proxy(leader)?;
        let rules = [FETCH, OFFSETS_FOR_LEADER_EPOCH].map(|key| proxy.rule(rule(key)));
        Ok(Held { gate, rules })
    }

    /// The same, and waits until there is a request that is held: then none is at the leader.
    pub(crate) fn cut_off(&self, follower: i32, leader: i32) -> Result<Held> {
        let held = self.hold_requests(follower, leader)?;
        self.until("a request that is held", || Ok(held.gate.waiting() > 0))?;
        Ok(held)
    }

    /// The next answer of `leader` to `follower` that has records comes through, and none after it.
    pub(crate) fn drop_answers_after_records(&self, follower: i32, leader: i32) -> Result<Dropped> {
        let seen = AtomicBool::new(false);
        let fetches = Rule::for_responses(Action::Drop).of_key(FETCH).of_broker(follower);
        let fetches = fetches.where_frame(move |_, frame| {
            seen.load(Ordering::SeqCst) || {
                seen.store(frame.len() > WITH_RECORDS, Ordering::SeqCst);
                false
            }
        });
        Ok(Dropped([self.proxy(leader)?.rule(fetches)].into()))
    }

    /// No answer of `leader` to `follower` comes through.
    pub(crate) fn drop_answers(&self, follower: i32, leader: i32) -> Result<Dropped> {
        let rule = |key| Rule::for_responses(Action::Drop).of_key(key).of_broker(follower);
        let proxy = self.proxy(leader)?;
        Ok(Dropped([FETCH, OFFSETS_FOR_LEADER_EPOCH].map(|key| proxy.rule(rule(key))).into()))
    }
}

/// Requests that are held until this is dropped.
pub(crate) struct Held {
    gate: Arc<Gate>,
    rules: [Applied; 2],
}

impl Held {
    /// How many are held.
    pub(crate) fn waiting(&self) -> usize {
        self.gate.waiting()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.rules.iter().for_each(Applied::remove);
        self.gate.open();
    }
}

/// Answers that vanish until this is dropped.
pub(crate) struct Dropped(Vec<Applied>);

impl Dropped {
    /// How many have vanished.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(Applied::count).sum()
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.iter().for_each(Applied::remove);
    }
}

fn has_error(version: i16, frame: &[u8]) -> bool {
    let header = if OffsetForLeaderEpochResponse::header_version(version) == 0 { 4 } else { 5 };
    let mut body = bytes::Bytes::copy_from_slice(frame.get(header..).unwrap_or_default());
    match OffsetForLeaderEpochResponse::decode(&mut body, version) {
        Err(_) => true,
        Ok(answer) => answer.topics.iter().flat_map(|it| &it.partitions).any(|it| it.error_code != 0),
    }
}

/// A record's value: its name and as much noise that an answer that has it is told from one without.
fn padded(name: &str) -> Vec<u8> {
    let mut value = format!("{name} ").into_bytes();
    value.resize(WITH_RECORDS, b'.');
    value
}

/// The name in a record's value.
pub(crate) fn name_of(value: &[u8]) -> String {
    String::from_utf8_lossy(value).split(' ').next().unwrap_or_default().to_owned()
}

fn two_numbers(line: &str) -> Result<(i64, i64)> {
    let (first, second) = line.split_once(' ').with_context(|| format!("no two numbers: {line}"))?;
    Ok((first.parse()?, second.parse()?))
}

//! A group with a clock and a log of its own; appends succeed at once unless a test holds them back.

mod administration;
mod commits;
mod joining;
mod loading;
mod model;
mod scenarios;
mod size;
mod static_members;
mod story;
mod syncing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use wire::types::{LeaderEpoch, Offset, TopicPartition};

use super::*;

/// When every test begins, in milliseconds since the Unix epoch.
const EPOCH_MS: i64 = 1_700_000_000_000;
const SESSION_MS: i32 = 10_000;
const REBALANCE_MS: i32 = 60_000;

/// The machine with what surrounds it.
#[derive(Clone, Debug)]
struct Bench {
    group: Group,
    now_ms: i64,
    requests: u64,
    open: BTreeSet<RequestId>,
    answers: BTreeMap<RequestId, Answer>,
    /// What is in the log, in order.
    log: Vec<(Offset, Batch)>,
    /// The markers of transactions, each with its offset: producer, and whether it was committed.
    markers: Vec<(Offset, i64, bool)>,
    log_end: i64,
    holds_appends: bool,
    /// Appends that are in the log, but whose end is not told yet.
    held: Vec<(AppendId, Offset)>,
    is_forgotten: bool,
    /// All commands, with when they came, until somebody takes them.
    trace: Vec<(i64, Command)>,
}

fn settings() -> Settings {
    Settings::default()
}

impl Bench {
    fn new() -> Self {
        Self::with(settings())
    }

    fn with(settings: Settings) -> Self {
        let now = Now { mono_ms: 0, wall_ms: EPOCH_MS };
        Self::of(Group::new(&Str::from("g"), Arc::new(settings), now))
    }

    fn of(group: Group) -> Self {
        Self {
            group,
            now_ms: 0,
            requests: 0,
            open: BTreeSet::new(),
            answers: BTreeMap::new(),
            log: Vec::new(),
            markers: Vec::new(),
            log_end: 0,
            holds_appends: false,
            held: Vec::new(),
            is_forgotten: false,
            trace: Vec::new(),
        }
    }

    fn now(&self) -> Now {
        Now { mono_ms: self.now_ms, wall_ms: EPOCH_MS + self.now_ms }
    }

    fn request(&mut self) -> RequestId {
        self.requests += 1;
        self.open.insert(RequestId(self.requests));
        RequestId(self.requests)
    }

    fn step(&mut self, event: Event) -> Vec<Command> {
        let generation = self.group.generation;
        let mut out = Vec::new();
        self.group.step(self.now(), event, &mut out);
        self.group.check();
        assert!(self.group.generation >= generation, "G4: the generation fell");
        self.obey(&out);
        out
    }

    fn obey(&mut self, commands: &[Command]) {
        for command in commands {
            self.trace.push((self.now_ms, command.clone()));
            match command {
                Command::Answer { request, answer } => {
                    assert!(self.open.remove(request), "G3: {request:?} is answered again: {answer:?}");
                    self.answers.insert(*request, answer.clone());
                }
                Command::Append { append, batch } => {
                    let base = self.write(batch.clone());
                    if self.holds_appends {
                        self.held.push((*append, base));
                    } else {
                        self.step(Event::Appended { append: *append, outcome: Ok(base) });
                    }
                }
                Command::AppendTombstones(batch) => {
                    self.write(batch.clone());
                }
                Command::Forget => self.is_forgotten = true,
                Command::Note(note) => assert!(!note.to_string().is_empty()),
            }
        }
    }

    fn write(&mut self, batch: Batch) -> Offset {
        assert!(!batch.records.is_empty(), "an empty batch");
        let base = Offset(self.log_end);
        self.log_end += batch.records.len() as i64;
        self.log.push((base, batch));
        base
    }

    /// The oldest append that is held back ends. One that fails is not in the log any more, unless its error says that
    /// only others have not got it.
    fn end_append(&mut self, error: ErrorCode) -> Vec<Command> {
        let (append, base) = self.held.remove(0);
        let outcome = if error.is_error() { Err(error) } else { Ok(base) };
        let is_kept = matches!(error, ErrorCode::RequestTimedOut | ErrorCode::NotEnoughReplicasAfterAppend);
        if outcome.is_err() && !is_kept {
            self.log.retain(|(at, _)| *at != base);
        }
        self.step(Event::Appended { append, outcome })
    }

    fn end_transaction(&mut self, producer_id: i64, committed: bool) {
        self.markers.push((Offset(self.log_end), producer_id, committed));
        self.log_end += 1;
        self.step(Event::TransactionEnded { producer_id, committed });
    }

    /// Time goes on, and every deadline on the way is kept.
    fn wait(&mut self, ms: i64) {
        let until = self.now_ms + ms;
        while let Some(at_ms) = self.group.deadline().filter(|at_ms| *at_ms <= until) {
            self.now_ms = at_ms.max(self.now_ms);
            self.step(Event::Tick);
        }
        self.now_ms = until;
    }

    fn join(&mut self, join: JoinRequest) -> RequestId {
        let request = self.request();
        self.step(Event::Join(request, join));
        request
    }

    fn sync(&mut self, id: &str, generation: i32, assignments: &[(&str, &str)]) -> RequestId {
        let request = self.request();
        let sync = SyncRequest { assignments: assigned(assignments), ..sync_of(id, generation) };
        self.step(Event::Sync(request, sync));
        request
    }

    fn heartbeat(&mut self, id: &str, instance: Option<&str>, generation: i32) -> i16 {
        let request = self.request();
        let instance_id = instance.map(Str::from);
        let heartbeat = HeartbeatRequest { member_id: Str::from(id), instance_id, generation };
        self.step(Event::Heartbeat(request, heartbeat));
        match self.answers.get(&request) {
            Some(Answer::Heartbeat(error)) => error.code(),
            other => panic!("{other:?}"),
        }
    }

    fn leave(&mut self, id: &str, instance: Option<&str>) -> i16 {
        let request = self.request();
        let leaving = LeavingMember { member_id: Str::from(id), instance_id: instance.map(Str::from) };
        self.step(Event::Leave(request, vec![leaving]));
        match self.answers.get(&request) {
            Some(Answer::Leave(Ok(codes))) => codes[0].code(),
            Some(Answer::Leave(Err(code))) => code.code(),
            other => panic!("{other:?}"),
        }
    }

    fn commit(&mut self, commit: CommitRequest) -> RequestId {
        let request = self.request();
        self.step(Event::Commit(request, commit));
        request
    }

    /// Commits t-0 and returns its code.
    fn commit_one(&mut self, id: &str, instance: Option<&str>, generation: i32, offset: i64) -> i16 {
        let instance_id = instance.map(Str::from);
        let commit = CommitRequest { instance_id, ..commit_of(id, generation, &[("t", 0, offset)]) };
        let request = self.commit(commit);
        self.codes(request)[0]
    }

    fn joined(&self, request: RequestId) -> &JoinAnswer {
        match self.answers.get(&request) {
            Some(Answer::Join(joined)) => joined,
            other => panic!("{request:?} is answered {other:?}"),
        }
    }

    fn synced(&self, request: RequestId) -> (i16, String) {
        match self.answers.get(&request) {
            Some(Answer::Sync(it)) => (it.error.code(), String::from_utf8(it.assignment.to_vec()).unwrap()),
            other => panic!("{request:?} is answered {other:?}"),
        }
    }

    fn codes(&self, request: RequestId) -> Vec<i16> {
        match self.answers.get(&request) {
            Some(Answer::Commit(codes)) => codes.values().map(|it| it.code()).collect(),
            other => panic!("{request:?} is answered {other:?}"),
        }
    }

    fn is_parked(&self, request: RequestId) -> bool {
        self.open.contains(&request)
    }

    fn offset(&self, topic: &str, partition: i32) -> i64 {
        self.group.fetch_offset(&tp(topic, partition), false).offset.0
    }

    fn is_unstable(&self, topic: &str, partition: i32) -> bool {
        self.group.fetch_offset(&tp(topic, partition), true).error == ErrorCode::UnstableOffsetCommit
    }

    /// Members `ids` join (the first leads), and their group becomes Stable with assignments "to <id>".
    fn stable(&mut self, ids: &[&str]) {
        let requests: Vec<_> = ids.iter().map(|id| self.join(joining(id))).collect();
        while self.is_parked(requests[0]) {
            self.wait(1_000);
        }
        let generation = self.joined(requests[0]).generation;
        self.assign(ids, generation);
    }

    fn assign(&mut self, ids: &[&str], generation: i32) {
        let texts: Vec<_> = ids.iter().map(|id| format!("to {id}")).collect();
        let assignments: Vec<_> = ids.iter().copied().zip(texts.iter().map(String::as_str)).collect();
        for id in ids {
            self.sync(id, generation, &assignments);
        }
        assert_eq!(self.group.state, State::Stable);
    }

    /// The groups that the log gives.
    fn reloaded(&self) -> Vec<Group> {
        let mut loader = load::Loader::default();
        let mut markers = self.markers.iter().peekable();
        for (base, batch) in &self.log {
            while let Some((_, producer_id, committed)) = markers.next_if(|(at, ..)| at < base) {
                loader.transaction_ended(*producer_id, *committed);
            }
            for (key, value) in &batch.records {
                let producer = batch.producer.map(|it| it.id);
                loader.record(*base, producer, Some(key.clone()), value.clone()).unwrap();
            }
        }
        for (_, producer_id, committed) in markers {
            loader.transaction_ended(*producer_id, *committed);
        }
        let loaded = loader.finish(&self.group.settings, self.now());
        loaded.groups.into_iter().map(|(group, _)| group).collect()
    }
}

fn tp(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition::new(topic, partition)
}

fn assigned(assignments: &[(&str, &str)]) -> BTreeMap<Str, Bytes> {
    let owned = |(id, text): &(&str, &str)| (Str::from(*id), Bytes::from((*text).to_owned()));
    assignments.iter().map(owned).collect()
}

fn protocol(name: &str, metadata: &[u8]) -> Protocol {
    Protocol { name: Str::from(name), metadata: Bytes::copy_from_slice(metadata) }
}

/// A subscription in the consumer protocol.
fn subscription(topics: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0, 0];
    bytes.extend((topics.len() as i32).to_be_bytes());
    for topic in topics {
        bytes.extend((topic.len() as i16).to_be_bytes());
        bytes.extend(topic.as_bytes());
    }
    bytes.extend((-1_i32).to_be_bytes());
    bytes
}

/// A consumer without an id yet, of an old version, that gets the id `fresh` and subscribes to t.
fn joining(fresh: &str) -> JoinRequest {
    JoinRequest {
        member_id: Str::EMPTY,
        fresh_member_id: Str::from(fresh),
        instance_id: None,
        client_id: Str::from("c"),
        client_host: Str::from("/127.0.0.1"),
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        protocol_type: Str::from(CONSUMER),
        protocols: vec![protocol("range", &subscription(&["t"]))],
        requires_known_member_id: false,
        may_be_given_id: true,
        supports_skipping_assignment: false,
    }
}

/// The same with an id.
fn rejoining(id: &str) -> JoinRequest {
    JoinRequest { member_id: Str::from(id), ..joining("unused") }
}

/// A static member without an id.
fn instance(name: &str, fresh: &str) -> JoinRequest {
    JoinRequest { instance_id: Some(Str::from(name)), ..joining(fresh) }
}

fn sync_of(id: &str, generation: i32) -> SyncRequest {
    SyncRequest {
        member_id: Str::from(id),
        instance_id: None,
        generation,
        protocol_type: None,
        protocol_name: None,
        assignments: BTreeMap::new(),
    }
}

fn committing(offset: i64, metadata: &str) -> OffsetToCommit {
    OffsetToCommit {
        offset: Offset(offset),
        leader_epoch: LeaderEpoch::UNKNOWN,
        metadata: Str::from(metadata),
        commit_timestamp: Millis(EPOCH_MS),
        expire_timestamp: None,
    }
}

fn commit_of(id: &str, generation: i32, offsets: &[(&str, i32, i64)]) -> CommitRequest {
    let offset =
        |(topic, partition, offset): &(&str, i32, i64)| (tp(topic, *partition), committing(*offset, ""));
    CommitRequest {
        member_id: Str::from(id),
        instance_id: None,
        generation,
        producer: None,
        offsets: offsets.iter().map(offset).collect(),
    }
}

fn of_transaction(producer_id: i64, offsets: &[(&str, i32, i64)]) -> CommitRequest {
    CommitRequest { producer: Some(Producer { id: producer_id, epoch: 0 }), ..commit_of("", -1, offsets) }
}

//! A fetch that names only what has changed says the same as one that names everything: whatever happens to the
//! partitions, what the leader remembers of a session is what a look at all of them would ask for.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const PARTITIONS: i32 = 4;

/// What may come to a fetcher between two of its requests, or as the answer to one.
#[derive(Clone, Debug)]
enum Act {
    /// A partition is to be followed in a later epoch than before, or for the first time; with or without a topic id.
    Add(i32, bool),
    Remove(i32),
    TopicId(i32, bool),
    Answer(Vec<(i32, About)>),
    SessionLost,
    Refused,
    Failed,
    Wait(i64),
}

/// What an answer says of a partition.
#[derive(Clone, Debug)]
enum About {
    Nothing,
    Records(usize),
    LogStart,
    Diverging,
    Error(ErrorCode),
}

fn about() -> impl Strategy<Value = About> {
    prop_oneof![
        3 => Just(About::Nothing),
        4 => (1usize..4).prop_map(About::Records),
        2 => Just(About::LogStart),
        1 => Just(About::Diverging),
        1 => Just(About::Error(ErrorCode::NotLeaderOrFollower)),
        1 => Just(About::Error(ErrorCode::OffsetOutOfRange)),
        1 => Just(About::Error(ErrorCode::FencedLeaderEpoch)),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let index = || 0..PARTITIONS;
    prop_oneof![
        3 => (index(), any::<bool>()).prop_map(|(index, id)| Act::Add(index, id)),
        1 => index().prop_map(Act::Remove),
        1 => (index(), any::<bool>()).prop_map(|(index, id)| Act::TopicId(index, id)),
        12 => proptest::collection::btree_map(index(), about(), 0..3)
            .prop_map(|said| Act::Answer(said.into_iter().collect())),
        1 => Just(Act::SessionLost),
        1 => Just(Act::Refused),
        1 => Just(Act::Failed),
        3 => prop_oneof![Just(1i64), Just(BACKOFF_MS / 2), Just(BACKOFF_MS)].prop_map(Act::Wait),
    ]
}

/// A fetcher, and what its leader remembers of the session.
struct Pair {
    bench: Bench,
    remembered: BTreeMap<TopicPartition, Asked>,
    fetch: Option<FetchRequest>,
    other: Option<Command>,
    epoch: i32,
    incremental: usize,
}

fn topic_id(index: i32) -> TopicId {
    TopicId([u8::try_from(index + 1).unwrap(); 16])
}

/// One topic for each partition, so that each can have an id or none.
fn name(index: i32) -> TopicPartition {
    TopicPartition::new(format!("t{index}").as_str(), 0)
}

impl Pair {
    fn new() -> Self {
        let bench = Bench::new(NEW);
        Self { bench, remembered: BTreeMap::new(), fetch: None, other: None, epoch: 0, incremental: 0 }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Add(index, with_id) => {
                self.epoch += 1;
                let log = self.bench.logs.logs.entry(name(*index));
                let log = log.or_insert_with(|| MemoryLog::with_epochs(&[(0, 0)], 3));
                let offset = Offset(log.log_end);
                let (leader_epoch, topic_id) = (LeaderEpoch(self.epoch), with_id.then(|| topic_id(*index)));
                let addition = Addition { partition: name(*index), topic_id, leader_epoch, offset };
                self.step(Event::Add(vec![addition]));
            }
            Act::Remove(index) => self.step(Event::Remove(vec![name(*index)])),
            Act::TopicId(index, known) => {
                self.step(Event::TopicIds(vec![(name(*index), known.then(|| topic_id(*index)))]));
            }
            Act::Answer(said) => self.answer(said),
            Act::SessionLost => self.answer_whole(refused(ErrorCode::FetchSessionIdNotFound)),
            Act::Refused => self.answer_whole(refused(ErrorCode::UnknownServerError)),
            Act::Failed => {
                let fetch = self.fetch.take().map(|it| it.id);
                let other = self.other.take().map(|it| match it {
                    Command::SendListOffsets(id, ..) | Command::SendOffsetsForLeaderEpoch(id, _) => id,
                    other => panic!("{other:?} is no request"),
                });
                if let Some(id) = fetch.or(other) {
                    self.step(Event::RequestFailed(id));
                }
            }
            Act::Wait(ms) => {
                self.bench.mono_ms += ms;
                self.step(Event::Tick);
            }
        }
    }

    fn answer_whole(&mut self, reply: FetchReply) {
        if let Some(fetch) = self.fetch.take() {
            self.step(Event::FetchReply(fetch.id, reply));
        }
    }

    fn answer(&mut self, said: &[(i32, About)]) {
        if let Some(Command::SendListOffsets(id, target, asked)) = self.other.take() {
            let answer = |(partition, _): &(TopicPartition, LeaderEpoch)| {
                let log = &self.bench.logs.logs[partition];
                let offset = Offset(if target == Target::Latest { log.log_end } else { log.log_start });
                ListOffsetsReply { partition: partition.clone(), error: ErrorCode::None, offset }
            };
            let replies = asked.iter().map(answer).collect();
            return self.step(Event::ListOffsetsReply(id, replies));
        }
        let Some(fetch) = self.fetch.take() else { return };
        let full = fetch.session_epoch == 0;
        let mut partitions = Vec::new();
        for index in 0..PARTITIONS {
            let Some(asked) = self.remembered.get(&name(index)) else { continue };
            let about = said.iter().find(|(it, _)| *it == index).map(|(_, about)| about);
            if full || about.is_some() {
                partitions.push(self.partition(&fetch, index, asked, about.unwrap_or(&About::Nothing)));
            }
        }
        self.step(Event::FetchReply(fetch.id, reply(5, partitions)));
    }

    fn partition(&self, fetch: &FetchRequest, index: i32, asked: &Asked, about: &About) -> PartitionReply {
        let topic =
            if fetch.by_id { TopicRef::Id(asked.topic_id) } else { TopicRef::Name(name(index).topic) };
        let log = &self.bench.logs.logs[&name(index)];
        let quiet = PartitionReply {
            key: PartitionKey { topic, partition: 0 },
            log_start: Offset(log.log_start),
            ..quiet(index, log.log_end)
        };
        match about {
            About::Nothing => quiet,
            About::Records(count) => PartitionReply { records_bytes: *count, ..quiet },
            About::LogStart => PartitionReply { log_start: Offset(log.log_end), ..quiet },
            About::Diverging => PartitionReply { diverging: Some(end_of(0, log.log_end - 1)), ..quiet },
            About::Error(error) => PartitionReply { error: *error, ..quiet },
        }
    }

    /// Lets an event happen, carries out what it brings about, and judges what is asked then.
    fn step(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for command in self.bench.step(event) {
                events.extend(self.obey(command));
            }
        }
    }

    fn obey(&mut self, command: Command) -> Option<Event> {
        let log = |pair: &mut Self, name: &TopicPartition, change: &dyn Fn(&mut MemoryLog)| {
            let log = pair.bench.logs.logs.get_mut(name).unwrap();
            change(log);
            (Offset(log.log_end), log.epochs.latest().map(|it| it.epoch))
        };
        match command {
            Command::SendFetch(fetch) => {
                self.judge(&fetch);
                self.fetch = Some(fetch);
                None
            }
            Command::SendListOffsets(..) | Command::SendOffsetsForLeaderEpoch(..) => {
                self.other = Some(command);
                None
            }
            Command::TruncateTo(work, offset, _) => {
                let (log_end, latest_epoch) = log(self, &work.partition, &|it| it.truncate_to(offset.0));
                Some(Event::Truncated { work: work.id, partition: work.partition, log_end, latest_epoch })
            }
            Command::TruncateFullyAndStartAt(work, offset, _) => {
                let begin = |it: &mut MemoryLog| *it = MemoryLog::empty_at(offset.0);
                let (log_end, latest_epoch) = log(self, &work.partition, &begin);
                Some(Event::Truncated { work: work.id, partition: work.partition, log_end, latest_epoch })
            }
            Command::Append(work) => {
                let append = |it: &mut MemoryLog| it.append_as_leader(work.leader_epoch.0, &["x"]);
                let (log_end, last_epoch) = log(self, &work.partition, &append);
                Some(Event::Appended { work: work.id, partition: work.partition, log_end, last_epoch })
            }
            Command::SetHighWatermark(name, _, offset) => {
                log(self, &name, &|it| it.set_high_watermark(offset.0));
                None
            }
            Command::SetLogStart(name, _, offset) => {
                log(self, &name, &|it| it.set_log_start(offset.0));
                None
            }
            Command::MarkFailed(..) | Command::Note(_) => None,
        }
    }

    /// Takes a request in as a leader does, and compares it with what a look at all partitions gives.
    fn judge(&mut self, fetch: &FetchRequest) {
        if fetch.session_epoch == 0 {
            self.remembered.clear();
        } else {
            self.incremental += 1;
        }
        for (partition, id) in &fetch.forgotten {
            let known = self.remembered.remove(partition).map(|it| it.topic_id);
            assert_eq!(known, Some(*id), "{partition} is forgotten as it is remembered");
        }
        for (partition, asked) in &fetch.partitions {
            let known = self.remembered.insert(partition.clone(), *asked);
            assert_ne!(known, Some(*asked), "{partition} is named without need");
            let same_topic = known.is_none_or(|it| !fetch.by_id || it.topic_id == asked.topic_id);
            assert!(same_topic, "{partition} is another one to the leader when its topic has another id");
        }
        assert_eq!(self.remembered, self.all_ready());
    }

    /// Everything that is ready to be fetched, with what is to be asked of it.
    fn all_ready(&self) -> BTreeMap<TopicPartition, Asked> {
        let ready = self.bench.fetcher.partitions.iter().filter(|(_, it)| it.is_ready(self.bench.mono_ms));
        let ask = |(name, it): (&TopicPartition, &Partition)| {
            // The leader's log start, if it has told a later one, is the log's before the request is sent.
            let log_start = Offset(self.bench.logs.logs[name].log_start);
            let fetch = FetchPartition {
                max_bytes: MAX_BYTES,
                fetch_offset: it.fetch_offset,
                current_leader_epoch: it.leader_epoch,
                log_start,
                last_fetched_epoch: it.last_fetched_epoch.unwrap_or(LeaderEpoch::UNKNOWN),
            };
            (name.clone(), Asked { topic_id: it.topic_id.unwrap_or(TopicId::ZERO), fetch })
        };
        ready.map(ask).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_session_holds_what_a_look_at_all_partitions_gives(acts in proptest::collection::vec(act(), 0..120)) {
        let mut pair = Pair::new();
        for act in &acts {
            pair.act(act);
        }
    }
}

/// The histories do contain what they are about.
#[test]
fn most_fetches_of_a_history_name_only_what_has_changed() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let acts = proptest::collection::vec(act(), 300).new_tree(&mut TestRunner::deterministic());
    let mut pair = Pair::new();
    for act in acts.unwrap().current() {
        pair.act(&act);
    }
    assert!(pair.incremental > 40, "{} incremental fetches", pair.incremental);
}

//! Stories: what happens to a cluster, line by line, and below each line, indented, what its controllers then do.
//!
//! | line | what happens |
//! |---|---|
//! | `~ LINE` | the same as the line, but nothing is told of it |
//! | `epoch 4 v9` | there have been controllers before |
//! | `owned 1 101`, `no-controller`, `elsewhere 9` | `/controller` lives by a session, goes, or another broker is elected |
//! | `brokers 1 2` | brokers without a controller of their own register |
//! | `controller 3 [unclean] [balance] [no-delete] [ibp 3.0]` | broker 3 registers if it has not, and its controller's session starts |
//! | `crash 1 2` | the sessions of these brokers end at once, and with them the brokers |
//! | `expire 3`, `stop 3`, `tick 1000` | the session ends under a broker; it stops; time passes, in milliseconds |
//! | `moved 1 9093` | a broker changes its port |
//! | `topic t 1,2 2,1`, `old-topic t 1,2`, `grow t 2,1`, `drop t`, `lose-id t` | the znode of a topic (an old one has no id) |
//! | `state t-0 leader 1 epoch 0 isr 1,2 by 1 v0` | somebody writes the state of a partition |
//! | `meanwhile LINE` | the same, just before the next write of a partition's state or of producer ids |
//! | `fail OPERATION moved`, `lost` or `broken` | the next operation whose name begins so fails |
//! | `lose OPERATION` | its answer is lost, and it is done again |
//! | `unseen LINE` | the same as the line, but nobody hears of it |
//! | `hold`, `release` | answers of the store are kept back, and come |
//! | `unclean t true`, `unclean-enabled t`, `unclean-default true` | configs |
//! | `alter 1 v2 t-0 epoch 0 isr 1 v0`, `shut-down 1 [epoch 3]` | requests |
//! | `delete t`, `deleted 1 t-0`, `not-deleted 1 KAFKA_STORAGE_ERROR t-0` | a topic is to be deleted; broker 1 did, or did not |
//! | `led 1 t-0`, `not-led 1 KAFKA_STORAGE_ERROR t-0`, `log-dir-event 1` | answers to LeaderAndIsr; a directory failed |
//! | `elect preferred t-0`, `elect unclean all`, `wants-preferred t-0` | elections by request and by znode |
//! | `producer-ids 1 [epoch 3]`, `producer-ids-end 999`, `isr-change t-0` | a block is wanted, was taken; a leader below 2.7 |
//! | `features 1 enabled x`, `update-feature x 1 [downgrade]` | features |
//! | `replica 1@t-0 Online`, `partition t-0 Offline`, `queued t`, `bad-dir 1 t-0` | what the controller in office knows |
//! | `replicas Offline: 1@t-0`, `partitions Online by Preferred: t-0` | a transition in the controller in office |
//! | `show` | states as stored, with the states of partitions and replicas; `show gauges` |

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch, Now, TopicPartition};

use super::parse::{self, partition, state, topic};
use super::print;
use super::receivers::Receivers;
use super::world::World;
use crate::controller::command::Command;
use crate::controller::context::{Context, Partition};
use crate::controller::event::{ApiRequest, Change, Event, RequestId};
use crate::controller::note::{Note, What};
use crate::controller::partitions::PartitionTransition;
use crate::controller::program::Step;
use crate::controller::replicas::ReplicaTransition;
use crate::controller::store::{ControllerNode, StoreFailure, StoreOp, StoreReply};
use crate::controller::values::{
    ControlRequest, LEADER_DURING_DELETE, LeaderAndIsr, ReplicaAssignment, TopicAssignment,
    UpdateMetadataBody,
};
use crate::controller::{Controller, settings::Settings};
use crate::metadata_version::MetadataVersion;
use crate::planted::Faults;

/// A cluster in the middle of a story.
#[derive(Default)]
pub(super) struct Story {
    pub(super) world: World,
    controllers: BTreeMap<BrokerId, Controller>,
    mail: VecDeque<(BrokerId, Event)>,
    held: Option<Vec<(BrokerId, Event)>>,
    faults: Vec<(String, Fault)>,
    meanwhile: Option<String>,
    now_ms: i64,
    requests: u64,
    unanswered: BTreeMap<RequestId, BrokerId>,
    told: Vec<String>,
    /// Faults planted in the controllers that are started from now on.
    pub(super) planted: Faults,
    /// What brokers do with requests on their own; if nothing, stories say what they answer.
    pub(super) receivers: Option<Receivers>,
}

#[derive(Clone, PartialEq, Eq)]
enum Fault {
    Fail(StoreFailure),
    LoseAnswer,
}

impl Story {
    /// Lets a line happen and returns what the controllers did.
    pub(super) fn line(&mut self, line: &str) -> Vec<String> {
        let quiet = line.strip_prefix("~ ");
        self.happen(quiet.unwrap_or(line));
        self.settle();
        let told = std::mem::take(&mut self.told);
        if quiet.is_some() { Vec::new() } else { told }
    }

    /// Lets a line happen; what follows from it is under way.
    pub(super) fn happen(&mut self, line: &str) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        match verb {
            "brokers" => parse::ids(&words).into_iter().for_each(|id| self.world.register(id)),
            "controller" => self.start(parse::id(words[0]), &words[1..]),
            "crash" => parse::ids(&words).into_iter().for_each(|id| self.crash(id)),
            "expire" => {
                self.world.end_session(parse::id(words[0]));
                self.mail.push_back((parse::id(words[0]), Event::SessionExpired));
            }
            "epoch" => {
                let version = words[1].trim_start_matches('v').parse().unwrap();
                self.world.epoch = Some((ControllerEpoch(words[0].parse().unwrap()), version));
            }
            "no-controller" => self.world.set_controller(None),
            "owned" => {
                let owner = words[1].parse().unwrap();
                self.world.set_controller(Some(ControllerNode { broker_id: parse::id(words[0]), owner }));
            }
            "elsewhere" => {
                let (epoch, version) = self.world.epoch.unwrap();
                self.world.epoch = Some((ControllerEpoch(epoch.0 + 1), version + 1));
                let broker_id = parse::id(words[0]);
                self.world.set_controller(Some(ControllerNode { broker_id, owner: 999 }));
            }
            "stop" => self.mail.push_back((parse::id(words[0]), Event::Shutdown)),
            "tick" => self.tick(words[0].parse().unwrap()),
            "moved" => self.world.move_broker(parse::id(words[0]), words[1].parse().unwrap()),
            "hold" => self.held = Some(Vec::new()),
            "unseen" => {
                let heard = self.mail.len();
                self.happen(rest);
                self.mail.truncate(heard);
            }
            "release" => self.mail.extend(self.held.take().unwrap_or_default()),
            "meanwhile" => self.meanwhile = Some(rest.to_owned()),
            "fail" => {
                let failure = match words[1] {
                    "moved" => StoreFailure::ControllerMoved,
                    "lost" => StoreFailure::SessionLost,
                    "broken" => StoreFailure::Unexpected("broken".to_owned()),
                    other => panic!("{other}?"),
                };
                self.faults.push((words[0].to_owned(), Fault::Fail(failure)));
            }
            "lose" => self.faults.push((words[0].to_owned(), Fault::LoseAnswer)),
            "show" => self.show(&words),
            _ => self.happen_to_topics(verb, rest, &words),
        }
        self.mail.extend(std::mem::take(&mut self.world.fired));
    }

    fn happen_to_topics(&mut self, verb: &str, rest: &str, words: &[&str]) {
        match verb {
            "topic" | "old-topic" => {
                let id = (verb == "topic").then(|| self.world.fresh_id());
                let replicas = words[1..].iter().map(|ids| ReplicaAssignment::of(parse::list(ids)));
                let partitions = (0..).zip(replicas).collect();
                self.world.set_topic(&topic(words[0]), TopicAssignment { topic_id: id, partitions });
            }
            "grow" => self.change_topic(words[0], |topic| {
                let index = topic.partitions.keys().next_back().map_or(0, |last| last + 1);
                topic.partitions.insert(index, ReplicaAssignment::of(parse::list(words[1])));
            }),
            "lose-id" => self.change_topic(words[0], |topic| topic.topic_id = None),
            "drop" => self.world.drop_topic(&topic(words[0])),
            "state" => {
                let (name, text) = rest.split_once(' ').unwrap();
                self.world.set_state(partition(name), state(text));
            }
            "no-state" => {
                self.world.states.remove(&partition(words[0]));
            }
            "unclean" => {
                let read =
                    if words[1] == "unreadable" { Err("bad".to_owned()) } else { Ok(words[1].parse().ok()) };
                self.world.unclean.insert(topic(words[0]), read);
            }
            "unclean-enabled" => {
                self.tell_active(Event::Changed(Change::UncleanElection(Some(topic(words[0])))))
            }
            "unclean-default" => self.tell_active(Event::UncleanElectionDefault(words[0] == "true")),
            "alter" => self.request(ApiRequest::AlterPartition(parse::alter(rest, &self.world))),
            "shut-down" => {
                let broker = parse::id(words[0]);
                let broker_epoch = self.broker_epoch(broker, words);
                self.request(ApiRequest::ControlledShutdown { broker, broker_epoch });
            }
            _ if self.administer(verb, rest, words) => {}
            _ => self.happen_inside(verb, rest, words),
        }
    }

    /// Reaches into the controller in office.
    fn happen_inside(&mut self, verb: &str, rest: &str, words: &[&str]) {
        let id = self.active();
        let controller = self.controllers.get_mut(&id).unwrap();
        let context = &mut controller.context;
        let program = match verb {
            "replica" => {
                return context.set_replica_state(&parse::replica(words[0]), parse::replica_state(words[1]));
            }
            "partition" => {
                return context.set_partition_state(&partition(words[0]), parse::partition_state(words[1]));
            }
            "queued" => {
                context.deletions.queued.insert(topic(words[0]));
                return;
            }
            "bad-dir" => {
                context.offline_dirs.entry(parse::id(words[0])).or_default().insert(partition(words[1]));
                return;
            }
            "replicas" => {
                let (target, replicas) = rest.split_once(": ").unwrap();
                let replicas = replicas.split(' ').map(parse::replica).collect();
                Step::Replicas(ReplicaTransition::new(replicas, parse::replica_state(target)))
            }
            "partitions" => {
                let (how, partitions) = rest.split_once(": ").unwrap();
                let (target, strategy) = how.split_once(" by ").unwrap_or((how, ""));
                let partitions = partitions.split(' ').map(partition).collect();
                let target = parse::partition_state(target);
                Step::Partitions(PartitionTransition::new(partitions, target, parse::strategy(strategy)))
            }
            other => panic!("{other}?"),
        };
        let mut out = Vec::new();
        controller.run_alone(Now::default(), vec![program], &mut out);
        self.carry_out(id, out);
    }

    /// The epoch after the broker of a request, or that of the broker's present run.
    pub(super) fn broker_epoch(&self, broker: BrokerId, words: &[&str]) -> BrokerEpoch {
        let epoch = self.world.brokers.get(&broker).map_or(BrokerEpoch(0), |broker| broker.epoch);
        words.get(2).map_or(epoch, |text| BrokerEpoch(text.parse().unwrap()))
    }

    fn start(&mut self, id: BrokerId, options: &[&str]) {
        if !self.world.brokers.contains_key(&id) {
            self.world.register(id);
        }
        let release = options.iter().position(|word| *word == "ibp").map(|at| options[at + 1]);
        let release =
            release.map_or(MetadataVersion::LATEST_PRODUCTION, |text| MetadataVersion::parse(text).unwrap());
        let settings = Settings {
            unclean_leader_election_enable: options.contains(&"unclean"),
            delete_topic_enable: !options.contains(&"no-delete"),
            auto_leader_rebalance_enable: options.contains(&"balance"),
            faults: self.planted,
            ..Settings::new(id, release, "PLAINTEXT")
        };
        self.controllers.entry(id).or_insert_with(|| Controller::new(settings));
        self.mail.push_back((id, Event::SessionStarted { session: self.world.session(id) }));
    }

    fn crash(&mut self, id: BrokerId) {
        self.controllers.remove(&id);
        self.unanswered.retain(|_, asked| *asked != id);
        self.mail.retain(|(to, _)| *to != id);
        self.world.end_session(id);
    }

    fn tick(&mut self, ms: i64) {
        self.now_ms += ms;
        for (id, controller) in &self.controllers {
            if controller.deadline().is_some_and(|deadline| deadline <= self.now_ms) {
                self.mail.push_back((*id, Event::Tick));
            }
        }
    }

    fn change_topic(&mut self, name: &str, change: impl FnOnce(&mut TopicAssignment)) {
        let mut changed = self.world.topics[&topic(name)].clone();
        change(&mut changed);
        self.world.set_topic(&topic(name), changed);
    }

    pub(super) fn request(&mut self, request: ApiRequest) {
        self.requests += 1;
        self.unanswered.insert(RequestId(self.requests), self.active());
        self.tell_active(Event::Request { id: RequestId(self.requests), request });
    }

    pub(super) fn tell_active(&mut self, event: Event) {
        let id = self.active();
        self.mail.push_back((id, event));
    }

    /// The broker in office, or the first if none is.
    fn active(&self) -> BrokerId {
        let active = self.controllers.iter().find(|(_, controller)| controller.is_active());
        *active.or(self.controllers.iter().next()).expect("a controller").0
    }

    fn settle(&mut self) {
        while let Some((id, event)) = self.mail.pop_front() {
            self.tell(id, event);
        }
    }

    fn tell(&mut self, id: BrokerId, event: Event) {
        let Some(controller) = self.controllers.get_mut(&id) else { return };
        let mut out = Vec::new();
        controller.step(Now { mono_ms: self.now_ms, wall_ms: self.now_ms }, event, &mut out);
        controller.check();
        self.carry_out(id, out);
    }

    fn carry_out(&mut self, by: BrokerId, commands: Vec<Command>) {
        let mut commands = commands.into_iter().peekable();
        while let Some(command) = commands.next() {
            let command = &command;
            self.judge(command);
            if let (Command::Send { broker, request }, Some(receivers)) = (command, &mut self.receivers) {
                let response = receivers.receive(&mut self.world, *broker, request);
                let answer = response.map(|response| (by, Event::Responded { broker: *broker, response }));
                self.mail.extend(answer);
            }
            let lines = match command {
                Command::Store { id, op } => {
                    let id = *id;
                    let (lines, result) = self.operate(by, op);
                    let done = (by, Event::StoreDone { id, result });
                    match &mut self.held {
                        Some(held) => held.push(done),
                        None => self.mail.push_back(done),
                    }
                    lines
                }
                Command::Send { broker, request: ControlRequest::UpdateMetadata(request) } => {
                    let mut receivers = vec![self.receiver(*broker, request.sender.broker_epoch)];
                    while let Some(Command::Send { broker, request: ControlRequest::UpdateMetadata(next) }) =
                        commands.next_if(|next| is_same_news(next, &request.body))
                    {
                        receivers.push(self.receiver(broker, next.sender.broker_epoch));
                    }
                    print::send(&receivers.join(","), &ControlRequest::UpdateMetadata(request.clone()))
                }
                Command::Note(Note { what: What::Replica { partition, broker, from, to }, .. }) => {
                    let mut line = format!("replicas {from:?} -> {to:?}: {broker}@{partition}");
                    while let Some(Command::Note(Note {
                        what: What::Replica { partition, broker, .. },
                        ..
                    })) = commands.next_if(|next| is_same_move(next, command))
                    {
                        line += &format!(" {broker}@{partition}");
                    }
                    vec![line]
                }
                Command::Note(Note { what: What::Partition { partition, from, to }, .. }) => {
                    let mut line = format!("partitions {from:?} -> {to:?}: {partition}");
                    while let Some(Command::Note(Note { what: What::Partition { partition, .. }, .. })) =
                        commands.next_if(|next| is_same_move(next, command))
                    {
                        line += &format!(" {partition}");
                    }
                    vec![line]
                }
                Command::Send { broker, request } => {
                    print::send(&self.receiver(*broker, request.broker_epoch()), request)
                }
                other => print::command(other),
            };
            let prefix = if self.controllers.len() > 1 { format!("[{by}] ") } else { String::new() };
            self.told.extend(lines.into_iter().map(|line| format!("{prefix}{line}")));
        }
    }

    /// What holds for every command: a request is answered once, and what is sent was written before.
    fn judge(&mut self, command: &Command) {
        match command {
            Command::Answer { id, .. } => {
                assert!(self.unanswered.remove(id).is_some(), "{id:?} is answered twice");
            }
            Command::Send { request: ControlRequest::LeaderAndIsr(request), .. } => {
                let sent = request.partitions.iter();
                sent.for_each(|(name, partition)| self.world.check_was_stored(name, &partition.state));
            }
            Command::Send { request: ControlRequest::UpdateMetadata(request), .. } => {
                let sent = request.body.partitions.iter();
                sent.filter(|(_, partition)| partition.state.leader != LEADER_DURING_DELETE)
                    .for_each(|(name, partition)| self.world.check_was_stored(name, &partition.state));
            }
            _ => {}
        }
    }

    /// The broker, and its run if it is not the first.
    fn receiver(&self, broker: BrokerId, epoch: BrokerEpoch) -> String {
        let runs = self.world.runs.get(&broker).map(Vec::as_slice).unwrap_or_default();
        match runs.iter().position(|run| *run == epoch) {
            Some(0) | None => broker.to_string(),
            Some(at) => format!("{broker} (run {})", at + 1),
        }
    }

    fn operate(&mut self, by: BrokerId, op: &StoreOp) -> (Vec<String>, Result<StoreReply, StoreFailure>) {
        if matches!(
            op,
            StoreOp::WritePartitionStates { .. }
                | StoreOp::CreatePartitionStates { .. }
                | StoreOp::WriteProducerIds { .. }
        ) && let Some(line) = self.meanwhile.take()
        {
            self.happen(&line);
        }
        let at = self.faults.iter().position(|(name, _)| format!("{op:?}").starts_with(name.as_str()));
        let fault = at.map(|at| self.faults.remove(at).1);
        let result = match fault {
            Some(Fault::Fail(failure)) => Err(failure),
            Some(Fault::LoseAnswer) => self.world.run(by, op).and_then(|_| self.world.run(by, op)),
            None => self.world.run(by, op),
        };
        self.mail.extend(std::mem::take(&mut self.world.fired));
        (print::operation(op, &result), result)
    }

    fn show(&mut self, words: &[&str]) {
        let controller = &self.controllers[&self.active()];
        if words == ["gauges"] {
            let text = format!("{:?}", controller.gauges());
            let fields = text.trim_start_matches("Gauges { ").trim_end_matches(" }").split(", ");
            self.told.extend(fields.filter(|field| !field.ends_with(": 0")).map(str::to_owned));
            return;
        }
        let known: BTreeSet<TopicPartition> =
            controller.context().partitions().map(|(name, _)| name).collect();
        for name in known.iter().chain(self.world.states.keys()).collect::<BTreeSet<_>>() {
            let stored = self.world.states.get(name).map_or("no state".to_owned(), print::state);
            let inside =
                controller.context().partition(name).map(|known| inside(known, self.world.states.get(name)));
            self.told.push(format!("{name} {stored}{}", inside.unwrap_or_default()));
        }
    }
}

/// For random histories.
impl Story {
    /// The next event for one of the controllers reaches it.
    pub(super) fn deliver(&mut self, choice: usize) {
        let receivers: BTreeSet<BrokerId> = self.mail.iter().map(|(id, _)| *id).collect();
        let Some(to) = receivers.iter().nth(choice % receivers.len().max(1)).copied() else { return };
        let at = self.mail.iter().position(|(id, _)| *id == to);
        if let Some((id, event)) = at.and_then(|at| self.mail.remove(at)) {
            self.tell(id, event);
        }
    }

    /// A line that needs a controller.
    pub(super) fn happen_if_active(&mut self, line: &str) {
        if !self.controllers.is_empty() {
            self.happen(line);
        }
    }

    /// Whether a broker is registered.
    pub(super) fn is_registered(&self, id: BrokerId) -> bool {
        self.world.brokers.contains_key(&id)
    }

    /// The partitions of all topics.
    pub(super) fn partitions(&self) -> Vec<TopicPartition> {
        let topics = self.world.topics.iter();
        let partitions = topics.flat_map(|(name, topic)| {
            topic.partitions.keys().map(|index| TopicPartition::new(name.clone(), *index))
        });
        partitions.collect()
    }

    /// The state of a partition as stored.
    pub(super) fn stored(&self, partition: &TopicPartition) -> Option<&LeaderAndIsr> {
        self.world.states.get(partition)
    }

    /// From here on no leader may come from outside the in-sync replicas.
    pub(super) fn forbid_unclean_elections(&mut self) {
        self.world.forbids_unclean_elections = true;
    }

    /// A controller, taken out of the story.
    pub(super) fn take_controller(&mut self, id: BrokerId) -> Controller {
        self.controllers.remove(&id).expect("a controller")
    }

    /// What was to fail does not.
    pub(super) fn forget_faults(&mut self) {
        self.faults.clear();
    }

    /// The context of the one controller in office.
    pub(super) fn context_in_office(&self) -> &Context {
        let mut active = self.controllers.values().filter(|controller| controller.is_active());
        let controller = active.next().expect("a controller");
        assert!(active.next().is_none(), "two brokers are controller");
        controller.context()
    }

    /// Every request was answered once, but those that a broker took with it.
    pub(super) fn check_answers(&self) {
        assert!(self.unanswered.is_empty(), "never answered: {:?}", self.unanswered);
    }
}

/// What a controller knows of a partition, beside what is stored.
fn inside(known: &Partition, stored: Option<&LeaderAndIsr>) -> String {
    let mut text = String::new();
    if let Some(leadership) = known.leadership.as_ref().filter(|leadership| Some(*leadership) != stored) {
        text += &format!("; known as {}", print::state(leadership));
    }
    text += &format!("; {:?} of {};", known.state, print::assignment(&known.assignment));
    known.replicas.iter().for_each(|(id, state)| text += &format!(" {id} {state:?}"));
    text
}

/// Whether two notes tell that replicas, or partitions, changed from one state to the same other.
fn is_same_move(one: &Command, other: &Command) -> bool {
    let (Command::Note(one), Command::Note(other)) = (one, other) else { return false };
    match (&one.what, &other.what) {
        (What::Replica { from, to, .. }, What::Replica { from: from2, to: to2, .. }) => {
            (from, to) == (from2, to2)
        }
        (What::Partition { from, to, .. }, What::Partition { from: from2, to: to2, .. }) => {
            (from, to) == (from2, to2)
        }
        _ => false,
    }
}

fn is_same_news(command: &Command, body: &Arc<UpdateMetadataBody>) -> bool {
    matches!(command, Command::Send { request: ControlRequest::UpdateMetadata(next), .. } if Arc::ptr_eq(&next.body, body))
}

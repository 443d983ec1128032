//! Events in, one program at a time, and the ways in which a program is given up.
//!
//! Three things overtake what waits: the end of the session, the stop of the broker, and a change of `/controller`, which
//! is read at once beside the program under work; if somebody else holds it, the term is over. A store operation that
//! fails ends the term too: because another controller was elected, because the session is over, or because nobody knows
//! what was written, in which case the office is given up so that the next term reads everything anew.
//!
//! Whoever asked for something gets an answer, also from a program that is given up.

use wire::error_code::ErrorCode;
use wire::types::{BrokerId, Now, TopicPartition};

use super::alter_partition::AlterIsr;
use super::command::Command;
use super::context::Context;
use super::controlled_shutdown::ShutdownRequest;
use super::event::{ApiRequest, Change, Event, RequestId};
use super::note::{Cause, Note, What};
use super::producer_ids::Allocation;
use super::program::{Elections, Flow, Step, Turn};
use super::queue::{Task, Waiting};
use super::responses::{self, Outcomes};
use super::store::{ControllerNode, OpId, StoreFailure, StoreOp, StoreReply};
use super::values::ControlResponse;
use super::{Controller, ControllerWatch, FIRST_BALANCE_MS, HOLD_OFF_MS, office, unclean};

/// What is being worked on, by the value of the gauge `ControllerState`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum ControllerState {
    /// Nothing.
    #[default]
    Idle = 0,
    /// Who is controller, and the start of a term.
    ControllerChange = 1,
    /// The list of brokers, or what one tells of itself.
    BrokerChange = 2,
    /// The list of topics, or one topic.
    TopicChange = 3,
    /// The deletion of topics.
    TopicDeletion = 4,
    /// The balance of leaders.
    AutoLeaderBalance = 6,
    /// Elections that somebody asked for.
    ManualLeaderBalance = 7,
    /// A controlled shutdown.
    ControlledShutdown = 8,
    /// A change of in-sync replicas.
    IsrChange = 9,
    /// What a broker answered to LeaderAndIsr.
    LeaderAndIsrResponseReceived = 10,
    /// A failed log directory.
    LogDirChange = 11,
    /// Unclean elections were allowed by default.
    UncleanLeaderElectionEnable = 13,
    /// Unclean elections were allowed for a topic.
    TopicUncleanLeaderElectionEnable = 14,
    /// A change of finalized features.
    UpdateFeatures = 17,
}

/// The event under work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Running {
    cause: Cause,
    state: ControllerState,
    /// What comes next is last.
    program: Vec<Step>,
    /// The store operation that is open, and the step that goes on with its reply.
    open: Option<(OpId, Step)>,
    elections: Elections,
    unanswered: Option<RequestId>,
    /// The answer if the program is given up.
    refusal: ErrorCode,
}

impl Running {
    /// What is being worked on.
    pub(super) fn state(&self) -> ControllerState {
        self.state
    }

    /// Asserts that the program waits for the store: otherwise it would have gone on.
    pub(super) fn check(&self) {
        assert!(self.open.is_some(), "a program stands still");
    }
}

/// The program of a task, and what the gauge shows meanwhile.
fn program_of(task: &Task) -> (Vec<Step>, ControllerState) {
    match task.clone() {
        Task::Elect => (office::elect(), ControllerState::ControllerChange),
        Task::Yield { epoch_version } => {
            (vec![Step::DeleteController { epoch_version }], ControllerState::ControllerChange)
        }
        Task::Change(Change::Brokers) => (vec![Step::CompareBrokers], ControllerState::BrokerChange),
        Task::Change(Change::Broker(id)) => (vec![Step::CompareBroker(id)], ControllerState::BrokerChange),
        Task::Change(Change::Topics) => (vec![Step::CompareTopics], ControllerState::TopicChange),
        Task::Change(Change::Topic(topic)) => (vec![Step::CompareTopic(topic)], ControllerState::TopicChange),
        Task::Change(Change::Deletions) => (vec![Step::CompareDeletions], ControllerState::TopicDeletion),
        Task::Change(Change::LogDirEvents) => (vec![Step::ReadLogDirEvents], ControllerState::LogDirChange),
        Task::Change(Change::IsrChanges) => (vec![Step::ReadIsrChanges], ControllerState::IsrChange),
        Task::Change(Change::PreferredElection) => {
            (vec![Step::ReadPreferredElection], ControllerState::ManualLeaderBalance)
        }
        Task::Balance => (vec![Step::BalanceLeaders], ControllerState::AutoLeaderBalance),
        Task::Led(broker, run, outcomes) => {
            (vec![Step::ReplicasLed { broker, run, outcomes }], ControllerState::LeaderAndIsrResponseReceived)
        }
        Task::Deleted(broker, run, outcomes) => {
            (vec![Step::ReplicasDeleted { broker, run, outcomes }], ControllerState::TopicDeletion)
        }
        Task::Change(Change::UncleanElection(None)) => {
            (unclean::enabled(None), ControllerState::UncleanLeaderElectionEnable)
        }
        Task::Change(Change::UncleanElection(topic)) => {
            (unclean::enabled(topic), ControllerState::TopicUncleanLeaderElectionEnable)
        }
        Task::Request(_, ApiRequest::AlterPartition(request)) => {
            (vec![Step::AlterIsr(AlterIsr::new(request))], ControllerState::IsrChange)
        }
        Task::Request(_, ApiRequest::ControlledShutdown { broker, broker_epoch }) => {
            let request = ShutdownRequest { broker, broker_epoch };
            (vec![Step::ShutDownBroker(request)], ControllerState::ControlledShutdown)
        }
        Task::Request(_, ApiRequest::ElectLeaders(request)) => {
            (vec![Step::ElectLeaders(request)], ControllerState::ManualLeaderBalance)
        }
        Task::Request(_, ApiRequest::AllocateProducerIds { broker, broker_epoch }) => {
            let step = Step::AllocateProducerIds(Allocation::new(broker, broker_epoch));
            (vec![step], ControllerState::Idle)
        }
        Task::Request(_, ApiRequest::UpdateFeatures(updates)) => {
            (vec![Step::UpdateFeatures(updates)], ControllerState::UpdateFeatures)
        }
    }
}

/// The text by which notes name a task.
fn name_of(task: &Task) -> String {
    match task {
        Task::Elect => "Elect".to_owned(),
        Task::Yield { .. } => "Yield".to_owned(),
        Task::Change(Change::Brokers) => "BrokerChange".to_owned(),
        Task::Change(Change::Broker(id)) => format!("BrokerModifications({id})"),
        Task::Change(Change::Topics) => "TopicChange".to_owned(),
        Task::Change(Change::Topic(topic)) => format!("PartitionModifications({topic})"),
        Task::Change(Change::Deletions) => "TopicDeletion".to_owned(),
        Task::Change(Change::LogDirEvents) => "LogDirEventNotification".to_owned(),
        Task::Change(Change::IsrChanges) => "IsrChangeNotification".to_owned(),
        Task::Change(Change::PreferredElection) => "ReplicaLeaderElection(znode)".to_owned(),
        Task::Balance => "AutoPreferredReplicaLeaderElection".to_owned(),
        Task::Led(broker, ..) => format!("LeaderAndIsrResponseReceived({broker})"),
        Task::Deleted(broker, ..) => format!("TopicDeletionStopReplicaResponseReceived({broker})"),
        Task::Change(Change::UncleanElection(None)) => "UncleanLeaderElectionEnable".to_owned(),
        Task::Change(Change::UncleanElection(Some(topic))) => {
            format!("TopicUncleanLeaderElectionEnable({topic})")
        }
        Task::Request(_, ApiRequest::AlterPartition(request)) => {
            format!("AlterPartition({})", request.broker)
        }
        Task::Request(_, ApiRequest::ControlledShutdown { broker, .. }) => {
            format!("ControlledShutdown({broker})")
        }
        Task::Request(_, ApiRequest::ElectLeaders(request)) => {
            format!("ReplicaLeaderElection({:?})", request.kind)
        }
        Task::Request(_, ApiRequest::AllocateProducerIds { broker, .. }) => {
            format!("AllocateProducerIds({broker})")
        }
        Task::Request(_, ApiRequest::UpdateFeatures(_)) => "UpdateFeatures".to_owned(),
    }
}

/// The answer to a request at a broker that is not controller, or no longer.
fn refusal(request: &ApiRequest) -> ErrorCode {
    match request {
        ApiRequest::ControlledShutdown { .. } => ErrorCode::StaleControllerEpoch,
        ApiRequest::AlterPartition(_)
        | ApiRequest::ElectLeaders(_)
        | ApiRequest::AllocateProducerIds { .. }
        | ApiRequest::UpdateFeatures(_) => ErrorCode::NotController,
    }
}

/// Events.
impl Controller {
    /// Looks at an event, or queues it.
    pub(super) fn take_in(&mut self, now: Now, event: Event, out: &mut Vec<Command>) {
        match event {
            Event::SessionStarted { session } if !self.is_stopped => self.begin_session(session, out),
            Event::SessionStarted { .. } => {}
            Event::SessionExpired => self.end_session("the session has expired", out),
            Event::Shutdown => {
                self.end_session("the broker stops", out);
                self.is_stopped = true;
            }
            Event::Tick => self.tick(now, out),
            Event::ControllerNodeChanged => self.watch_controller(out),
            Event::Changed(change) => {
                if self.office.is_active() {
                    self.queue(Task::Change(change), None, out);
                }
            }
            Event::UncleanElectionDefault(is_allowed) => {
                self.settings.unclean_leader_election_enable = is_allowed;
                if is_allowed && self.office.is_active() {
                    self.queue(Task::Change(Change::UncleanElection(None)), None, out);
                }
            }
            Event::Request { id, request } => {
                if self.office.is_active() {
                    self.queue(Task::Request(id, request), None, out);
                } else {
                    out.push(Command::Answer { id, answer: Err(refusal(&request)) });
                }
            }
            Event::Responded { broker, response } => self.responded(broker, response, out),
            Event::StoreDone { id, result } => self.store_done(now, id, result, out),
        }
    }

    /// Notes an error of a whole request, and queues what an answer says of replicas, if something follows from it.
    fn responded(&mut self, broker: BrokerId, response: ControlResponse, out: &mut Vec<Command>) {
        let (ControlResponse::LeaderAndIsr { error, .. }
        | ControlResponse::UpdateMetadata { error }
        | ControlResponse::StopReplica { error, .. }) = response;
        if !self.office.is_active() {
            return;
        }
        if error.is_error() {
            self.note(What::ResponseError { broker, error: error.name() }, out);
        }
        let Some(run) = self.context.registered().get(&broker).map(|known| known.epoch) else { return };
        match response {
            ControlResponse::LeaderAndIsr { error: ErrorCode::None, partitions } => {
                let follows_another = self.queue.holds_answer_of(broker);
                if follows_another || responses::matters(&self.context, broker, &partitions) {
                    self.queue(Task::Led(broker, run, partitions), None, out);
                }
            }
            ControlResponse::StopReplica { error, deleted } => {
                let outcome = |own: ErrorCode| if error.is_error() { error } else { own };
                let is_wanted =
                    |partition: &TopicPartition| self.context.is_queued_for_deletion(&partition.topic);
                let outcomes: Outcomes = deleted
                    .into_iter()
                    .filter(|(partition, _)| is_wanted(partition))
                    .map(|(partition, own)| (partition, outcome(own)))
                    .collect();
                if !outcomes.is_empty() {
                    self.queue(Task::Deleted(broker, run, outcomes), None, out);
                }
            }
            _ => {}
        }
    }

    fn begin_session(&mut self, session: i64, out: &mut Vec<Command>) {
        self.end_session("a new session has begun", out);
        self.office.begin_session(session);
        self.queue(Task::Elect, None, out);
    }

    fn end_session(&mut self, reason: &str, out: &mut Vec<Command>) {
        self.leave_office(reason, out);
        self.abandon(out);
        // Out of office nothing waits but the wish to stand, or to give up what is gone anyway.
        self.queue.drain();
        self.office.end_session();
        self.watch = ControllerWatch::default();
        self.hold_off_until = None;
    }

    fn tick(&mut self, now: Now, out: &mut Vec<Command>) {
        if self.hold_off_until.is_some_and(|until| now.mono_ms >= until) {
            self.hold_off_until = None;
            self.watch_controller(out);
        }
        if self.balance_at.is_some_and(|at| now.mono_ms >= at) {
            self.balance_at =
                Some(now.mono_ms.saturating_add(self.settings.leader_imbalance_check_interval_ms));
            self.queue(Task::Balance, None, out);
        }
    }

    fn store_done(
        &mut self,
        now: Now,
        id: OpId,
        result: Result<StoreReply, StoreFailure>,
        out: &mut Vec<Command>,
    ) {
        if self.watch.read == Some(id) {
            self.watch.read = None;
            return self.controller_read(now, result, out);
        }
        let Some(running) = &mut self.running else { return };
        // The end of an operation of a program that was given up.
        let Some((_, step)) = running.open.take_if(|(open, _)| *open == id) else { return };
        match result {
            Ok(reply) => self.run(now, step, Some(reply), out),
            Err(failure) => self.fail(now, failure, out),
        }
    }

    /// Queues a task; refuses a request when too many wait.
    fn queue(&mut self, task: Task, parent: Option<u64>, out: &mut Vec<Command>) {
        if let Err(id) = self.queue.push(task, parent) {
            out.push(Command::Answer { id, answer: Err(ErrorCode::RequestTimedOut) });
        }
    }

    fn note(&self, what: What, out: &mut Vec<Command>) {
        let cause = self.running.as_ref().map(|running| running.cause.clone()).unwrap_or_default();
        out.push(Command::Note(Note { cause, controller_epoch: self.office.epoch(), what }));
    }

    fn open(&mut self, op: StoreOp, out: &mut Vec<Command>) -> OpId {
        self.next_op += 1;
        let id = OpId(self.next_op);
        out.push(Command::Store { id, op });
        id
    }
}

/// The program under work.
impl Controller {
    /// Works until the store has to be waited for or nothing is left.
    pub(super) fn advance(&mut self, now: Now, out: &mut Vec<Command>) {
        loop {
            match &mut self.running {
                None => match self.queue.pop() {
                    Some(waiting) => self.begin(waiting),
                    None => return,
                },
                Some(running) if running.open.is_some() => return,
                Some(running) => match running.program.pop() {
                    Some(step) => self.run(now, step, None, out),
                    None => self.abandon(out),
                },
            }
        }
    }

    /// Runs a program that no event led to.
    #[cfg(test)]
    pub(super) fn run_alone(&mut self, now: Now, program: Vec<Step>, out: &mut Vec<Command>) {
        self.begin(Waiting { task: Task::Elect, parent: None });
        if let Some(running) = &mut self.running {
            running.program = program.into_iter().rev().collect();
        }
        self.advance(now, out);
    }

    fn begin(&mut self, Waiting { task, parent }: Waiting) {
        self.events += 1;
        let (mut program, state) = program_of(&task);
        program.reverse();
        let (unanswered, refusal) = match &task {
            Task::Request(id, request) => (Some(*id), refusal(request)),
            _ => (None, ErrorCode::NotController),
        };
        self.running = Some(Running {
            cause: Cause { number: self.events, event: name_of(&task), parent },
            state,
            program,
            open: None,
            elections: Elections::new(),
            unanswered,
            refusal,
        });
    }

    fn run(&mut self, now: Now, step: Step, reply: Option<StoreReply>, out: &mut Vec<Command>) {
        let Some(running) = &mut self.running else { return };
        let was_active = self.office.is_active();
        let mut raised = Vec::new();
        let mut turn = Turn {
            settings: &self.settings,
            office: &mut self.office,
            context: &mut self.context,
            cause: &running.cause,
            elections: &mut running.elections,
            unanswered: &mut running.unanswered,
            raised: &mut raised,
            out,
        };
        let flow = step.run(&mut turn, reply);
        let parent = Some(running.cause.number);
        for change in raised {
            self.queue(Task::Change(change), parent, out);
        }
        if !was_active && self.office.is_active() && self.settings.auto_leader_rebalance_enable {
            self.balance_at = Some(now.mono_ms.saturating_add(FIRST_BALANCE_MS));
        }
        let Some(running) = &mut self.running else { return };
        match flow {
            Flow::Done => {}
            Flow::Then(steps) => running.program.extend(steps.into_iter().rev()),
            Flow::Ask(op, step) => {
                let id = self.open(op, out);
                if let Some(running) = &mut self.running {
                    running.open = Some((id, *step));
                }
            }
            Flow::Fail(reason) => self.fail(now, StoreFailure::Unexpected(reason), out),
        }
    }

    /// Ends the program, wherever it stands.
    fn abandon(&mut self, out: &mut Vec<Command>) {
        if let Some(Running { unanswered: Some(id), refusal, .. }) = self.running.take() {
            out.push(Command::Answer { id, answer: Err(refusal) });
        }
    }
}

/// The office.
impl Controller {
    /// Reads `/controller`, beside the program under work.
    fn watch_controller(&mut self, out: &mut Vec<Command>) {
        if !self.office.has_session() {
            return;
        }
        if self.watch.read.is_some() {
            self.watch.is_stale = true;
            return;
        }
        let id = self.open(StoreOp::ReadController, out);
        self.watch = ControllerWatch { read: Some(id), is_stale: false };
    }

    fn controller_read(
        &mut self,
        now: Now,
        result: Result<StoreReply, StoreFailure>,
        out: &mut Vec<Command>,
    ) {
        if self.watch.is_stale {
            return self.watch_controller(out);
        }
        match result {
            Ok(StoreReply::Controller(node)) => self.controller_is(node, out),
            // The event of the session's end follows.
            Err(StoreFailure::SessionLost) => {}
            Ok(_) | Err(_) => {
                self.note(What::StoreFailed { reason: "/controller cannot be read".to_owned() }, out);
                self.hold_off_until = Some(now.mono_ms.saturating_add(HOLD_OFF_MS));
            }
        }
    }

    fn controller_is(&mut self, node: Option<ControllerNode>, out: &mut Vec<Command>) {
        let is_ours = node.is_some_and(|node| self.office.owns(node));
        if self.office.is_active() {
            if is_ours {
                return;
            }
            let reason = match node {
                Some(node) => format!("broker {} was elected", node.broker_id),
                None => "/controller was deleted".to_owned(),
            };
            self.leave_office(&reason, out);
        }
        self.office.see(node, self.settings.broker_id);
        if (node.is_none() || is_ours) && self.hold_off_until.is_none() {
            self.queue(Task::Elect, None, out);
        }
    }

    fn fail(&mut self, now: Now, failure: StoreFailure, out: &mut Vec<Command>) {
        match failure {
            StoreFailure::ControllerMoved => {
                self.leave_office("another controller was elected", out);
                self.abandon(out);
                self.watch_controller(out);
            }
            StoreFailure::SessionLost => self.end_session("the session is over", out),
            StoreFailure::Unexpected(reason) => {
                let parent = self.running.as_ref().map(|running| running.cause.number);
                self.note(What::StoreFailed { reason: reason.clone() }, out);
                self.hold_off_until = Some(now.mono_ms.saturating_add(HOLD_OFF_MS));
                let epoch_version = self.office.is_active().then(|| self.office.epoch_version());
                self.leave_office(&reason, out);
                self.abandon(out);
                if let Some(epoch_version) = epoch_version {
                    self.queue(Task::Yield { epoch_version }, parent, out);
                }
            }
        }
    }

    /// Ends the term: nothing of it is done any more, and everybody who waits is answered.
    fn leave_office(&mut self, reason: &str, out: &mut Vec<Command>) {
        if !self.office.is_active() {
            return;
        }
        self.note(What::LeftOffice { reason: reason.to_owned() }, out);
        self.abandon(out);
        for (id, request) in self.queue.drain() {
            out.push(Command::Answer { id, answer: Err(refusal(&request)) });
        }
        self.context = Context::default();
        self.balance_at = None;
        self.office.end_term();
        out.push(Command::LeftOffice);
    }
}

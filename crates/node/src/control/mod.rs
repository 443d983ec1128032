//! The controller's requests on the receiving side: one at a time, in the order of their arrival, fenced first.
//!
//! A request may have to read the store before it can be obeyed. Those that come meanwhile wait, so that no StopReplica
//! overtakes the LeaderAndIsr before it, from whatever connection it comes.

pub(crate) mod leader_and_isr;
pub(crate) mod stop_replica;
pub(crate) mod update_metadata;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::planted::Faults;
use kernel::replica::control::{Fence, Refusal};
use storage::log_dirs::CreateError;
use storage::partition_log::LogError;
use wire::error_code::ErrorCode;
use wire::types::{BrokerEpoch, ControllerEpoch};

use crate::api::{Answer, errors};
use crate::broker::Broker;
use crate::call::Outcome;

/// How many requests of controllers may wait for each other; there is one from each connection.
const MAX_WAITING: usize = 100;

/// Why a partition of a request could not be served.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request is not to be obeyed.
    Refused(Refusal),
    /// There is no log, and none can be made.
    Create(CreateError),
    /// The log refuses.
    Log(LogError),
    /// The configs of the topic cannot be read; the request can come again (KAFKA-9769).
    Configs,
}

/// What becomes of a request of a controller.
pub(crate) enum Admission {
    /// It is to be obeyed.
    Granted(Answer),
    /// It is to be answered with this error.
    Refused(Answer, ErrorCode),
    /// Nobody waits for an answer any more.
    Ended,
}

type Work = Box<dyn FnOnce(&Arc<Broker>, Turn, Answer) + Send>;

struct State {
    fence: Fence,
    waiting: VecDeque<(Work, Answer)>,
    busy: bool,
}

/// The queue of the controller's requests, and the fence before it.
pub(crate) struct Control(Mutex<State>);

/// The right to serve one request. The next one begins when it is dropped.
pub(crate) struct Turn(Arc<Broker>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.control().next(&self.0);
    }
}

impl Control {
    /// The fence of a broker with this registration that has heard of this controller.
    pub(crate) fn new(broker_epoch: BrokerEpoch, controller_epoch: ControllerEpoch, faults: Faults) -> Self {
        let fence = Fence::new(broker_epoch, controller_epoch, faults);
        Self(Mutex::new(State { fence, waiting: VecDeque::new(), busy: false }))
    }

    /// The czxid of this broker's registration; -1 if it is not known.
    pub(crate) fn broker_epoch(&self) -> BrokerEpoch {
        self.lock().fence.broker_epoch()
    }

    /// The broker has registered again.
    pub(crate) fn registered(&self, broker_epoch: BrokerEpoch) {
        self.lock().fence.registered(broker_epoch);
    }

    /// Lets a request pass that is not stale, and remembers its controller. `what` names the request in the log.
    pub(crate) fn admit(
        &self,
        broker_epoch: BrokerEpoch,
        controller_epoch: ControllerEpoch,
        answer: Answer,
        what: &'static str,
    ) -> Admission {
        let connection = answer.call().connection.number;
        let admitted = self.lock().fence.admit(broker_epoch, controller_epoch, connection);
        let Err(stale) = admitted else { return Admission::Granted(answer) };
        tracing::warn!(?stale, %controller_epoch, "{what} is refused");
        match errors::of_stale(stale) {
            Some(code) => Admission::Refused(answer, code),
            None => {
                answer.end(Outcome::Close("its controller uses a newer connection".to_owned()));
                Admission::Ended
            }
        }
    }

    /// Serves a request when those before it are done. If too many wait, its connection is closed.
    pub(crate) fn submit(
        &self,
        broker: &Arc<Broker>,
        answer: Answer,
        work: impl FnOnce(&Arc<Broker>, Turn, Answer) + Send + 'static,
    ) {
        let mut state = self.lock();
        if state.waiting.len() >= MAX_WAITING {
            drop(state);
            return answer.end(Outcome::Close("too many requests of controllers wait".to_owned()));
        }
        state.waiting.push_back((Box::new(work), answer));
        let begin = !std::mem::replace(&mut state.busy, true);
        drop(state);
        if begin {
            self.next(broker);
        }
    }

    /// Forgets the requests that wait.
    pub(crate) fn let_go(&self) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        drop(waiting);
    }

    fn next(&self, broker: &Arc<Broker>) {
        let next = {
            let mut state = self.lock();
            let next = state.waiting.pop_front();
            state.busy = next.is_some();
            next
        };
        if let Some((work, answer)) = next {
            let then = broker.clone();
            broker.run_job(move || work(&then, Turn(then.clone()), answer));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.lock();
        f.debug_struct("Control")
            .field("fence", &state.fence)
            .field("waiting", &state.waiting.len())
            .finish_non_exhaustive()
    }
}

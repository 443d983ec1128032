//! Who is controller: standing for election, taking office, and giving it up.
//!
//! A term is bound to a session. `/controller` counts as ours only if this session owns it: one that names this broker
//! but lives by an earlier session is waited out, and one that is ours although no term has begun (the answer to the
//! election was lost, or what follows it failed) begins one (KAFKA-13407).

use wire::types::{BrokerId, ControllerEpoch};

use super::command::Command;
use super::failover;
use super::note::What;
use super::program::{Flow, Step, Turn};
use super::store::{ControllerNode, StoreOp, StoreReply};

/// The epoch before any election.
const INITIAL_EPOCH: ControllerEpoch = ControllerEpoch(0);

/// A term in office.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Term {
    epoch: ControllerEpoch,
    epoch_version: i32,
}

/// What is known of the office of controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Office {
    session: Option<i64>,
    controller: Option<BrokerId>,
    term: Option<Term>,
}

impl Office {
    /// Begins a session.
    pub(super) fn begin_session(&mut self, session: i64) {
        *self = Self { session: Some(session), controller: None, term: None };
    }

    /// Ends the session, and with it the term.
    pub(super) fn end_session(&mut self) {
        *self = Self::default();
    }

    /// Ends the term.
    pub(super) fn end_term(&mut self) {
        self.controller = None;
        self.term = None;
    }

    /// Whether there is a session.
    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Whether this broker is controller.
    pub(super) fn is_active(&self) -> bool {
        self.term.is_some()
    }

    /// Who is controller, as far as known.
    pub(super) fn controller(&self) -> Option<BrokerId> {
        self.controller
    }

    /// The epoch of the term; 0 out of office.
    pub(super) fn epoch(&self) -> ControllerEpoch {
        self.term.map_or(INITIAL_EPOCH, |term| term.epoch)
    }

    /// The version of `/controller_epoch` in this term; 0 out of office.
    pub(super) fn epoch_version(&self) -> i32 {
        self.term.map_or(0, |term| term.epoch_version)
    }

    /// Whether `/controller` lives by this session.
    pub(super) fn owns(&self, node: ControllerNode) -> bool {
        self.session == Some(node.owner)
    }

    /// Notes who holds `/controller` while this broker is out of office.
    pub(super) fn see(&mut self, node: Option<ControllerNode>, own_id: BrokerId) {
        // A node of an earlier session of this broker names nobody who could act.
        self.controller = node.map(|node| node.broker_id).filter(|id| *id != own_id);
    }
}

/// The steps by which a broker finds the controller or becomes it.
pub(super) fn elect() -> Vec<Step> {
    vec![Step::FindController { has_stood: false }]
}

/// Looks who is controller, and stands for election if nobody is; after an election that seemed lost, looks who won it.
pub(super) fn find_controller(turn: &mut Turn<'_>, has_stood: bool, reply: Option<StoreReply>) -> Flow {
    match reply {
        None if turn.office.is_active() => Flow::Done,
        None => Flow::ask(StoreOp::ReadController, Step::FindController { has_stood }),
        Some(StoreReply::Controller(None)) if has_stood => {
            Flow::Fail("the election was lost to a controller that is gone already".to_owned())
        }
        Some(StoreReply::Controller(None)) => Flow::Then(vec![Step::ReadEpoch]),
        Some(StoreReply::Controller(Some(node))) if turn.office.owns(node) => {
            Flow::Then(vec![Step::ReadOwnEpoch])
        }
        Some(StoreReply::Controller(node)) => {
            turn.office.see(node, turn.settings.broker_id);
            Flow::Done
        }
        Some(_) => Flow::confused(),
    }
}

/// Reads the epoch of the last term.
pub(super) fn read_epoch(reply: Option<StoreReply>) -> Flow {
    match reply {
        None => Flow::ask(StoreOp::ReadControllerEpoch, Step::ReadEpoch),
        Some(StoreReply::ControllerEpoch(None)) => Flow::Then(vec![Step::CreateEpoch, Step::ReadEpoch]),
        Some(StoreReply::ControllerEpoch(Some((epoch, expected_version)))) => {
            let epoch = ControllerEpoch(epoch.0.saturating_add(1));
            Flow::Then(vec![Step::Stand { epoch, expected_version }])
        }
        Some(_) => Flow::confused(),
    }
}

/// Makes the epoch's znode in a new cluster.
pub(super) fn create_epoch(reply: Option<StoreReply>) -> Flow {
    match reply {
        None => Flow::ask(StoreOp::CreateControllerEpoch, Step::CreateEpoch),
        Some(StoreReply::Done) => Flow::Done,
        Some(_) => Flow::confused(),
    }
}

/// Stands for election. If it seems lost, another look tells whether it was won after all.
pub(super) fn stand(
    turn: &mut Turn<'_>,
    epoch: ControllerEpoch,
    expected_version: i32,
    reply: Option<StoreReply>,
) -> Flow {
    match reply {
        None => {
            Flow::ask(StoreOp::Elect { epoch, expected_version }, Step::Stand { epoch, expected_version })
        }
        Some(StoreReply::Elected { epoch_version }) => take_office(turn, epoch, epoch_version),
        Some(StoreReply::NotElected) => Flow::Then(vec![Step::FindController { has_stood: true }]),
        Some(_) => Flow::confused(),
    }
}

/// `/controller` is ours: nobody else can have raised the epoch since, so it is that of our term.
pub(super) fn read_own_epoch(turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => Flow::ask(StoreOp::ReadControllerEpoch, Step::ReadOwnEpoch),
        Some(StoreReply::ControllerEpoch(Some((epoch, version)))) => take_office(turn, epoch, version),
        Some(StoreReply::ControllerEpoch(None)) => Flow::Fail("/controller_epoch is missing".to_owned()),
        Some(_) => Flow::confused(),
    }
}

fn take_office(turn: &mut Turn<'_>, epoch: ControllerEpoch, epoch_version: i32) -> Flow {
    turn.office.term = Some(Term { epoch, epoch_version });
    turn.office.controller = Some(turn.settings.broker_id);
    turn.out.push(Command::TookOffice { epoch });
    turn.note(What::TookOffice);
    Flow::Then(failover::program())
}

/// Gives the office up after something failed in it, so that another term begins.
pub(super) fn delete_controller(epoch_version: i32, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => {
            Flow::ask(StoreOp::DeleteController { epoch_version }, Step::DeleteController { epoch_version })
        }
        Some(StoreReply::Done) => Flow::Done,
        Some(_) => Flow::confused(),
    }
}

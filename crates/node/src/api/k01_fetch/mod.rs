//! Fetch (key 1): records of many partitions in one answer, as ranges of files (KIP-74, KIP-227, KIP-320).
//!
//! The request is brought into one form ([`Plan`]), read once, and answered if it has what it asked for;
//! otherwise it waits at its partitions and is read again when one of them has moved.

mod plan;
mod read;
mod respond;
mod sessions;
mod wait;

use std::sync::Arc;

use wire::messages::FetchRequest;

pub(crate) use sessions::FetchSessions;

use self::plan::{Plan, Planned};
use super::Answer;
use crate::broker::Broker;

/// Answers a Fetch request, at once or when it has waited long enough. A follower's offsets are noted when the request
/// comes, not when it has waited.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: FetchRequest) {
    let plan = match Plan::of(broker, answer.call(), request) {
        Planned::Fetch(plan) => plan,
        Planned::Refused(error) => return respond::refuse(answer, error),
    };
    let found = read::read(broker, &plan);
    read::note_progress(broker, &plan, &found);
    if found.satisfies(&plan) || plan.max_wait_ms <= 0 {
        respond::respond(broker, answer, &plan, found);
    } else {
        wait::wait(broker, answer, plan);
    }
}

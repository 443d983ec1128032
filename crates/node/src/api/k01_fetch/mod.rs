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
    // What a follower has moves the high watermark, for which a log must not be written to just now.
    let Some(lanes) = broker.lanes().filter(|_| plan.is_from_follower()) else {
        return serve(broker, answer, plan);
    };
    if let Some(_inline) = lanes.enter_for_any() {
        return serve(broker, answer, plan);
    }
    let then = broker.clone();
    lanes.run_apart(Box::new(move || serve(&then, answer, plan)));
}

fn serve(broker: &Arc<Broker>, answer: Answer, plan: Plan) {
    let found = read::read(broker, &plan);
    read::note_progress(broker, &plan, &found);
    if found.satisfies(&plan) || plan.max_wait_ms <= 0 {
        respond::respond(broker, answer, &plan, found);
    } else {
        wait::wait(broker, answer, plan);
    }
}

//! Writes that only the controller of the present term may do: each is one transaction with a check of the version of
//! `/controller_epoch` (KAFKA-6082).

use std::sync::Arc;

use kernel::controller::store::StoreFailure;
use metadata::store::{Op, OpError, OpResult, Request, Response, Store, StoreError};
use metadata::znode::controller_epoch;

use super::{failure, mismatch};
use crate::drive::pipeline::pipeline;

/// What became of one transaction: the results without that of the check, or the operation that failed, counted without
/// the check, and why.
pub(super) type Outcome = Result<Vec<OpResult>, (usize, OpError)>;

/// The transaction that does `ops` in the term of `epoch_version`.
fn transaction(ops: Vec<Op>, epoch_version: i32) -> Request {
    let mut whole = Vec::with_capacity(ops.len() + 1);
    whole.push(Op::check(controller_epoch::PATH, epoch_version));
    whole.extend(ops);
    Request::Multi(whole)
}

/// Does each of `transactions`, all of them handed in at once. One that fails does not stop the others; the end of the
/// term or of the session ends all.
pub(super) fn write_all(
    store: &Arc<dyn Store>,
    transactions: Vec<Vec<Op>>,
    epoch_version: i32,
    done: impl FnOnce(Result<Vec<Outcome>, StoreFailure>) + Send + 'static,
) {
    let requests = transactions.into_iter().map(|ops| transaction(ops, epoch_version)).collect();
    pipeline(store, requests, move |answers| done(answers.into_iter().map(outcome).collect()));
}

fn outcome(answer: Result<Response, StoreError>) -> Result<Outcome, StoreFailure> {
    match answer {
        Ok(Response::Multi(mut results)) if !results.is_empty() => {
            results.remove(0);
            Ok(Ok(results))
        }
        Ok(_) => Err(mismatch()),
        Err(StoreError::Multi { index: 0, error: OpError::BadVersion | OpError::NoNode }) => {
            Err(StoreFailure::ControllerMoved)
        }
        Err(StoreError::Multi { index, error }) if index > 0 => Ok(Err((index - 1, error))),
        Err(error) => Err(failure(error)),
    }
}

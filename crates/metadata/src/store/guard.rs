//! The border to foreign code on a store's thread.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs foreign code; its panic must not end the store for everyone else.
pub(crate) fn guarded(call: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(call)).is_err() {
        tracing::error!("the receiver of an answer or event of the metadata store panicked");
    }
}

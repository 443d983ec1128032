//! Steps of the start against a store whose connection may be lost in the middle.

use metadata::store::{Store, StoreError};

use super::StartError;

/// How often a step is done again.
const MAX_TRIES: usize = 10;

/// Does `step`, and does it again when a lost connection or the end of the session left its outcome open. The step must
/// read before it writes, or not mind what it did before. The store keeps the pace: it answers when it is connected again.
pub(super) fn surely<T>(
    store: &dyn Store,
    mut step: impl FnMut() -> Result<T, StartError>,
) -> Result<T, StartError> {
    let mut tries = 1;
    loop {
        match step() {
            Err(StartError::Store(error)) if tries < MAX_TRIES && is_open(&error) => {
                if error == StoreError::SessionExpired {
                    store.renew();
                }
                tracing::info!(%error, "a step of the start is done again");
                tries += 1;
            }
            outcome => return outcome,
        }
    }
}

fn is_open(error: &StoreError) -> bool {
    matches!(error, StoreError::ConnectionLoss | StoreError::SessionExpired)
}

//! Keeps the present session in the file beside the data, for the process after this one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use metadata::zookeeper::{SessionCredentials, SessionFile, SessionRecord, boot_id};

/// Holds the file and what was written last.
pub(crate) struct Keeper {
    file: SessionFile,
    state: Mutex<State>,
}

struct State {
    session: Option<SessionCredentials>,
    logs_are_whole: bool,
}

impl Keeper {
    /// Keeps sessions in `file`; `logs_are_whole` as it is known so far.
    pub(super) fn new(file: SessionFile, logs_are_whole: bool) -> Self {
        Self { file, state: Mutex::new(State { session: None, logs_are_whole }) }
    }

    /// A session has begun.
    pub(super) fn keep(&self, session: &SessionCredentials) {
        let mut state = self.lock();
        state.session = Some(session.clone());
        self.write(&state);
    }

    /// From now on the logs have all that anybody relies on, as long as the machine is up.
    pub(super) fn logs_are_whole(&self) {
        let mut state = self.lock();
        state.logs_are_whole = true;
        self.write(&state);
    }

    fn write(&self, state: &State) {
        let Some(credentials) = state.session.clone() else { return };
        let record = SessionRecord { boot_id: boot_id(), credentials, logs_are_whole: state.logs_are_whole };
        if let Err(error) = self.file.keep(&record) {
            tracing::warn!(%error, "the session is not kept: after a kill its successor waits for its end");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metadata::store::SessionId;
    use metadata::zookeeper::SESSION_FILE;

    fn session(id: i64) -> SessionCredentials {
        SessionCredentials { id: SessionId(id), password: bytes::Bytes::from_static(b"secret") }
    }

    #[test]
    fn logs_are_whole_for_the_next_process_only_once_they_were_in_this_one() {
        let dir = std::env::temp_dir().join(format!("blumfeld-keeper-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join(SESSION_FILE);
        let hold = || SessionFile::hold(&path).unwrap().unwrap();
        let keeper = Keeper::new(hold(), false);
        keeper.keep(&session(1));
        drop(keeper);
        let record = hold().read().unwrap().unwrap();
        assert_eq!((record.credentials, record.logs_are_whole), (session(1), false));
        let keeper = Keeper::new(hold(), record.logs_are_whole);
        keeper.keep(&session(2));
        keeper.logs_are_whole();
        keeper.keep(&session(3));
        drop(keeper);
        let record = hold().read().unwrap().unwrap();
        assert_eq!((record.credentials, record.logs_are_whole), (session(3), true));
        assert!(record.boot_id == boot_id());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

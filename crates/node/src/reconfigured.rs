//! Who is told of changes of the configuration: the server, for its listeners and the limits of connections.
//!
//! It is told where work may block, one time after the other, and last of what came in force last; what is changed while
//! it is being told leads to one more time.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::broker::Broker;
use crate::config::CurrentConfig;

type Hook = Box<dyn Fn(&CurrentConfig) + Send + Sync>;

/// The one who is told.
#[derive(Default)]
pub(crate) struct Reconfigured {
    hook: OnceLock<Hook>,
    telling: Mutex<Telling>,
}

#[derive(Default)]
struct Telling {
    is_due: bool,
    is_running: bool,
}

impl Reconfigured {
    fn telling(&self) -> MutexGuard<'_, Telling> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody must begin to tell.
    fn begins(&self) -> bool {
        let mut telling = self.telling();
        telling.is_due = true;
        !std::mem::replace(&mut telling.is_running, true)
    }

    /// Whether there is something to tell; if not, the telling has ended.
    fn goes_on(&self) -> bool {
        let mut telling = self.telling();
        telling.is_running = std::mem::take(&mut telling.is_due);
        telling.is_running
    }
}

impl Broker {
    /// `hook` is given the configuration in force now, and again whenever dynamic configs have changed it. It is called
    /// where work may block. Called once.
    pub fn on_reconfigured(self: &Arc<Self>, hook: impl Fn(&CurrentConfig) + Send + Sync + 'static) {
        if self.reconfigured().hook.set(Box::new(hook)).is_err() {
            tracing::error!("changes of the configuration are told to one only");
        }
        self.tell_reconfigured();
    }

    /// Whoever asked to be told of changes of the configuration is told.
    pub(crate) fn tell_reconfigured(self: &Arc<Self>) {
        if self.reconfigured().hook.get().is_none() || !self.reconfigured().begins() {
            return;
        }
        let then = self.clone();
        self.run_job(move || {
            while then.reconfigured().goes_on() {
                then.reconfigured().hook.get().into_iter().for_each(|hook| hook(&then.config()));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tells_at_a_time_and_once_more_for_all_that_changed_meanwhile() {
        let reconfigured = Reconfigured::default();
        assert!(reconfigured.begins());
        assert!(reconfigured.goes_on());
        assert!(!reconfigured.begins(), "somebody is at it");
        assert!(!reconfigured.begins());
        assert!(reconfigured.goes_on());
        assert!(!reconfigured.goes_on());
        assert!(reconfigured.begins());
    }
}

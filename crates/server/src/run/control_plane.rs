//! A thread for the connections of `control.plane.listener.name`: what the controller asks does not wait while the threads
//! of the other listeners are taken by clients (KIP-291).

use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that serve the sockets of the control plane.
const THREADS: usize = 1;

/// The thread, as long as this is kept.
pub(super) struct ControlPlane {
    listener: Arc<str>,
    /// None only while it ends.
    runtime: Option<Runtime>,
}

impl ControlPlane {
    /// Starts the thread for the connections of `listener`.
    ///
    /// # Errors
    /// If the system gives none.
    pub(super) fn start(listener: Arc<str>, blocking_threads: usize) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(blocking_threads)
            .thread_name("control-plane")
            .enable_all()
            .build()?;
        Ok(Self { listener, runtime: Some(runtime) })
    }

    /// Where the connections of a listener are served, if that is here.
    pub(super) fn serves(&self, listener: &str) -> Option<&Handle> {
        self.runtime.as_ref().map(Runtime::handle).filter(|_| *self.listener == *listener)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // Called on a thread that serves sockets, which must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

//! The server as a process sees it: it ends when it is asked to. One test, since signals are the process's.

#![allow(clippy::unwrap_used, reason = "a test may fail so")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use net::listener::ListenerSettings;
use net::table::ConnectionLimits;
use net::{ConnectionInfo, FrameHandler, Outcome, Reply};
use rustix::process::{Signal, getpid, kill_process};
use server::node_trait::DeadlineHook;
use server::{HttpSettings, Node, Readiness, ServerSettings};

/// Asks the process to stop as soon as it is watched over.
#[derive(Default)]
struct Impatient {
    shut_down: AtomicBool,
}

impl FrameHandler for Impatient {
    fn handle(&self, _: &Arc<ConnectionInfo>, _: Bytes, reply: Reply) {
        reply.send(Outcome::NoResponse);
    }
}

impl Node for Impatient {
    fn id(&self) -> i32 {
        kill_process(getpid(), Signal::TERM).unwrap();
        1
    }

    fn poll(&self) -> Option<Duration> {
        None
    }

    fn housekeep(&self) -> Duration {
        Duration::from_secs(3600)
    }

    fn on_earlier_deadline(&self, _: DeadlineHook) {}

    fn shut_down(&self) {
        self.shut_down.store(true, Ordering::SeqCst);
    }

    fn render_metrics(&self) -> String {
        String::new()
    }

    fn readiness(&self) -> Readiness {
        Readiness { ready: true, state: String::new() }
    }

    fn recovery(&self) -> String {
        String::new()
    }

    fn explain(&self, _: &str, _: i32) -> Option<String> {
        None
    }
}

#[test]
fn sigterm_ends_the_server_in_order() {
    let node = Arc::new(Impatient::default());
    let settings = ServerSettings {
        listeners: vec![ListenerSettings::new("PLAINTEXT", "127.0.0.1", 0)],
        control_plane: None,
        limits: ConnectionLimits::default(),
        network_threads: 1,
        blocking_threads: 1,
        http: HttpSettings { address: String::new(), asked: true },
        drain: Duration::ZERO,
        about: Vec::new(),
    };
    let made = Arc::clone(&node);
    server::run(settings, move |_| Ok(made as Arc<dyn Node>)).unwrap();
    assert!(node.shut_down.load(Ordering::SeqCst));
}

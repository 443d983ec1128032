//! What the server asks of a node. The broker is one; tests play others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use net::FrameHandler;
use net::listener::ListenerSettings;
use net::table::ConnectionLimits;

/// Tells the server that [`Node::poll`] must come in this time at the latest.
pub type DeadlineHook = Arc<dyn Fn(Duration) + Send + Sync>;

/// What a node wants of its server while it runs.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// How many connections there may be.
    pub limits: ConnectionLimits,
    /// The listeners, in the order of the configuration.
    pub listeners: Vec<ListenerSettings>,
}

/// Tells the server what is wanted from now on.
pub type WantedHook = Box<dyn Fn(Wanted) + Send + Sync>;

/// One listener that has its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Its name.
    pub name: Arc<str>,
    /// Its address, with the port that was chosen if none was asked for.
    pub address: SocketAddr,
}

/// Whether a node serves requests, and what it is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Whether it serves.
    pub ready: bool,
    /// What it is doing, in one line.
    pub state: String,
}

/// A node: a library that serves requests, starts no thread and opens no socket.
pub trait Node: FrameHandler {
    /// The id under which it serves.
    fn id(&self) -> i32;

    /// Ends what has waited long enough. Never blocks. Returns how long it need not be called again; none: for
    /// ever, unless the hook says otherwise.
    fn poll(&self) -> Option<Duration>;

    /// Does what is due on the disks, and returns how long it need not be called again. May block.
    fn housekeep(&self) -> Duration;

    /// How many threads are to call [`clean`](Self::clean).
    fn cleaner_threads(&self) -> usize {
        0
    }

    /// Compacts a log if one is due, and returns how long the thread may rest; none: for ever. May take long, but ends
    /// soon when the node leaves or shuts down.
    fn clean(&self) -> Option<Duration> {
        None
    }

    /// `hook` is called when [`poll`](Self::poll) must come earlier than it said. Called once.
    fn on_earlier_deadline(&self, hook: DeadlineHook);

    /// What the node wants of its server before it serves; none: what the server was started with. May block.
    fn wanted(&self) -> Option<Wanted> {
        None
    }

    /// `hook` is called with what the node wants, now and whenever that changes. Called once. A node that never wants
    /// anything else leaves it.
    fn on_wanted(&self, _hook: WantedHook) {}

    /// The listeners are these now, after a change of what is wanted. May block.
    fn bound(&self, _bound: &[Bound]) {}

    /// Gives away what it leads, while everything is still served (controlled shutdown). May block. A node that
    /// is alone has nobody to give anything to.
    fn leave(&self) {}

    /// Answers what waits and closes everything. May block. Nothing else is called after it, except what only
    /// asks.
    fn shut_down(&self);

    /// Its metrics as text of the OpenMetrics format, with the final `# EOF`.
    fn render_metrics(&self) -> String;

    /// Whether it serves.
    fn readiness(&self) -> Readiness;

    /// How far the loading of the logs is, as JSON.
    fn recovery(&self) -> String;

    /// What is known of a partition and why it is so, as JSON; none: there is no such partition.
    fn explain(&self, topic: &str, partition: i32) -> Option<String>;
}

//! The listeners of a running server. One task holds them: it opens and closes them as the node wants them (`listeners` may
//! change at run time, KIP-226), tells the node what is bound then, and ends with all of them.
//!
//! A listener that goes takes its connections along; so does one that moves, whose clients find it where it is told to be.

use std::net::SocketAddr;
use std::sync::Arc;

use net::FrameHandler;
use net::listener::{BindError, BoundListener, Listener, ListenerSettings};
use net::table::ConnectionTable;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::RunError;
use super::control_plane::ControlPlane;
use crate::metrics::ServerMetrics;
use crate::node_trait::{Bound, Node, Wanted};

/// See the module.
pub(super) struct Listeners {
    node: Arc<dyn Node>,
    table: Arc<ConnectionTable>,
    metrics: Arc<ServerMetrics>,
    control_plane: Option<ControlPlane>,
    open: Vec<Open>,
}

/// A listener that accepts.
struct Open {
    settings: ListenerSettings,
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Listeners {
    /// None yet.
    pub(super) fn new(
        node: Arc<dyn Node>,
        table: Arc<ConnectionTable>,
        metrics: Arc<ServerMetrics>,
        control_plane: Option<ControlPlane>,
    ) -> Self {
        Self { node, table, metrics, control_plane, open: Vec::new() }
    }

    /// Begins to listen; nothing is accepted yet.
    ///
    /// # Errors
    /// If the port was taken after all.
    pub(super) fn listen(&self, bound: BoundListener) -> Result<Listener, RunError> {
        let name = Arc::clone(&bound.settings().name);
        let runtime = self.runtime_of(&name);
        let _there = runtime.enter();
        let handler: Arc<dyn FrameHandler> = Arc::<dyn Node>::clone(&self.node);
        let listener = bound
            .listen(Arc::clone(&self.table), handler)
            .map_err(|error| RunError::Listen { name: Arc::clone(&name), error })?;
        self.metrics.listens(name, listener.counters());
        Ok(listener)
    }

    /// Begins to accept.
    pub(super) fn accept(&mut self, listener: Listener) {
        let (settings, address) = (listener.settings().clone(), listener.address());
        let stop = CancellationToken::new();
        let task = self.runtime_of(&settings.name).spawn(listener.run(stop.clone()));
        self.open.push(Open { settings, address, stop, task });
    }

    /// Keeps them as they are wanted until `stop`; then nothing is accepted any more. What serves the connections of the
    /// control plane is given back, to be kept until these have ended.
    pub(super) async fn keep(
        mut self,
        mut wanted: watch::Receiver<Option<Wanted>>,
        stop: CancellationToken,
    ) -> Option<ControlPlane> {
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                // A node that wants nothing else lets go of the other end.
                Ok(()) = wanted.changed() => {
                    let wanted = wanted.borrow_and_update().clone();
                    if let Some(wanted) = wanted {
                        self.become_like(wanted).await;
                    }
                }
            }
        }
        for listener in self.open.drain(..) {
            listener.close().await;
        }
        self.control_plane
    }

    async fn become_like(&mut self, wanted: Wanted) {
        self.table.set_limits(wanted.limits);
        let is_gone = |it: &mut Open| !wanted.listeners.iter().any(|other| is_same(&it.settings, other));
        for listener in self.open.extract_if(.., is_gone).collect::<Vec<_>>() {
            let (name, address) = (Arc::clone(&listener.settings.name), listener.address);
            listener.close().await;
            self.table.end_listener(&name);
            self.metrics.forget(&name);
            tracing::info!(listener = %name, %address, "the listener is closed, with its connections");
        }
        for settings in wanted.listeners {
            if self.open.iter().any(|it| is_same(&it.settings, &settings)) {
                continue;
            }
            let listener = settings.name.clone();
            match self.open(settings).await {
                Ok(address) => tracing::info!(%listener, %address, "the listener is open"),
                Err(error) => tracing::error!(
                    %error, "the listener cannot be opened, and the advertised addresses stay as they are; \
                     the next change of a broker's configs tries again"
                ),
            }
        }
        let bound: Vec<_> = self.open.iter().map(Open::bound).collect();
        let node = Arc::clone(&self.node);
        let told = tokio::task::spawn_blocking(move || node.bound(&bound));
        if let Err(error) = told.await {
            tracing::error!(%error, "the node was not told of its listeners");
        }
    }

    async fn open(&mut self, settings: ListenerSettings) -> Result<SocketAddr, RunError> {
        // Looking a host up may take its time.
        let bound = tokio::task::spawn_blocking(move || BoundListener::bind(settings)).await;
        let listener = self.listen(bound.map_err(|error| RunError::Node(error.to_string()))??)?;
        let address = listener.address();
        self.accept(listener);
        Ok(address)
    }

    fn runtime_of(&self, listener: &str) -> Handle {
        let apart = self.control_plane.as_ref().and_then(|it| it.serves(listener));
        apart.cloned().unwrap_or_else(Handle::current)
    }
}

impl Open {
    fn bound(&self) -> Bound {
        Bound { name: Arc::clone(&self.settings.name), address: self.address }
    }

    /// Accepts no more, and lets go of the port.
    async fn close(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "a listener has panicked");
        }
    }
}

/// Whether two listeners are one in the same place.
fn is_same(one: &ListenerSettings, other: &ListenerSettings) -> bool {
    (&one.name, &one.host, one.port) == (&other.name, &other.host, other.port)
}

/// Binds what is wanted, but for what is bound already; what is not wanted lets go of its port before.
///
/// # Errors
/// If one of them cannot be bound.
pub(super) fn rebind(
    mut bound: Vec<BoundListener>,
    wanted: Vec<ListenerSettings>,
) -> Result<Vec<BoundListener>, BindError> {
    bound.retain(|it| wanted.iter().any(|other| is_same(it.settings(), other)));
    let mut bind =
        |settings: ListenerSettings| match bound.iter().position(|it| is_same(it.settings(), &settings)) {
            Some(index) => Ok(bound.swap_remove(index)),
            None => BoundListener::bind(settings),
        };
    wanted.into_iter().map(&mut bind).collect()
}

#[cfg(test)]
mod tests;

//! Several nodes in one process, each with listeners and a page of its own, on one runtime: for trying things out.
//!
//! They start one after the other and stop the other way round, so that the first, which is the controller if
//! nothing has happened since, is there until the end. What ends one of them ends all.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Bound, LAST_WORDS, RunError, runtime, serve, signal_pair, stop_on_signals};
use crate::node_trait::Node;
use crate::settings::ServerSettings;

/// Makes a node, knowing the ports of its listeners.
pub type Start = Box<dyn FnOnce(&[Bound]) -> Result<Arc<dyn Node>, String> + Send>;

/// A node that serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Its id.
    pub id: i32,
    /// Where it listens, in the order of its listeners.
    pub addresses: Vec<SocketAddr>,
    /// Where its page is, if it has one.
    pub http: Option<SocketAddr>,
}

/// As [`run`](super::run) does for one node, for all of these; `say` is given what is said when all serve.
///
/// # Errors
/// If one of them does not start, or ends badly; then all have been stopped.
pub fn run_all<S>(nodes: Vec<(ServerSettings, Start)>, say: S) -> Result<(), RunError>
where
    S: FnOnce(&[Serving]) -> io::Result<()>,
{
    let threads = |of: fn(&ServerSettings) -> usize| nodes.iter().map(|(it, _)| of(it)).max().unwrap_or(1);
    let runtime = runtime(threads(|it| it.network_threads), threads(|it| it.blocking_threads))?;
    let result = runtime.block_on(async {
        let stop = CancellationToken::new();
        let signals = tokio::spawn(stop_on_signals(signal_pair()?, stop.clone()));
        let result = serve_all(nodes, stop, say).await;
        signals.abort();
        result
    });
    runtime.shutdown_timeout(LAST_WORDS);
    result
}

/// A node's server, which runs until it is stopped.
struct Running {
    serving: Serving,
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

async fn serve_all<S>(
    nodes: Vec<(ServerSettings, Start)>,
    stop: CancellationToken,
    say: S,
) -> Result<(), RunError>
where
    S: FnOnce(&[Serving]) -> io::Result<()>,
{
    let mut running = Vec::with_capacity(nodes.len());
    let mut result = Ok(());
    for (settings, start) in nodes {
        match Running::start(settings, start, &stop).await {
            Ok(node) => running.push(node),
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    if result.is_ok() {
        let serving: Vec<_> = running.iter().map(|node| node.serving.clone()).collect();
        if let Err(error) = say(&serving) {
            tracing::warn!(%error, "standard output takes no start block");
        }
        stop.cancelled().await;
    }
    while let Some(node) = running.pop() {
        result = result.and(node.stop().await);
    }
    result
}

impl Running {
    /// Starts a node and waits until it serves. When it ends by itself later, all are asked to stop.
    async fn start(
        settings: ServerSettings,
        start: Start,
        stop_all: &CancellationToken,
    ) -> Result<Self, RunError> {
        let stop = CancellationToken::new();
        let (said, saying) = oneshot::channel();
        let (own, all) = (stop.clone(), stop_all.clone());
        let task = tokio::spawn(async move {
            let served = serve(settings, start, own, |block| {
                let addresses = block.listeners.iter().map(net::listener::Listener::address).collect();
                // Who started it waits for this.
                let _ = said.send(Serving { id: block.id, addresses, http: block.http });
                Ok(())
            });
            let result = served.await;
            all.cancel();
            result
        });
        match saying.await {
            Ok(serving) => Ok(Self { serving, stop, task }),
            Err(_) => {
                Err(ended(task.await).err().unwrap_or_else(|| RunError::Node(String::from("it ended"))))
            }
        }
    }

    async fn stop(self) -> Result<(), RunError> {
        self.stop.cancel();
        ended(self.task.await)
    }
}

fn ended(result: Result<Result<(), RunError>, tokio::task::JoinError>) -> Result<(), RunError> {
    result.unwrap_or_else(|error| Err(RunError::Node(error.to_string())))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::tests::{Double, settings};
    use super::*;

    /// The order in which nodes started and stopped.
    type Notes = Arc<Mutex<Vec<String>>>;

    fn node(id: i32, notes: &Notes) -> (ServerSettings, Start) {
        let (started, stopped) = (Arc::clone(notes), Arc::clone(notes));
        let start: Start = Box::new(move |_| {
            started.lock().unwrap().push(format!("start {id}"));
            let on_end = Box::new(move || stopped.lock().unwrap().push(format!("stop {id}")));
            Ok(Arc::new(Double::with_end(id, on_end)) as Arc<dyn Node>)
        });
        (settings(std::time::Duration::ZERO), start)
    }

    #[tokio::test]
    async fn nodes_start_in_order_and_stop_in_the_reverse_order() {
        let (notes, stop) = (Notes::default(), CancellationToken::new());
        let nodes = (1..=3).map(|id| node(id, &notes)).collect();
        let (said, saying) = oneshot::channel();
        let say = |serving: &[Serving]| {
            said.send(serving.to_vec()).unwrap();
            Ok(())
        };
        let task = tokio::spawn(serve_all(nodes, stop.clone(), say));
        let serving = saying.await.unwrap();
        assert_eq!(serving.iter().map(|node| node.id).collect::<Vec<_>>(), [1, 2, 3]);
        for node in &serving {
            assert!(tokio::net::TcpStream::connect(node.addresses[0]).await.is_ok());
            assert!(node.http.is_some());
        }
        stop.cancel();
        task.await.unwrap().unwrap();
        let expected = ["start 1", "start 2", "start 3", "stop 3", "stop 2", "stop 1"];
        assert_eq!(*notes.lock().unwrap(), expected);
    }

    #[tokio::test]
    async fn a_node_that_does_not_start_stops_those_that_did() {
        let notes = Notes::default();
        let refusing: Start = Box::new(|_| Err(String::from("no disk")));
        let refusing = (settings(std::time::Duration::ZERO), refusing);
        let nodes = vec![node(1, &notes), refusing, node(3, &notes)];
        let say = |_: &[Serving]| panic!("nothing serves");
        let error = serve_all(nodes, CancellationToken::new(), say).await.unwrap_err();
        assert_eq!(error.to_string(), "no disk");
        assert_eq!(*notes.lock().unwrap(), ["start 1", "stop 1"]);
    }
}

//! The page for those who watch: `/livez`, `/readyz`, `/metrics`, `/recovery`, `/explain`.
//!
//! It is there before the node is, so that a long start can be watched. What takes time is done on a thread
//! that may take it.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::ServerMetrics;
use crate::node_trait::Node;
use crate::settings::HttpSettings;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";

/// A node that runs, and the metrics of its server.
type Running = (Arc<dyn Node>, Arc<ServerMetrics>);

/// What the page shows.
#[derive(Clone, Default)]
pub struct Watched {
    /// The node and the server's metrics, once they are there.
    pub running: Arc<OnceLock<Running>>,
    /// Cancelled when the server begins to stop.
    pub stopping: CancellationToken,
}

/// Why there is no page.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The address cannot be bound, or is none.
    #[error("blumfeld.http.address: {address} cannot be bound: {error}")]
    Bind {
        /// The address.
        address: String,
        /// What the system says.
        error: io::Error,
    },
}

/// Takes the address, or a free port of the same host if it is taken and was not asked for. The listener must
/// be made within a runtime.
///
/// # Errors
/// If there is no address to be had.
pub fn bind(settings: &HttpSettings) -> Result<TcpListener, HttpError> {
    let address = &settings.address;
    match bind_first(address) {
        Ok(listener) => Ok(listener),
        Err(error) if !settings.asked && error.kind() == io::ErrorKind::AddrInUse => {
            let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
            bind_first(&format!("{host}:0"))
                .map_err(|error| HttpError::Bind { address: address.clone(), error })
        }
        Err(error) => Err(HttpError::Bind { address: address.clone(), error }),
    }
}

fn bind_first(address: &str) -> io::Result<TcpListener> {
    let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    let listener = std::net::TcpListener::bind(addresses.as_slice())?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Serves the page until `stop`.
pub async fn serve(listener: TcpListener, watched: Watched, stop: CancellationToken) {
    let served = axum::serve(listener, router(watched)).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "the HTTP page has ended");
    }
}

fn router(watched: Watched) -> Router {
    Router::new()
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/recovery", get(recovery))
        .route("/explain", get(explain))
        .with_state(watched)
}

async fn readyz(State(watched): State<Watched>) -> (StatusCode, String) {
    if watched.stopping.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, String::from("stopping\n"));
    }
    let Some((node, _)) = watched.running.get() else {
        return (StatusCode::SERVICE_UNAVAILABLE, String::from("starting\n"));
    };
    let readiness = node.readiness();
    let code = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, format!("{}\n", readiness.state))
}

async fn metrics(State(watched): State<Watched>) -> Response {
    with_node(watched, OPEN_METRICS, |node, metrics| Some(metrics.render() + &node.render_metrics())).await
}

async fn recovery(State(watched): State<Watched>) -> Response {
    with_node(watched, JSON, |node, _| Some(node.recovery())).await
}

/// Which partition is to be explained.
#[derive(Deserialize)]
struct Partition {
    topic: String,
    #[serde(default)]
    partition: i32,
}

async fn explain(State(watched): State<Watched>, Query(asked): Query<Partition>) -> Response {
    with_node(watched, JSON, move |node, _| node.explain(&asked.topic, asked.partition)).await
}

/// Answers with what `ask` makes of the node; 503 before it is there, 404 if it has nothing to say.
async fn with_node<F>(watched: Watched, content_type: &'static str, ask: F) -> Response
where
    F: FnOnce(&dyn Node, &ServerMetrics) -> Option<String> + Send + 'static,
{
    let asked = tokio::task::spawn_blocking(move || {
        watched.running.get().map(|(node, metrics)| ask(node.as_ref(), metrics))
    });
    match asked.await {
        Ok(Some(Some(body))) => ([(CONTENT_TYPE, content_type)], body).into_response(),
        Ok(Some(None)) => (StatusCode::NOT_FOUND, "there is no such partition here\n").into_response(),
        Ok(None) => (StatusCode::SERVICE_UNAVAILABLE, "starting\n").into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

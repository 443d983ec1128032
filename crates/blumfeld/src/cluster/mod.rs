//! What tools need of a cluster: who is there, who leads what, and requests to the right broker.
//!
//! A request is tried again over a new connection, or at another broker, until a deadline. Brokers are known
//! by the addresses that Metadata tells; the bootstrap servers are asked when no known broker answers.

mod error;
pub(crate) mod fetcher;
pub(crate) mod leaders;
pub(crate) mod offsets;
pub(crate) mod partitioner;
pub(crate) mod producer;
mod producer_settings;
pub(crate) mod settings;

use std::collections::BTreeMap;
use std::time::Duration;

use net::client::{Client, ClientError};
use tokio::time::{Instant, sleep, timeout};
use wire::Str;
use wire::messages::metadata_request::MetadataRequestTopic;
use wire::messages::metadata_response::MetadataResponseBroker;
use wire::messages::{MetadataRequest, MetadataResponse, Request};

pub(crate) use error::{ClusterError, java_class, java_text, name as error_name};
pub(crate) use error::{is_retriable, is_transient};
use settings::ClientSettings;

/// Attempts at one thing until a deadline, with a pause between them.
#[derive(Debug)]
pub(crate) struct Attempts {
    deadline: Instant,
    pause: Duration,
}

impl Attempts {
    /// Attempts for `patience`, with pauses of `pause`.
    pub(crate) fn new(patience: Duration, pause: Duration) -> Self {
        Self { deadline: Instant::now() + patience, pause }
    }

    /// Pauses and returns true, or returns false if the time is over.
    pub(crate) async fn again(&self) -> bool {
        if Instant::now() + self.pause >= self.deadline {
            return false;
        }
        sleep(self.pause).await;
        true
    }
}

/// Which topics Metadata is to tell.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Topics<'a> {
    /// All.
    All,
    /// None, only the brokers.
    None,
    /// These; none of them is created.
    Several(&'a [&'a str]),
    /// One, which may be created if the broker does that.
    Named {
        /// The name.
        name: &'a str,
        /// Whether it may be created.
        create: bool,
    },
}

/// A cluster as a tool sees it.
#[derive(Debug)]
pub(crate) struct Cluster {
    settings: ClientSettings,
    bootstrap: Vec<String>,
    brokers: BTreeMap<i32, String>,
    controller: i32,
    connections: BTreeMap<String, Client>,
}

impl Cluster {
    /// Connects to one of `bootstrap` and learns the brokers.
    ///
    /// # Errors
    /// If none of them answers.
    pub(crate) async fn connect(
        bootstrap: Vec<String>,
        settings: ClientSettings,
    ) -> Result<Self, ClusterError> {
        let connections = BTreeMap::new();
        let mut cluster = Self { settings, bootstrap, brokers: BTreeMap::new(), controller: -1, connections };
        cluster.metadata(Topics::None).await?;
        Ok(cluster)
    }

    /// How the cluster is talked to.
    pub(crate) fn settings(&self) -> &ClientSettings {
        &self.settings
    }

    /// Sets how long one thing is tried (`default.api.timeout.ms`).
    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.settings.api_timeout = patience;
    }

    /// Attempts within `default.api.timeout.ms`.
    pub(crate) fn attempts(&self) -> Attempts {
        Attempts::new(self.settings.api_timeout, self.settings.retry_backoff)
    }

    /// The brokers of the last [`metadata`](Self::metadata): id and `host:port`.
    pub(crate) fn brokers(&self) -> &BTreeMap<i32, String> {
        &self.brokers
    }

    /// Asks any broker for topics, and notes the brokers and the controller.
    ///
    /// # Errors
    /// If no broker answers. What is wrong with a topic stands in the answer.
    pub(crate) async fn metadata(&mut self, topics: Topics<'_>) -> Result<MetadataResponse, ClusterError> {
        let named = |name| MetadataRequestTopic { name: Some(Str::from(name)), ..Default::default() };
        let (topics, create) = match topics {
            Topics::All => (None, false),
            Topics::None => (Some(Vec::new()), false),
            Topics::Several(names) => (Some(names.iter().copied().map(named).collect()), false),
            Topics::Named { name, create } => (Some(vec![named(name)]), create),
        };
        let request = MetadataRequest { topics, allow_auto_topic_creation: create, ..Default::default() };
        let response = self.call_any(&request).await?;
        let brokers = response.brokers.iter();
        let broker = |it: &MetadataResponseBroker| (it.node_id, Self::address(&it.host, it.port));
        self.brokers = brokers.map(broker).collect();
        self.controller = response.controller_id;
        Ok(response)
    }

    /// `host:port`, with an address of IPv6 in brackets.
    pub(crate) fn address(host: &str, port: i32) -> String {
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Sends a request to any broker.
    ///
    /// # Errors
    /// If none answers in time, or one does not know the request.
    pub(crate) async fn call_any<R: Request>(&mut self, request: &R) -> Result<R::Response, ClusterError> {
        self.call_any_version(|_| request.clone()).await
    }

    /// Sends a request to any broker, made for the version that it will go out in.
    ///
    /// # Errors
    /// If none answers in time, or one does not know the request.
    pub(crate) async fn call_any_version<R: Request>(
        &mut self,
        request: impl Fn(i16) -> R,
    ) -> Result<R::Response, ClusterError> {
        let attempts = Attempts::new(self.settings.connect_patience, self.settings.retry_backoff);
        let mut warned = false;
        loop {
            let mut last = ClientError::Closed;
            let known = self.brokers.values().chain(&self.bootstrap);
            let mut addresses: Vec<String> = Vec::new();
            for address in known {
                if !addresses.contains(address) {
                    addresses.push(address.clone());
                }
            }
            for address in &addresses {
                match self.send_made(address, &request).await {
                    Ok(response) => return Ok(response),
                    Err(error) if is_transient(&error) => last = error,
                    Err(error) => return Err(ClusterError::Client { address: address.clone(), error }),
                }
            }
            let servers = addresses.join(", ");
            if !std::mem::replace(&mut warned, true) {
                let seconds = self.settings.connect_patience.as_secs();
                eprintln!("WARNING: no broker answers at {servers} ({last}); trying for {seconds} s");
            }
            if !attempts.again().await {
                return Err(ClusterError::Unreachable { servers, error: last });
            }
        }
    }

    /// Sends a request to the controller, again while `code_of` finds a retriable code in the answer.
    ///
    /// # Errors
    /// If no answer comes in time. A code that is not retriable is left to the caller, and so is a retriable
    /// one at the end of the time.
    pub(crate) async fn call_controller<R: Request>(
        &mut self,
        request: &R,
        code_of: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response, ClusterError> {
        let attempts = self.attempts();
        loop {
            let address = self.brokers.get(&self.controller).cloned();
            let answer = match &address {
                Some(address) => self.send(address, request).await,
                None => Err(ClientError::Closed),
            };
            let address = address.unwrap_or_default();
            match answer {
                Ok(response) if !is_retriable(code_of(&response)) => return Ok(response),
                Ok(response) => {
                    if !attempts.again().await {
                        return Ok(response);
                    }
                }
                Err(error) if is_transient(&error) => {
                    if !attempts.again().await {
                        let what = "no controller answered".to_owned();
                        return Err(self.timed_out(what, error.to_string()));
                    }
                }
                Err(error) => return Err(ClusterError::Client { address, error }),
            }
            self.metadata(Topics::None).await?;
        }
    }

    /// Sends a request to the broker `id`.
    ///
    /// # Errors
    /// If it is not in the cluster, or does not answer in time.
    pub(crate) async fn call_broker<R: Request>(
        &mut self,
        id: i32,
        request: &R,
    ) -> Result<R::Response, ClusterError> {
        let attempts = Attempts::new(self.settings.connect_patience, self.settings.retry_backoff);
        loop {
            let address = self.brokers.get(&id).cloned().ok_or(ClusterError::NoSuchBroker(id))?;
            match self.send(&address, request).await {
                Ok(response) => return Ok(response),
                Err(error) if is_transient(&error) && attempts.again().await => {
                    self.metadata(Topics::None).await?;
                }
                Err(error) => return Err(ClusterError::Client { address, error }),
            }
        }
    }

    /// Sends a request over the connection to `address`, which is opened if need be and kept if it is sound.
    async fn send<R: Request>(&mut self, address: &str, request: &R) -> Result<R::Response, ClientError> {
        let mut client = self.take_connection(address).await?;
        let answer = client.send(request).await;
        if answer.as_ref().is_ok() || matches!(answer, Err(ClientError::Unsupported { .. })) {
            self.connections.insert(address.to_owned(), client);
        }
        answer
    }

    /// As [`send`](Self::send), with a request made for the version.
    async fn send_made<R: Request>(
        &mut self,
        address: &str,
        request: &impl Fn(i16) -> R,
    ) -> Result<R::Response, ClientError> {
        let client = self.take_connection(address).await?;
        let version = client.common_version::<R>();
        self.give_connection(address, client);
        self.send(address, &request(version?)).await
    }

    /// Takes the connection to `address` out, or opens one.
    pub(crate) async fn take_connection(&mut self, address: &str) -> Result<Client, ClientError> {
        if let Some(client) = self.connections.remove(address) {
            return Ok(client);
        }
        let limit = self.settings.request_timeout.min(self.settings.connect_patience);
        let connect = timeout(limit, Client::connect(address, &self.settings.client_id));
        let mut client = connect.await.map_err(|_| ClientError::Timeout(limit))??;
        client.set_timeout(self.settings.request_timeout);
        Ok(client)
    }

    /// Gives back a connection that [`take_connection`](Self::take_connection) gave and that is sound.
    pub(crate) fn give_connection(&mut self, address: &str, client: Client) {
        self.connections.insert(address.to_owned(), client);
    }

    /// The error of what did not happen within `default.api.timeout.ms`.
    pub(crate) fn timed_out(&self, what: String, last: String) -> ClusterError {
        ClusterError::TimedOut { what, within: self.settings.api_timeout, last }
    }
}

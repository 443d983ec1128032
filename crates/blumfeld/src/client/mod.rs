//! The cluster as the verbs see it: the first address that answers, the brokers that it tells of, and a
//! connection to each of them when one is needed.

mod settings;

use std::collections::BTreeMap;

use net::client::Client;
use wire::Str;
use wire::messages::metadata_request::MetadataRequestTopic;
use wire::messages::{MetadataRequest, MetadataResponse, Request};

use crate::failure::Failure;

pub(crate) use settings::{ClientSettings, ConnectArgs, pairs};

/// A cluster that answers.
pub(crate) struct Cluster {
    settings: ClientSettings,
    first: Client,
    addresses: BTreeMap<i32, String>,
    clients: BTreeMap<i32, Client>,
    controller: i32,
}

impl Cluster {
    /// Connects to the first of the given addresses that answers.
    pub(crate) async fn connect(settings: ClientSettings) -> Result<Self, Failure> {
        let mut reasons = Vec::new();
        for address in &settings.bootstrap_servers {
            match connect(address, &settings).await {
                Ok(first) => {
                    let (addresses, clients) = (BTreeMap::new(), BTreeMap::new());
                    return Ok(Self { settings, first, addresses, clients, controller: -1 });
                }
                Err(failure) => reasons.push(failure.to_string()),
            }
        }
        let hint = "Is the broker running, and is this one of its listeners? `blumfeld server` starts one on \
                    localhost:9092; --bootstrap-server names another.";
        Err(Failure::new(reasons.join("; ")).hint(hint))
    }

    /// Asks for topics (all if `None`), brokers and the controller.
    pub(crate) async fn metadata(&mut self, topics: Option<&[String]>) -> Result<MetadataResponse, Failure> {
        let named = |name: &String| MetadataRequestTopic {
            name: Some(Str::from(name.as_str())),
            ..MetadataRequestTopic::default()
        };
        let request = MetadataRequest {
            topics: topics.map(|topics| topics.iter().map(named).collect()),
            allow_auto_topic_creation: false,
            ..MetadataRequest::default()
        };
        let response = self.first.send(&request).await?;
        self.controller = response.controller_id;
        let brokers = response.brokers.iter();
        self.addresses =
            brokers.map(|it| (it.node_id, format!("{}:{}", bracketed(&it.host), it.port))).collect();
        Ok(response)
    }

    /// The version in which the first broker is asked.
    pub(crate) fn version_of<R: Request>(&self) -> Result<i16, Failure> {
        Ok(self.first.common_version::<R>()?)
    }

    /// Asks whichever broker answered first.
    pub(crate) async fn any<R: Request>(&mut self, request: &R) -> Result<R::Response, Failure> {
        Ok(self.first.send(request).await?)
    }

    /// Asks the controller.
    pub(crate) async fn controller<R: Request>(&mut self, request: &R) -> Result<R::Response, Failure> {
        if self.addresses.is_empty() {
            self.metadata(Some(&[])).await?;
        }
        match self.controller {
            -1 => Err(Failure::new("The cluster has no controller at the moment")
                .hint("Try again in a few seconds.")),
            id => self.broker(id, request).await,
        }
    }

    /// Asks one broker.
    pub(crate) async fn broker<R: Request>(&mut self, id: i32, request: &R) -> Result<R::Response, Failure> {
        if !self.clients.contains_key(&id) {
            if !self.addresses.contains_key(&id) {
                self.metadata(Some(&[])).await?;
            }
            let address =
                self.addresses.get(&id).ok_or_else(|| Failure::new(format!("There is no broker {id}")))?;
            let client = connect(address, &self.settings).await?;
            self.clients.insert(id, client);
        }
        let missing = || Failure::new(format!("There is no connection to broker {id}"));
        let client = self.clients.get_mut(&id).ok_or_else(missing)?;
        let answer = client.send(request).await;
        if answer.is_err() {
            // The next request begins with a new connection.
            self.clients.remove(&id);
        }
        Ok(answer?)
    }
}

async fn connect(address: &str, settings: &ClientSettings) -> Result<Client, Failure> {
    let mut client = Client::connect(address, &settings.client_id).await?;
    client.set_timeout(settings.request_timeout);
    Ok(client)
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

//! The registration of the broker: an ephemeral znode that tells the cluster where it listens, and whose czxid is the
//! broker epoch (KIP-380).

use std::time::Duration;

use kernel::metadata_image::{BrokerInfo, Endpoint};
use kernel::metadata_version::MetadataVersion;
use metadata::store::{Blocking, Op, OpResult, Request, Response, SessionId, Store, StoreError};
use metadata::znode::broker::{self, BrokerRegistration};
use wire::types::{BrokerEpoch, BrokerId, Millis};

use super::{StartError, waited};
use crate::clock::Clock;
use crate::config::{EndPoint, KafkaConfig};

/// How much longer than its timeout a session may live: an ensemble counts in ticks, of two seconds by default.
const EXPIRY_GRACE: Duration = Duration::from_secs(5);
/// How long to wait before looking again whether a foreign registration is gone.
const PAUSE: Duration = Duration::from_millis(100);
/// How often a registration is tried that meets others' traces each time.
const MAX_TRIES: usize = 10;

/// Why a broker is not registered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegisterError {
    /// Another session holds the broker's znode.
    #[error("it is registered by the session {owner:?}")]
    Foreign {
        /// That session.
        owner: SessionId,
    },
    /// The store refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the broker tells of itself.
pub(crate) struct Registration {
    /// Which broker it is.
    pub(crate) id: BrokerId,
    /// What the znode holds.
    pub(crate) value: BrokerRegistration,
    /// The version of its form.
    pub(crate) version: i32,
}

impl Registration {
    /// What a broker with this configuration tells.
    pub(crate) fn new(config: &KafkaConfig, endpoints: &[EndPoint], id: BrokerId, wall_ms: i64) -> Self {
        let endpoint = |it: &EndPoint| broker::Endpoint {
            listener_name: it.listener_name.clone(),
            host: it.host.clone(),
            port: i32::from(it.port),
            security_protocol: broker::SecurityProtocol::from_name(it.security_protocol.name())
                .unwrap_or(broker::SecurityProtocol::Plaintext),
        };
        let value = BrokerRegistration {
            endpoints: endpoints.iter().map(endpoint).collect(),
            rack: config.broker_rack.clone(),
            jmx_port: -1,
            timestamp_ms: Millis(wall_ms),
        };
        Self { id, value, version: version(config.inter_broker_protocol_version) }
    }

    /// The same as the broker's own picture of the cluster has it.
    pub(crate) fn info(&self) -> BrokerInfo {
        let endpoint = |it: &broker::Endpoint| Endpoint {
            listener: it.listener_name.clone(),
            host: it.host.clone(),
            port: it.port,
        };
        BrokerInfo {
            endpoints: self.value.endpoints.iter().map(endpoint).collect(),
            rack: self.value.rack.clone(),
        }
    }

    /// The writes that register the broker, for one transaction; [`epoch_in`] its results is the broker epoch.
    pub(crate) fn writes(&self) -> Vec<Op> {
        self.value.register(self.id, self.version)
    }

    /// Registers once. A znode of this session counts as done before, its answer lost; one of the `previous` session is
    /// made anew (KAFKA-7165).
    pub(crate) fn register(
        &self,
        store: &dyn Store,
        previous: Option<SessionId>,
    ) -> Result<BrokerEpoch, RegisterError> {
        let calls = Blocking::new(store);
        let path = broker::path(self.id);
        let mut outcome = Err(StoreError::Unexpected("no outcome").into());
        for _ in 0..MAX_TRIES {
            match calls.multi(self.writes()) {
                Ok(results) => return Ok(epoch_in(&results)),
                Err(error) if error.is_node_exists() || error == StoreError::ConnectionLoss => {
                    outcome = Err(error.into());
                }
                Err(error) => return Err(error.into()),
            }
            match calls.find(&path) {
                Ok(Some((_, stat))) if Some(stat.ephemeral_owner) == store.session_id() => {
                    return Ok(BrokerEpoch(stat.czxid));
                }
                Ok(Some((_, stat))) if Some(stat.ephemeral_owner) == previous => {
                    match calls.delete(&path, Some(stat.version)) {
                        Err(error) if !error.is_no_node() => outcome = Err(error.into()),
                        _ => {}
                    }
                }
                Ok(Some((_, stat))) => return Err(RegisterError::Foreign { owner: stat.ephemeral_owner }),
                Ok(None) | Err(StoreError::ConnectionLoss) => {}
                Err(error) => return Err(error.into()),
            }
        }
        outcome
    }

    /// Registers at the start. Another session's registration is waited for as long as a session lives without its
    /// process; whoever holds it then is alive.
    pub(crate) fn register_first(
        &self,
        store: &dyn Store,
        clock: &dyn Clock,
        session_timeout: Duration,
    ) -> Result<BrokerEpoch, StartError> {
        let limit = session_timeout + EXPIRY_GRACE;
        let start = clock.now();
        let mut told = false;
        loop {
            match self.register(store, None) {
                Ok(epoch) => return Ok(epoch),
                Err(RegisterError::Store(error)) => return Err(error.into()),
                Err(RegisterError::Foreign { owner }) if waited(clock, start) >= limit => {
                    return Err(StartError::Registered { id: self.id, owner });
                }
                Err(RegisterError::Foreign { owner }) => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::warn!(
                            broker = self.id.0, session = ?owner, limit_ms = limit.as_millis(),
                            "another session has registered this broker id; waiting for its end"
                        );
                    }
                    clock.sleep(PAUSE);
                }
            }
        }
    }

    /// Refuses an address that another broker has registered: clients would reach one of the two for both.
    pub(crate) fn check_addresses(&self, store: &dyn Store) -> Result<(), StartError> {
        let calls = Blocking::new(store);
        let others: Vec<BrokerId> = ids(&calls.children(broker::ROOT)?).filter(|id| *id != self.id).collect();
        let answers = calls.pipeline(others.iter().map(|id| Request::get(broker::path(*id))).collect());
        for (id, answer) in others.into_iter().zip(answers) {
            let data = match answer {
                Ok(Response::Data { data, .. }) => data,
                Err(error) if !error.is_no_node() => return Err(error.into()),
                _ => continue,
            };
            if let Some(address) = self.shared_with(data.as_deref()) {
                return Err(StartError::AddressTaken { address, other: id });
            }
        }
        Ok(())
    }

    /// The address, `host:port`, that the registration of another broker has, too. What cannot be read tells none.
    pub(crate) fn shared_with(&self, other: Option<&[u8]>) -> Option<String> {
        let other = BrokerRegistration::decode(other).ok()?;
        let is_shared = |mine: &&broker::Endpoint| {
            other.endpoints.iter().any(|it| (&it.host, it.port) == (&mine.host, mine.port))
        };
        let shared = self.value.endpoints.iter().find(is_shared)?;
        Some(format!("{}:{}", shared.host, shared.port))
    }

    /// The write that puts this in the place of a registration, if that still has `version`.
    pub(crate) fn update(&self, version: i32) -> Request {
        Request::set(broker::path(self.id), self.value.encode(self.version), Some(version))
    }
}

/// The ids of brokers among the names of znodes.
pub(crate) fn ids(names: &[String]) -> impl Iterator<Item = BrokerId> {
    names.iter().filter_map(|name| name.parse().ok().map(BrokerId))
}

/// The form of a registration that all brokers of this protocol version read.
fn version(inter_broker: MetadataVersion) -> i32 {
    match inter_broker {
        version if version >= MetadataVersion::IBP_2_7_IV0 => 5,
        version if version >= MetadataVersion::IBP_0_10_0_IV1 => 4,
        _ => 2,
    }
}

/// The broker epoch that the results of a registration tell.
pub(crate) fn epoch_in(results: &[OpResult]) -> BrokerEpoch {
    let czxid = results.iter().find_map(|result| match result {
        OpResult::Set { stat } => Some(stat.czxid),
        _ => None,
    });
    BrokerEpoch(czxid.unwrap_or(-1))
}

//! The start of a broker, from an open store and its directories to the first request.
//!
//! Order: identity (cluster id, broker id), logs, registration, controller. What the broker leads and follows it is told by
//! the controller, which may be itself. A broker on the embedded store is alone in its cluster, and serves only when it
//! leads its partitions. One of several first makes sure that nobody takes it for in sync who should not, and that
//! its id and addresses are nobody else's.

mod identity;
mod lost_tail;
pub(crate) mod register;
mod stored;
mod surely;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kernel::metadata_image::MetadataImage;
use metadata::store::{SessionId, Store, StoreError};
use metadata::znode::{DecodeError, persistent_paths};
use storage::boot::Boot;
use storage::disk::Disk;
use storage::log_dirs::{LoadReport, LogDirs, LogDirsError, LogDirsOptions};
use storage::names::CLEAN_SHUTDOWN;
use wire::types::{BrokerEpoch, BrokerId, Millis, Now, TopicPartition};

use super::log_dir_failure::LogDirFailures;
use super::{controller, isr_shrink, session};
use crate::broker::{Broker, BrokerState, Environment, Found};
use crate::clock::Clock;
use crate::config::KafkaConfig;
use lost_tail::{LostTail, wait_until_out_of_isrs};
use register::Registration;
use surely::surely;

/// How long a broker that is alone waits for itself: to become controller and to lead its partitions.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The broker's place in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// There can be no other broker: the store is the broker's own.
    Alone,
    /// There may be others that share the store.
    Member {
        /// After how long without a sign of life a session ends.
        session_timeout: Duration,
        /// Whether the machine has been up since the process before this one used the same directories.
        boot: Boot,
    },
}

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The metadata store cannot be used.
    #[error("the metadata store cannot be used: {0}")]
    Store(#[from] StoreError),
    /// A znode holds what cannot be read.
    #[error("{0}")]
    Znode(#[from] DecodeError),
    /// The log directories cannot be used.
    #[error("{0}")]
    LogDirs(#[from] LogDirsError),
    /// No broker id can be drawn.
    #[error("no broker id is left above reserved.broker.max.id")]
    NoBrokerId,
    /// The store holds no cluster, but the directories belong to one.
    #[error(
        "the log directories belong to the cluster {0}, but zookeeper.connect leads to a ZooKeeper without a cluster; \
         correct it, or carry the cluster's metadata there with `blumfeld metadata import`"
    )]
    NoSuchCluster(String),
    /// Another live process has registered the broker's id.
    #[error(
        "broker id {id} is registered by another live broker (session {owner:?}); stop it, or set another broker.id"
    )]
    Registered {
        /// The id.
        id: BrokerId,
        /// The session that holds it.
        owner: SessionId,
    },
    /// Another broker is reached at an address of this one's.
    #[error(
        "the advertised address {address} is registered by broker {other}; set another one in advertised.listeners"
    )]
    AddressTaken {
        /// Host and port.
        address: String,
        /// The other broker.
        other: BrokerId,
    },
}

/// Starts a broker. Blocks until it can serve.
///
/// # Errors
/// When the store or the directories cannot be used; nothing is served then.
pub fn start(config: KafkaConfig, environment: Environment) -> Result<Arc<Broker>, StartError> {
    let store = environment.store.clone();
    let membership = environment.membership;
    surely(&*store, || Ok(persistent_paths::ensure_persistent_paths(&*store)?))?;
    let now = environment.clock.now();
    let failures = Arc::new(LogDirFailures::default());
    let options = log_dirs_options(&config, membership, environment.disk.clone(), failures.clone());
    let log_dirs = LogDirs::open(&config.log_dirs, options)?;
    let of_dirs = log_dirs.cluster_id();
    let cluster_id = surely(&*store, || {
        identity::find_cluster_id(&*store, &membership, of_dirs.as_deref(), environment.seed)
    })?;
    let id = surely(&*store, || identity::find_broker_id(&*store, &config, log_dirs.broker_id()))?;
    log_dirs.claim(&cluster_id, id, now)?;
    let config = surely(&*store, || stored::with_dynamic(&*store, &config, id))?;
    let configs = surely(&*store, || stored::read_configs(&*store))?;
    let config_of = |partition: &TopicPartition| {
        let none = BTreeMap::new();
        Arc::new(config.log_config(configs.get(&partition.topic).unwrap_or(&none)))
    };
    let lost_tail = lost_tail(membership, &config, &*environment.disk);
    let loaded = log_dirs.load(config.num_recovery_threads_per_data_dir.max(1), &config_of, now)?;
    for (partition, error) in &loaded.failed {
        tracing::error!(%partition, %error, "the log cannot be opened and stays offline");
    }
    tell_losses(&loaded);
    let endpoints = (environment.endpoints)(&config);
    let registration = Registration::new(&config, &endpoints, id, now.wall_ms);
    let (broker_epoch, session) = surely(&*store, || {
        let broker_epoch = join(&*store, &*environment.clock, membership, lost_tail, &registration)?;
        // A session that is over by now has taken the registration with it: all of it is done again under a new one.
        let session = store.session_id().ok_or(StoreError::SessionExpired)?;
        Ok((broker_epoch, session))
    })?;
    let image = MetadataImage::default().with_cluster_id(&cluster_id).with_broker(id, registration.info());
    let events = environment.store_events.clone();
    let offsets_topic = surely(&*store, || stored::offsets_topic(&*store))?;
    let found = Found { id, log_dirs, image, broker_epoch, registration, offsets_topic };
    let broker = Arc::new(Broker::new(config, environment, found));
    broker.set_state(BrokerState::Recovery);
    session::begin(&broker, session);
    // After that, so that an end of the session that came meanwhile follows its beginning.
    events.attach(&broker, session);
    failures.attach(&broker);
    isr_shrink::schedule(&broker);
    if membership == Membership::Alone {
        controller::wait_until_settled(&broker, SETTLE_TIMEOUT);
    }
    broker.set_state(BrokerState::Running);
    Ok(broker)
}

/// Tells of records that had been replicated and are gone here. The others may have them: nothing is refused.
fn tell_losses(loaded: &LoadReport) {
    for (partition, loss) in &loaded.lost {
        tracing::error!(
            %partition, high_watermark = %loss.high_watermark, log_end = %loss.log_end, records = loss.records(), cause = %loss.cause,
            "records that had been replicated are gone: the log {loss}"
        );
    }
    for (partition, high_watermark) in &loaded.gone {
        tracing::error!(
            %partition, %high_watermark, cause = "its directory was removed",
            "records that had been replicated are gone: the log is not there, and had a high watermark of {high_watermark}"
        );
    }
}

fn log_dirs_options(
    config: &KafkaConfig,
    membership: Membership,
    disk: Arc<dyn Disk>,
    failures: Arc<LogDirFailures>,
) -> LogDirsOptions {
    LogDirsOptions {
        disk,
        on_offline: Arc::new(move |_| failures.note()),
        boot: match membership {
            Membership::Alone => Boot::Unknown,
            Membership::Member { boot, .. } => boot,
        },
        producer_expiration: Millis(i64::from(config.producer_id_expiration_ms)),
        ..LogDirsOptions::default()
    }
}

/// Whether logs may lack what others rely on. It must be asked before they are loaded, which takes the marks away.
fn lost_tail(membership: Membership, config: &KafkaConfig, disk: &dyn Disk) -> LostTail {
    // A mark that cannot be looked for counts as missing.
    let is_clean = |dir: &PathBuf| disk.exists(&dir.join(CLEAN_SHUTDOWN)).unwrap_or(false);
    match membership {
        Membership::Member { boot, .. } if boot != Boot::Same && !config.log_dirs.iter().all(is_clean) => {
            LostTail::Possible
        }
        _ => LostTail::No,
    }
}

/// Registers the broker once nothing speaks against it.
fn join(
    store: &dyn Store,
    clock: &dyn Clock,
    membership: Membership,
    lost_tail: LostTail,
    registration: &Registration,
) -> Result<BrokerEpoch, StartError> {
    let session_timeout = match membership {
        Membership::Alone => Duration::ZERO,
        Membership::Member { session_timeout, .. } => session_timeout,
    };
    if lost_tail == LostTail::Possible {
        surely(store, || wait_until_out_of_isrs(store, clock, registration.id, session_timeout))?;
    }
    surely(store, || registration.check_addresses(store))?;
    surely(store, || registration.register_first(store, clock, session_timeout))
}

/// How long ago `start` was.
fn waited(clock: &dyn Clock, start: Now) -> Duration {
    let passed_ms = clock.now().mono_ms.saturating_sub(start.mono_ms);
    Duration::from_millis(u64::try_from(passed_ms).unwrap_or(0))
}

//! The metadata store that a broker is started with: a session with the cluster's ZooKeeper, or the embedded store of a
//! broker that is alone.
//!
//! Before the session begins, that of the process before this one is ended, if it was killed and the machine has been up
//! since: its registration would keep this process out until its timeout. Who it was is told by a file beside the data,
//! which this process then holds for itself.

mod keeper;
mod metrics;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use metadata::DEFAULT_STORE_FILE;
use metadata::embedded::EmbeddedStore;
use metadata::store::{EventSink, Store};
use metadata::zookeeper::{
    SESSION_FILE, SessionEnd, SessionFile, ZooKeeperOptions, ZooKeeperStats, ZooKeeperStore, boot_id,
};
use node::config::{KafkaConfig, ZooKeeperConfig};
use node::{Boot, Membership};

use keeper::Keeper;

/// A store and what must outlive the broker that uses it.
pub(crate) struct OpenStore {
    /// The session.
    pub(crate) store: Arc<dyn Store>,
    /// What the store means for the broker.
    pub(crate) membership: Membership,
    /// Ends after the broker.
    pub(crate) held: Held,
}

/// What is held while a broker runs.
pub(crate) enum Held {
    /// The embedded store, with all that share it.
    Embedded { _store: Arc<EmbeddedStore> },
    /// What belongs to a session with a ZooKeeper.
    Session {
        /// The file that tells of the session; none if no directory takes one.
        keeper: Option<Arc<Keeper>>,
        /// What the session counts.
        stats: Arc<ZooKeeperStats>,
    },
}

impl Held {
    /// The broker has started: nobody relies on more than its logs hold.
    pub(crate) fn started(&self) {
        if let Self::Session { keeper: Some(keeper), .. } = self {
            keeper.logs_are_whole();
        }
    }

    /// The metrics of the store as text of the OpenMetrics format, without the final `# EOF`.
    pub(crate) fn render_metrics(&self) -> String {
        match self {
            Self::Embedded { .. } => String::new(),
            Self::Session { stats, .. } => metrics::render(stats),
        }
    }
}

/// Opens the store of a configuration; its events go to `sink`.
///
/// # Errors
/// One line for the operator.
pub(crate) fn open(config: &KafkaConfig, sink: EventSink) -> Result<OpenStore, String> {
    match &config.zookeeper {
        Some(zookeeper) => open_zookeeper(config, zookeeper, sink),
        None => open_embedded(config, sink),
    }
}

fn open_embedded(config: &KafkaConfig, sink: EventSink) -> Result<OpenStore, String> {
    let Some(data) = config.log_dirs.first() else {
        return Err("log.dirs names no directory".to_owned());
    };
    create(data)?;
    let file = data.join(DEFAULT_STORE_FILE);
    let store = EmbeddedStore::open_file(&file)
        .map_err(|error| format!("the metadata store {} cannot be opened: {error}", file.display()))?;
    Ok(OpenStore { membership: Membership::Alone, ..share(&Arc::new(store), sink) })
}

/// A session of one of several brokers with a store in this process.
pub(crate) fn share(store: &Arc<EmbeddedStore>, sink: EventSink) -> OpenStore {
    OpenStore {
        store: Arc::new(store.session(sink)),
        // Its sessions end with the process; and it does not outlive a crash of the machine better than the logs.
        membership: Membership::Member { session_timeout: Duration::ZERO, boot: Boot::Same },
        held: Held::Embedded { _store: Arc::clone(store) },
    }
}

fn create(data: &Path) -> Result<(), String> {
    fs::create_dir_all(data).map_err(|error| format!("{} cannot be created: {error}", data.display()))
}

fn open_zookeeper(
    config: &KafkaConfig,
    zookeeper: &ZooKeeperConfig,
    sink: EventSink,
) -> Result<OpenStore, String> {
    let mut options = ZooKeeperOptions {
        connect: zookeeper.connect.clone(),
        session_timeout: zookeeper.session_timeout,
        connection_timeout: zookeeper.connection_timeout,
        max_in_flight: zookeeper.max_in_flight,
        create_chroot: true,
        keep: None,
    };
    let (mut boot, mut keeper) = (Boot::Unknown, None);
    if let Some(file) = hold_session_file(config)? {
        boot = end_predecessor(&file, &options)?;
        let keeping = Arc::new(Keeper::new(file, boot == Boot::Same));
        keeper = Some(keeping.clone());
        options.keep = Some(Arc::new(move |session| keeping.keep(session)));
    }
    let store = ZooKeeperStore::connect(&options, sink).map_err(|error| error.to_string())?;
    let stats = store.stats();
    Ok(OpenStore {
        store: Arc::new(store),
        membership: Membership::Member { session_timeout: zookeeper.session_timeout, boot },
        held: Held::Session { keeper, stats },
    })
}

/// The file in the first directory that takes one. A directory that is broken is the broker's affair.
fn hold_session_file(config: &KafkaConfig) -> Result<Option<SessionFile>, String> {
    for dir in &config.log_dirs {
        let path = dir.join(SESSION_FILE);
        match create(dir).and_then(|()| SessionFile::hold(&path).map_err(|error| error.to_string())) {
            Ok(Some(file)) => return Ok(Some(file)),
            Ok(None) => return Err(format!("{} is in use by another broker", dir.display())),
            Err(error) => tracing::warn!(path = %path.display(), error, "the session cannot be kept here"),
        }
    }
    Ok(None)
}

/// Ends the session that the file tells of, if the machine has been up since it was begun; tells whether it has. A process that
/// ended before its logs were whole may have left them as it found them.
fn end_predecessor(file: &SessionFile, options: &ZooKeeperOptions) -> Result<Boot, String> {
    let record = file.read().unwrap_or_else(|error| {
        tracing::warn!(%error, "the file of the session before this one cannot be read");
        None
    });
    let Some(record) = record else { return Ok(Boot::Unknown) };
    let known = |boot| if record.logs_are_whole { boot } else { Boot::Unknown };
    if !record.is_of_boot(&boot_id()) {
        return Ok(known(Boot::Another));
    }
    let (session, boot) = (record.credentials.id, known(Boot::Same));
    match ZooKeeperStore::end_session(options, record.credentials) {
        Ok(SessionEnd::Ended) => tracing::info!(?session, "ended the session of the process before this one"),
        Ok(SessionEnd::WasOver) => {}
        Err(error) => return Err(error.to_string()),
    }
    Ok(boot)
}

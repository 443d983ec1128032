//! `blumfeld metadata`: carries a cluster's metadata tree out of a store and into one: the embedded store of a broker that
//! is not running, or a ZooKeeper. The file in between holds one znode a line; so a single broker becomes one of many,
//! and back.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use metadata::DEFAULT_STORE_FILE;
use metadata::embedded::{EmbeddedStore, OpenError};
use metadata::store::{Blocking, Store, StoreError};
use metadata::transfer::{self, OnConflict};
use metadata::znode::broker;
use metadata::zookeeper::{ConnectString, ZooKeeperOptions, ZooKeeperStore};
use node::config::KafkaConfig;

use crate::cluster::settings::parse_properties;
use crate::error::VerbError;

/// The root of what is carried.
const EVERYTHING: &str = "/";
/// How many requests to a ZooKeeper are under way.
const MAX_IN_FLIGHT: usize = 200;

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct MetadataOptions {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Write the tree as a file of paths and values
    Export(StoreOptions),
    /// Make the znodes of such a file
    Import(ImportOptions),
}

#[derive(Debug, clap::Args)]
struct ImportOptions {
    #[command(flatten)]
    store: StoreOptions,
    /// Give znodes that hold something else the values of the file, rather than import nothing
    #[arg(long)]
    replace: bool,
}

#[derive(Debug, clap::Args)]
struct StoreOptions {
    /// The server.properties of the broker: its store is the ZooKeeper of zookeeper.connect, else in its first log
    /// directory
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data_dir", "zookeeper"])]
    config: Option<PathBuf>,
    /// The log directory that holds the store
    #[arg(long, value_name = "DIR", default_value = "./blumfeld-data", conflicts_with = "zookeeper")]
    data_dir: PathBuf,
    /// A ZooKeeper, as zookeeper.connect names it
    #[arg(long, value_name = "HOST:PORT,.../PATH")]
    zookeeper: Option<ConnectString>,
    /// The file; `-` is standard output or input
    #[arg(long, value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

/// Where a tree is.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// In the file of an embedded store.
    File(PathBuf),
    /// In a ZooKeeper.
    ZooKeeper(ConnectString),
}

/// Exports or imports.
///
/// # Errors
/// If the store or the file cannot be used.
pub(crate) fn run(options: &MetadataOptions) -> Result<(), VerbError> {
    match &options.action {
        Action::Export(options) => export(options),
        Action::Import(options) => import(options),
    }
}

fn export(options: &StoreOptions) -> Result<(), VerbError> {
    let place = options.place()?;
    if let Place::File(path) = &place
        && !path.is_file()
    {
        return Err(VerbError::Failed(format!("{}: there is no metadata store", path.display())));
    }
    let count = place.with_store(false, |store| {
        let exported = if is_standard(&options.file) {
            transfer::export(store, EVERYTHING, &mut BufWriter::new(io::stdout()))
        } else {
            let file = File::create(&options.file).map_err(|error| VerbError::file(&options.file, error))?;
            transfer::export(store, EVERYTHING, &mut BufWriter::new(file))
        };
        exported.map_err(|error| VerbError::Failed(error.to_string()))
    })?;
    eprintln!("Exported {count} znodes.");
    Ok(())
}

fn import(options: &ImportOptions) -> Result<(), VerbError> {
    let place = options.store.place()?;
    if let Place::File(path) = &place
        && let Some(dir) = path.parent()
    {
        std::fs::create_dir_all(dir).map_err(|error| VerbError::file(dir, error))?;
    }
    let on_conflict = if options.replace { OnConflict::Replace } else { OnConflict::Refuse };
    let file = &options.store.file;
    let done = place.with_store(true, |store| {
        nobody_lives(store)?;
        let imported = if is_standard(file) {
            transfer::import(store, &mut BufReader::new(io::stdin()), &[EVERYTHING], on_conflict)
        } else {
            let file = File::open(file).map_err(|error| VerbError::file(file, error))?;
            transfer::import(store, &mut BufReader::new(file), &[EVERYTHING], on_conflict)
        };
        imported.map_err(|error| VerbError::Failed(error.to_string()))
    })?;
    eprintln!(
        "Created {} znodes, replaced {}, left {} as they were.",
        done.created, done.replaced, done.unchanged
    );
    Ok(())
}

/// Brokers that run would not see what is written behind their backs, and would write over it.
fn nobody_lives(store: &dyn Store) -> Result<(), VerbError> {
    match Blocking::new(store).children(broker::ROOT) {
        Ok(ids) if ids.is_empty() => Ok(()),
        Ok(ids) => {
            let ids = ids.join(", ");
            Err(VerbError::Failed(format!("these brokers are registered: {ids}; stop them first")))
        }
        Err(error) if error.is_no_node() => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}

fn failed(error: &StoreError) -> VerbError {
    VerbError::Failed(error.to_string())
}

impl Place {
    /// Works on the store; `for_import`: what is missing on the way to it is created.
    fn with_store<T>(
        &self,
        for_import: bool,
        work: impl FnOnce(&dyn Store) -> Result<T, VerbError>,
    ) -> Result<T, VerbError> {
        match self {
            Self::File(path) => {
                let store = EmbeddedStore::open_file(path).map_err(|error| match error {
                    OpenError::InUse { .. } => {
                        VerbError::Failed(format!("{error}; stop the broker that holds it first"))
                    }
                    other => VerbError::Failed(other.to_string()),
                })?;
                in_session(&store.session(Arc::new(|_| {})), work)
            }
            Self::ZooKeeper(connect) => {
                let mut options = ZooKeeperOptions::new(connect.clone());
                options.max_in_flight = MAX_IN_FLIGHT;
                options.create_chroot = for_import;
                let store = ZooKeeperStore::connect(&options, Arc::new(|_| {}))
                    .map_err(|error| VerbError::Failed(error.to_string()))?;
                in_session(&store, work)
            }
        }
    }
}

fn in_session<T>(
    store: &dyn Store,
    work: impl FnOnce(&dyn Store) -> Result<T, VerbError>,
) -> Result<T, VerbError> {
    let result = work(store);
    store.close();
    result
}

fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

impl StoreOptions {
    /// Where the tree is.
    fn place(&self) -> Result<Place, VerbError> {
        if let Some(connect) = &self.zookeeper {
            return Ok(Place::ZooKeeper(connect.clone()));
        }
        let Some(path) = &self.config else {
            return Ok(Place::File(self.data_dir.join(DEFAULT_STORE_FILE)));
        };
        let (config, _) = KafkaConfig::from_properties(&parse_properties(path)?, &[])
            .map_err(|error| VerbError::Usage(format!("{}: {error}", path.display())))?;
        match (&config.zookeeper, config.log_dirs.first()) {
            (Some(zookeeper), _) => Ok(Place::ZooKeeper(zookeeper.connect.clone())),
            (None, Some(dir)) => Ok(Place::File(dir.join(DEFAULT_STORE_FILE))),
            (None, None) => Err(VerbError::Usage(format!("{}: log.dirs names no directory", path.display()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metadata::store::{CreateMode, Value};

    fn options(dir: &Path, file: &Path) -> StoreOptions {
        StoreOptions { config: None, data_dir: dir.to_owned(), zookeeper: None, file: file.to_owned() }
    }

    #[test]
    fn what_was_imported_is_exported_again() {
        let dir = tempfile::TempDir::new().unwrap();
        let (input, output) = (dir.path().join("in"), dir.path().join("out"));
        let tree = "{\"path\":\"/cluster\",\"value\":null}\n{\"path\":\"/cluster/id\",\"value\":\"x\"}\n";
        std::fs::write(&input, tree).unwrap();
        let store = dir.path().join("data");
        import(&ImportOptions { store: options(&store, &input), replace: false }).unwrap();
        export(&options(&store, &output)).unwrap();
        assert_eq!(std::fs::read_to_string(&output).unwrap(), tree);
    }

    #[test]
    fn a_store_that_is_in_use_is_left_alone() {
        let dir = tempfile::TempDir::new().unwrap();
        let _held = EmbeddedStore::open_file(&dir.path().join(DEFAULT_STORE_FILE)).unwrap();
        let error = export(&options(dir.path(), Path::new("-"))).unwrap_err().to_string();
        assert!(
            error.ends_with("is in use by another process; stop the broker that holds it first"),
            "{error}"
        );
    }

    #[test]
    fn an_export_makes_no_store_where_there_is_none() {
        let dir = tempfile::TempDir::new().unwrap();
        assert!(export(&options(dir.path(), Path::new("-"))).is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn nothing_is_imported_under_brokers_that_run() {
        let store = EmbeddedStore::open_memory().unwrap();
        let session = store.session(Arc::new(|_| {}));
        nobody_lives(&session).unwrap();
        let calls = Blocking::new(&session);
        calls.ensure_path(broker::ROOT).unwrap();
        nobody_lives(&session).unwrap();
        for id in ["/brokers/ids/2", "/brokers/ids/1"] {
            calls.create(id, Value::NULL, CreateMode::Ephemeral).unwrap();
        }
        let error = nobody_lives(&session).unwrap_err().to_string();
        assert!(error.ends_with("these brokers are registered: 1, 2; stop them first"), "{error}");
    }

    #[test]
    fn the_store_of_a_configuration_is_its_zookeeper_or_in_its_first_directory() {
        let dir = tempfile::TempDir::new().unwrap();
        let file = dir.path().join("server.properties");
        let place = |text: &str| {
            std::fs::write(&file, text).unwrap();
            let options = StoreOptions { config: Some(file.clone()), ..options(dir.path(), &file) };
            options.place().unwrap()
        };
        assert_eq!(place("log.dirs=/a,/b"), Place::File(Path::new("/a").join(DEFAULT_STORE_FILE)));
        assert_eq!(place("zookeeper.connect=h/k"), Place::ZooKeeper("h/k".parse().unwrap()));
    }
}

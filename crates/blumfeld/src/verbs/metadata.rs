//! `blumfeld metadata`: carries the metadata tree out of the embedded store of a broker that is not running, and
//! into it. The file holds one znode a line, so that a ZooKeeper can be filled from it, or it from a ZooKeeper.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use metadata::DEFAULT_STORE_FILE;
use metadata::embedded::{EmbeddedStore, OpenError};
use metadata::store::Store;
use metadata::transfer::{self, OnConflict};
use node::config::KafkaConfig;

use crate::cluster::settings::parse_properties;
use crate::error::VerbError;

/// The root of what is carried.
const EVERYTHING: &str = "/";

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
    /// The server.properties of the broker; its first log directory holds the store
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    config: Option<PathBuf>,
    /// The log directory that holds the store
    #[arg(long, value_name = "DIR", default_value = "./blumfeld-data")]
    data_dir: PathBuf,
    /// The file; `-` is standard output or input
    #[arg(long, value_name = "FILE", default_value = "-")]
    file: PathBuf,
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
    let path = options.path()?;
    if !path.is_file() {
        return Err(VerbError::Failed(format!("{}: there is no metadata store", path.display())));
    }
    let count = with_store(&path, |store| {
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
    let path = options.store.path()?;
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(|error| VerbError::file(dir, error))?;
    }
    let on_conflict = if options.replace { OnConflict::Replace } else { OnConflict::Refuse };
    let file = &options.store.file;
    let done = with_store(&path, |store| {
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

fn with_store<T>(path: &Path, work: impl FnOnce(&dyn Store) -> Result<T, VerbError>) -> Result<T, VerbError> {
    let store = EmbeddedStore::open_file(path).map_err(|error| match error {
        OpenError::InUse { .. } => VerbError::Failed(format!("{error}; stop the broker that holds it first")),
        other => VerbError::Failed(other.to_string()),
    })?;
    let session = store.session(Arc::new(|_| {}));
    let result = work(&session);
    session.close();
    result
}

fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

impl StoreOptions {
    /// The file of the store.
    fn path(&self) -> Result<PathBuf, VerbError> {
        let Some(path) = &self.config else {
            return Ok(self.data_dir.join(DEFAULT_STORE_FILE));
        };
        let (config, _) = KafkaConfig::from_properties(&parse_properties(path)?, &[])
            .map_err(|error| VerbError::Usage(format!("{}: {error}", path.display())))?;
        match config.log_dirs.first() {
            Some(dir) => Ok(dir.join(DEFAULT_STORE_FILE)),
            None => Err(VerbError::Usage(format!("{}: log.dirs names no directory", path.display()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(dir: &Path, file: &Path) -> StoreOptions {
        StoreOptions { config: None, data_dir: dir.to_owned(), file: file.to_owned() }
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
}

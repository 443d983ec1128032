//! The file of the embedded store: a redb database of two tables, one row for each persistent znode and a few numbers.
//!
//! Every commit is durable before it returns. A fresh file is built beside its final place without syncs, synced once
//! and renamed, so that it is whole or absent. redb trusts what it wrote: each row carries a checksum, and the sum of
//! all these is kept too, so that a damaged file is an error and never a wrong tree.

use super::{OpenError, record};
use crate::tree::{Record, Tree};
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, StorageError, TableDefinition,
    TableError,
};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ZNODES: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("znodes");
const NUMBERS: TableDefinition<'static, &str, i64> = TableDefinition::new("numbers");
const FORMAT_KEY: &str = "format";
const ZXID_KEY: &str = "zxid";
/// The sum of the checksums of all rows.
const DIGEST_KEY: &str = "digest";
const FORMAT: i64 = 1;

/// The tree lives in memory; redb only needs the pages of a commit.
const CACHE_BYTES: usize = 1024 * 1024;

pub(super) struct FileBackend {
    database: Database,
    digest: i64,
    row: Vec<u8>,
}

/// Why a database could not be read, before the path is known.
enum Trouble {
    InUse,
    Corrupted(String),
    UnknownFormat(i64),
    Io(io::Error),
}

impl FileBackend {
    /// Opens or creates the file and loads its tree.
    pub(super) fn open(path: &Path) -> Result<(Self, Tree), OpenError> {
        let opened = if path.try_exists().map_err(|source| io_error(path, source))? {
            open_existing(path)
        } else {
            create(path)
        };
        opened.map_err(|trouble| trouble.at(path))
    }

    /// Opens whatever a redb backend holds, or makes an empty store of it.
    #[cfg(test)]
    pub(super) fn open_backend(backend: impl StorageBackend) -> Result<(Self, Tree), OpenError> {
        let opened = (|| {
            let is_new = backend.len()? == 0;
            let database = builder().create_with_backend(backend)?;
            if is_new { initialize(database) } else { load(database) }
        })();
        opened.map_err(|trouble: Trouble| trouble.at(Path::new("backend")))
    }

    /// Makes `records` durable: `Some` replaces the row of a path, `None` removes it. After an error nothing more can
    /// be written until the file is opened anew.
    pub(super) fn commit(
        &mut self,
        zxid: i64,
        records: &BTreeMap<Arc<str>, Option<Record>>,
    ) -> Result<(), String> {
        self.commit_all(zxid, records, false).map_err(|error| error.to_string())
    }

    fn commit_all(
        &mut self,
        zxid: i64,
        records: &BTreeMap<Arc<str>, Option<Record>>,
        with_format: bool,
    ) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        let mut digest = self.digest;
        {
            let mut znodes = transaction.open_table(ZNODES)?;
            for (path, record) in records {
                let replaced = match record {
                    Some(record) => {
                        record::encode(path, record, &mut self.row);
                        digest = digest.wrapping_add(record::checksum_of(&self.row));
                        znodes.insert(&**path, self.row.as_slice())?
                    }
                    None => znodes.remove(&**path)?,
                };
                if let Some(replaced) = replaced {
                    digest = digest.wrapping_sub(record::checksum_of(replaced.value()));
                }
            }
            let mut numbers = transaction.open_table(NUMBERS)?;
            numbers.insert(ZXID_KEY, zxid)?;
            numbers.insert(DIGEST_KEY, digest)?;
            if with_format {
                numbers.insert(FORMAT_KEY, FORMAT)?;
            }
        }
        transaction.commit()?;
        self.digest = digest;
        Ok(())
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn open_existing(path: &Path) -> Result<(FileBackend, Tree), Trouble> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    lock(&file)?;
    if file.metadata()?.len() == 0 {
        return Err(Trouble::Corrupted("it is empty".to_owned()));
    }
    // redb may panic on a file that was damaged after it was closed in order.
    let opened = catch_unwind(AssertUnwindSafe(|| {
        load(builder().create_with_backend(StoreFile { file, syncs: Arc::new(AtomicBool::new(true)) })?)
    }));
    opened.unwrap_or_else(|_| Err(Trouble::Corrupted("its pages do not fit together".to_owned())))
}

fn create(path: &Path) -> Result<(FileBackend, Tree), Trouble> {
    let building = beside(path);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&building)?;
    lock(&file)?;
    if path.try_exists()? {
        // Another process finished first, and this may be its file under the new name.
        drop(file);
        return open_existing(path);
    }
    file.set_len(0)?;
    let whole = file.try_clone()?;
    let syncs = Arc::new(AtomicBool::new(false));
    let created = initialize(builder().create_with_backend(StoreFile { file, syncs: syncs.clone() })?)?;
    whole.sync_all()?;
    syncs.store(true, Ordering::Release);
    std::fs::rename(&building, path)?;
    sync_directory_of(path)?;
    Ok(created)
}

/// Makes an empty database an empty store.
fn initialize(database: Database) -> Result<(FileBackend, Tree), Trouble> {
    let mut created = FileBackend { database, digest: 0, row: Vec::new() };
    let written = created.commit_all(0, &BTreeMap::new(), true);
    written.map_err(|error| Trouble::Io(io::Error::other(error)))?;
    Ok((created, Tree::new()))
}

/// Locks the file for as long as it is open.
fn lock(file: &File) -> Result<(), Trouble> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Trouble::InUse),
        Err(TryLockError::Error(error)) => Err(Trouble::Io(error)),
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

fn load(database: Database) -> Result<(FileBackend, Tree), Trouble> {
    let transaction = database.begin_read().map_err(corrupted)?;
    let numbers = transaction.open_table(NUMBERS)?;
    let number = |key: &str| -> Result<i64, Trouble> {
        let value =
            numbers.get(key)?.ok_or_else(|| Trouble::Corrupted(format!("the number {key:?} is missing")))?;
        Ok(value.value())
    };
    let format = number(FORMAT_KEY)?;
    if format != FORMAT {
        return Err(Trouble::UnknownFormat(format));
    }
    let (zxid, digest) = (number(ZXID_KEY)?, number(DIGEST_KEY)?);
    let mut records = Vec::new();
    let mut sum = 0i64;
    for row in transaction.open_table(ZNODES)?.iter()? {
        let (path, value) = row?;
        let path: Arc<str> = Arc::from(path.value());
        let record = record::decode(&path, value.value())
            .ok_or_else(|| Trouble::Corrupted(format!("the row of {path:?} is damaged")))?;
        sum = sum.wrapping_add(record::checksum_of(value.value()));
        records.push((path, record));
    }
    if sum != digest {
        return Err(Trouble::Corrupted("the rows do not add up".to_owned()));
    }
    let tree = Tree::from_records(zxid, records).map_err(corrupted)?;
    drop((numbers, transaction));
    Ok((FileBackend { database, digest, row: Vec::new() }, tree))
}

fn io_error(path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { path: path.to_owned(), source }
}

fn corrupted(error: impl std::fmt::Display) -> Trouble {
    Trouble::Corrupted(error.to_string())
}

impl Trouble {
    fn at(self, path: &Path) -> OpenError {
        let path = path.to_owned();
        match self {
            Self::InUse => OpenError::InUse { path },
            Self::Corrupted(reason) => OpenError::Corrupted { path, reason },
            Self::UnknownFormat(format) => OpenError::UnknownFormat { path, format },
            Self::Io(source) => OpenError::Io { path, source },
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // A file that is too short for what it should hold, or holds something else.
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => corrupted(error),
            _ => Self::Io(error),
        }
    }
}

impl From<StorageError> for Trouble {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Io(error) => error.into(),
            other => corrupted(other),
        }
    }
}

impl From<DatabaseError> for Trouble {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => Self::InUse,
            DatabaseError::Storage(error) => error.into(),
            other => corrupted(other),
        }
    }
}

impl From<TableError> for Trouble {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Storage(error) => error.into(),
            other => corrupted(other),
        }
    }
}

/// The file as redb uses it. Its syncs are skipped while it is being built. It is locked by its opener, not by redb.
#[derive(Debug)]
struct StoreFile {
    file: File,
    syncs: Arc<AtomicBool>,
}

impl StorageBackend for StoreFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.syncs.load(Ordering::Acquire) { self.file.sync_data() } else { Ok(()) }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }
}

//! Loads a file into a store. Nothing is written before the whole file was read and compared with the store.

use super::{Entry, Line, MAX_LINE_BYTES, TransferError, WINDOW, is_carried};
use crate::path;
use crate::store::{Blocking, CreateMode, Op, Request, Response, SessionId, Stat, Store, StoreError};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Read};

/// The most operations of one transaction.
const BATCH_OPS: usize = 100;

/// The most bytes of one transaction, well below ZooKeeper's default limit of 1 MiB. A larger value goes alone.
const BATCH_BYTES: usize = 512 * 1024;

/// The highest version that a znode is raised to, one write each.
const MAX_VERSION: i32 = 100_000;

/// What to do with a znode that holds other data than the file. One without data is filled in any case, and an ephemeral
/// one is always a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// Write nothing at all.
    Refuse,
    /// Write the data of the file.
    Replace,
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Znodes created, missing parents included.
    pub created: usize,
    /// Znodes that were there and were given the file's data.
    pub replaced: usize,
    /// Znodes that held the file's data already.
    pub unchanged: usize,
}

/// Loads those lines of `input` whose path is one of `roots` or below one; `/` is everything. Missing parents are created
/// with null data. An import that was interrupted can be repeated.
pub fn import(
    store: &dyn Store,
    input: &mut dyn BufRead,
    roots: &[&str],
    on_conflict: OnConflict,
) -> Result<Imported, TransferError> {
    let mut entries = parse(input)?;
    entries.retain(|path, _| is_carried(path) && roots.iter().any(|root| path::is_within(path, root)));
    let calls = Blocking::new(store);
    let parents = missing_parents(&calls, &entries)?;
    let (ops, mut imported) = plan(&calls, &entries, on_conflict)?;
    imported.created += parents.len();
    let create_parent =
        |path: &String| Op::Create { path: path.clone(), data: None, mode: CreateMode::Persistent };
    write(&calls, parents.iter().map(create_parent).chain(ops))?;
    for (path, entry) in &entries {
        raise_version(&calls, path, entry)?;
    }
    Ok(imported)
}

fn parse(input: &mut dyn BufRead) -> Result<BTreeMap<String, Entry>, TransferError> {
    let mut entries = BTreeMap::new();
    let mut text = Vec::new();
    for line in 1.. {
        let malformed = |reason: String| TransferError::Line { line, reason };
        text.clear();
        let limit = u64::try_from(MAX_LINE_BYTES).unwrap_or(u64::MAX);
        let length = (&mut *input).take(limit).read_until(b'\n', &mut text)?;
        if length == 0 {
            break;
        }
        if length == MAX_LINE_BYTES && !text.ends_with(b"\n") {
            return Err(malformed(format!("it is longer than {MAX_LINE_BYTES} bytes")));
        }
        if text.trim_ascii().is_empty() {
            continue;
        }
        let parsed: Line = serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
        let (path, entry) = parsed.into_entry().map_err(malformed)?;
        if entry.version.is_some_and(|version| !(0..=MAX_VERSION).contains(&version)) {
            return Err(malformed(format!("its version is not between 0 and {MAX_VERSION}")));
        }
        if entries.insert(path.clone(), entry).is_some() {
            return Err(malformed(format!("{path} is there twice")));
        }
    }
    Ok(entries)
}

/// The ancestors of entries that are neither in the file nor in the store, parents first.
fn missing_parents(
    calls: &Blocking<'_>,
    entries: &BTreeMap<String, Entry>,
) -> Result<BTreeSet<String>, TransferError> {
    let mut parents = BTreeSet::new();
    for path in entries.keys() {
        let mut path = path.as_str();
        while let Some(parent) = path::parent(path).filter(|parent| *parent != path::ROOT) {
            if entries.contains_key(parent) || !parents.insert(parent.to_owned()) {
                break;
            }
            path = parent;
        }
    }
    let paths: Vec<String> = parents.iter().cloned().collect();
    let answers = calls.pipeline(paths.iter().map(Request::exists).collect());
    for (path, answer) in paths.into_iter().zip(answers) {
        match answer {
            Ok(Response::Exists(Some(_))) => drop(parents.remove(&path)),
            Ok(_) => {}
            Err(error) => return Err(TransferError::Store { path, error }),
        }
    }
    Ok(parents)
}

/// Compares the file with the store: the writes that are needed, and what they amount to.
fn plan(
    calls: &Blocking<'_>,
    entries: &BTreeMap<String, Entry>,
    on_conflict: OnConflict,
) -> Result<(Vec<Op>, Imported), TransferError> {
    let (mut ops, mut imported, mut conflicts) = (Vec::new(), Imported::default(), Vec::new());
    let paths: Vec<(&String, &Entry)> = entries.iter().collect();
    for window in paths.chunks(WINDOW) {
        let answers = calls.pipeline(window.iter().map(|(path, _)| Request::get(*path)).collect());
        for ((path, entry), answer) in window.iter().zip(answers) {
            let path = (*path).clone();
            match comparison(entry, answer) {
                Ok(Comparison::Missing) => {
                    imported.created += 1;
                    ops.push(Op::Create { path, data: entry.data.clone(), mode: CreateMode::Persistent });
                }
                Ok(Comparison::Same) => imported.unchanged += 1,
                Ok(Comparison::Other(stat)) if stat.ephemeral_owner != SessionId::NONE => {
                    conflicts.push(path)
                }
                Ok(Comparison::Other(stat)) if stat.data_length > 0 && on_conflict == OnConflict::Refuse => {
                    conflicts.push(path);
                }
                Ok(Comparison::Other(stat)) => {
                    imported.replaced += 1;
                    ops.push(Op::SetData { path, data: entry.data.clone(), version: Some(stat.version) });
                }
                Err(error) => return Err(TransferError::Store { path, error }),
            }
        }
    }
    match conflicts.first() {
        Some(first) => Err(TransferError::Conflict { count: conflicts.len(), first: first.clone() }),
        None => Ok((ops, imported)),
    }
}

enum Comparison {
    Missing,
    Same,
    Other(Stat),
}

/// Null and empty are the same here: neither is data.
fn comparison(entry: &Entry, answer: Result<Response, StoreError>) -> Result<Comparison, StoreError> {
    match answer {
        Ok(Response::Data { data, stat }) => {
            let is_same = data.unwrap_or_default() == *entry.data.as_ref().unwrap_or(&Bytes::new());
            let is_persistent = stat.ephemeral_owner == SessionId::NONE;
            Ok(if is_same && is_persistent { Comparison::Same } else { Comparison::Other(stat) })
        }
        Ok(_) => Err(StoreError::Unexpected("an answer of another kind")),
        Err(error) if error.is_no_node() => Ok(Comparison::Missing),
        Err(error) => Err(error),
    }
}

/// Writes in transactions that an ensemble takes.
fn write(calls: &Blocking<'_>, ops: impl Iterator<Item = Op>) -> Result<(), TransferError> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for op in ops {
        let size = size(&op);
        if batch.len() == BATCH_OPS || (!batch.is_empty() && bytes + size > BATCH_BYTES) {
            write_batch(calls, std::mem::take(&mut batch))?;
            bytes = 0;
        }
        bytes += size;
        batch.push(op);
    }
    write_batch(calls, batch)
}

fn size(op: &Op) -> usize {
    let data = match op {
        Op::Create { data, .. } | Op::SetData { data, .. } => data.as_ref().map_or(0, Bytes::len),
        Op::Delete { .. } | Op::Check { .. } => 0,
    };
    op.path().len() + data
}

fn write_batch(calls: &Blocking<'_>, batch: Vec<Op>) -> Result<(), TransferError> {
    let paths: Vec<String> = batch.iter().map(|op| op.path().to_owned()).collect();
    calls.multi(batch).map(drop).map_err(|error| {
        let failed = if let StoreError::Multi { index, .. } = error { index } else { 0 };
        TransferError::Store { path: paths.get(failed).cloned().unwrap_or_default(), error }
    })
}

/// Writes the data again until the znode has the version that the file asks for.
fn raise_version(calls: &Blocking<'_>, path: &str, entry: &Entry) -> Result<(), TransferError> {
    let Some(wanted) = entry.version else { return Ok(()) };
    let store_error = |error| TransferError::Store { path: path.to_owned(), error };
    let found = calls.exists(path).map_err(store_error)?.map_or(0, |stat| stat.version);
    let op =
        |version| Op::SetData { path: path.to_owned(), data: entry.data.clone(), version: Some(version) };
    write(calls, (found..wanted).map(op))
}

//! Writes the tree of a store as a file.

use super::{Entry, Line, TransferError, WINDOW, is_carried};
use crate::path;
use crate::store::{Blocking, Request, Response, SessionId, Store, StoreError};
use crate::znode::broker_seqid;
use std::collections::BTreeMap;
use std::io::Write;

/// Writes `root` and everything below it to `out`; returns the number of znodes. What is deleted while the export runs
/// may be missing and what is created may be: stop the brokers first.
pub fn export(store: &dyn Store, root: &str, out: &mut dyn Write) -> Result<usize, TransferError> {
    let entries = read(store, root)?;
    for (path, entry) in &entries {
        serde_json::to_writer(&mut *out, &Line::new(path, entry)).map_err(std::io::Error::from)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(entries.len())
}

/// Reads the tree level by level.
fn read(store: &dyn Store, root: &str) -> Result<BTreeMap<String, Entry>, TransferError> {
    let calls = Blocking::new(store);
    let mut entries = BTreeMap::new();
    let mut level = vec![root.to_owned()];
    while !level.is_empty() {
        let mut next = Vec::new();
        for paths in level.chunks(WINDOW) {
            let requests = paths.iter().flat_map(|path| [Request::get(path), Request::children(path)]);
            let mut answers = calls.pipeline(requests.collect()).into_iter();
            for path in paths {
                let (Some(data), Some(children)) = (answers.next(), answers.next()) else { break };
                if let Some(entry) = entry(path, data)? {
                    next.extend(children_of(path, children)?);
                    entries.insert(path.clone(), entry);
                }
            }
        }
        level = next;
    }
    entries.remove(path::ROOT);
    Ok(entries)
}

/// The znode, unless it is an ephemeral or was deleted meanwhile.
fn entry(path: &str, answer: Result<Response, StoreError>) -> Result<Option<Entry>, TransferError> {
    match answer {
        Ok(Response::Data { data, stat }) if stat.ephemeral_owner == SessionId::NONE => {
            let version = Some(stat.version).filter(|version| path == broker_seqid::PATH && *version > 0);
            Ok(Some(Entry { data, version }))
        }
        Ok(_) => Ok(None),
        Err(error) if error.is_no_node() => Ok(None),
        Err(error) => Err(TransferError::Store { path: path.to_owned(), error }),
    }
}

fn children_of(parent: &str, answer: Result<Response, StoreError>) -> Result<Vec<String>, TransferError> {
    match answer {
        Ok(Response::Children { names, .. }) => {
            Ok(names.iter().map(|name| path::child(parent, name)).filter(|path| is_carried(path)).collect())
        }
        Ok(_) => Ok(Vec::new()),
        Err(error) if error.is_no_node() => Ok(Vec::new()),
        Err(error) => Err(TransferError::Store { path: parent.to_owned(), error }),
    }
}

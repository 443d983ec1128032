//! A tree as a file, to carry it from one store to another: the way from a single node to an ensemble and back.
//!
//! One JSON object a line, parents before children: `{"path":"/cluster/id","value":"…"}`. A value that is not text
//! stands as `"base64"` instead; a znode with null data has neither. Ephemeral znodes live by a session and are left
//! out, and so are versions and times, which belong to a store. ZooKeeper's own `/zookeeper` is left out, too.

use std::io::{self, BufRead, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::store::{Blocking, CreateMode, MAX_DATA_BYTES, SessionId, Store, StoreError, Value};

/// The longest line that is read, in bytes: a path, and the largest value in base64.
const MAX_LINE_BYTES: u64 = 2 * MAX_DATA_BYTES as u64;
/// What ZooKeeper keeps for itself.
const RESERVED: &str = "/zookeeper";

/// Why a tree was not carried.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The store refused.
    #[error("{path}: {error}")]
    Store {
        /// The znode.
        path: String,
        /// What the store says.
        error: StoreError,
    },
    /// The file cannot be read or written.
    #[error("the file cannot be used: {0}")]
    File(#[from] io::Error),
    /// A line is none of an export.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// What an import does with a znode that is there already and has another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It keeps its value.
    Keep,
    /// It takes the value of the file.
    Replace,
}

#[derive(Serialize, Deserialize)]
struct Line {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl Line {
    fn new(path: &str, data: Option<&[u8]>) -> Self {
        let text = data.map(std::str::from_utf8);
        let (value, base64) = match (text, data) {
            (Some(Ok(text)), _) => (Some(text.to_owned()), None),
            (Some(Err(_)), Some(data)) => (None, Some(STANDARD.encode(data))),
            _ => (None, None),
        };
        Self { path: path.to_owned(), value, base64 }
    }

    fn data(self) -> Result<Option<Bytes>, String> {
        match (self.value, self.base64) {
            (Some(_), Some(_)) => Err("a line has a value or base64, not both".to_owned()),
            (Some(text), None) => Ok(Some(Bytes::from(text.into_bytes()))),
            (None, Some(text)) => {
                STANDARD.decode(text).map(|data| Some(data.into())).map_err(|e| e.to_string())
            }
            (None, None) => Ok(None),
        }
    }
}

/// Writes the persistent znodes of `store`; returns how many.
///
/// # Errors
/// If the store or the output fails. Znodes that vanish meanwhile are left out.
pub fn export(store: &dyn Store, output: &mut dyn Write) -> Result<usize, TransferError> {
    let calls = Blocking::new(store);
    let mut count = 0;
    // Depth first, children in order of their names: the deepest is on top.
    let mut rest = vec![String::from("/")];
    while let Some(path) = rest.pop() {
        let failed = |error| TransferError::Store { path: path.clone(), error };
        if path != "/" {
            let Some((data, stat)) = calls.find(&path).map_err(failed)? else { continue };
            if stat.ephemeral_owner != SessionId::NONE {
                continue;
            }
            serde_json::to_writer(&mut *output, &Line::new(&path, data.as_deref()))
                .map_err(io::Error::from)?;
            output.write_all(b"\n")?;
            count += 1;
        }
        match calls.children(&path) {
            Ok(names) => {
                let parent = if path == "/" { "" } else { path.as_str() };
                let children = names.iter().rev().map(|name| format!("{parent}/{name}"));
                rest.extend(children.filter(|child| child != RESERVED));
            }
            Err(error) if error.is_no_node() => {}
            Err(error) => return Err(failed(error)),
        }
    }
    output.flush()?;
    Ok(count)
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Znodes that were made.
    pub created: usize,
    /// Znodes whose value was replaced.
    pub replaced: usize,
    /// Znodes that were left as they are.
    pub kept: usize,
}

/// Makes the znodes of an export in `store`, parents included.
///
/// # Errors
/// At the first line that cannot be read or done; what came before it stays.
pub fn import(
    store: &dyn Store,
    input: &mut dyn BufRead,
    existing: Existing,
) -> Result<Imported, TransferError> {
    let mut imported = Imported::default();
    let mut number = 0;
    while let Some(text) = next_line(input)? {
        number += 1;
        if text.trim_ascii().is_empty() {
            continue;
        }
        let wrong = |reason: String| TransferError::Line { line: number, reason };
        let line: Line = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        let path = line.path.clone();
        let data = line.data().map_err(wrong)?;
        put(store, &path, data, existing, &mut imported)
            .map_err(|error| TransferError::Store { path, error })?;
    }
    Ok(imported)
}

fn next_line(input: &mut dyn BufRead) -> Result<Option<Vec<u8>>, TransferError> {
    let mut text = Vec::new();
    let read = io::Read::take(&mut *input, MAX_LINE_BYTES).read_until(b'\n', &mut text)?;
    if text.len() as u64 >= MAX_LINE_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is longer than any znode").into());
    }
    Ok((read > 0).then_some(text))
}

fn put(
    store: &dyn Store,
    path: &str,
    data: Option<Bytes>,
    existing: Existing,
    imported: &mut Imported,
) -> Result<(), StoreError> {
    let calls = Blocking::new(store);
    match calls.find(path)? {
        Some((found, _)) if existing == Existing::Keep || found == data => imported.kept += 1,
        Some(_) => {
            calls.set(path, Value(data), None)?;
            imported.replaced += 1;
        }
        None => {
            if let Some(parent) = crate::path::parent(path).filter(|parent| *parent != "/") {
                calls.ensure_path(parent)?;
            }
            calls.create(path, Value(data), CreateMode::Persistent)?;
            imported.created += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::embedded::EmbeddedStore;

    fn filled() -> (EmbeddedStore, impl Store) {
        let store = EmbeddedStore::open_memory().unwrap();
        let session = store.session(Arc::new(|_| {}));
        let calls = Blocking::new(&session);
        calls.ensure_path("/brokers/topics").unwrap();
        calls.create("/brokers/topics/t", "{\"a\":1}", CreateMode::Persistent).unwrap();
        calls.create("/brokers/ids", Value::NULL, CreateMode::Persistent).unwrap();
        calls.create("/brokers/ids/0", "gone", CreateMode::Ephemeral).unwrap();
        calls.create("/binary", vec![0xff, 0], CreateMode::Persistent).unwrap();
        calls.create("/empty", "", CreateMode::Persistent).unwrap();
        (store, session)
    }

    fn exported(store: &dyn Store) -> String {
        let mut file = Vec::new();
        export(store, &mut file).unwrap();
        String::from_utf8(file).unwrap()
    }

    #[test]
    fn an_export_has_one_line_for_each_persistent_znode_parents_first() {
        let (_store, session) = filled();
        assert_eq!(
            exported(&session),
            concat!(
                "{\"path\":\"/binary\",\"base64\":\"/wA=\"}\n",
                "{\"path\":\"/brokers\"}\n",
                "{\"path\":\"/brokers/ids\"}\n",
                "{\"path\":\"/brokers/topics\"}\n",
                "{\"path\":\"/brokers/topics/t\",\"value\":\"{\\\"a\\\":1}\"}\n",
                "{\"path\":\"/empty\",\"value\":\"\"}\n",
            )
        );
    }

    #[test]
    fn an_import_makes_the_same_tree_and_a_second_one_changes_nothing() {
        let (_store, session) = filled();
        let file = exported(&session);
        let other = EmbeddedStore::open_memory().unwrap();
        let other_session = other.session(Arc::new(|_| {}));
        let first = import(&other_session, &mut file.as_bytes(), Existing::Replace).unwrap();
        assert_eq!(first, Imported { created: 6, replaced: 0, kept: 0 });
        assert_eq!(exported(&other_session), file);
        let second = import(&other_session, &mut file.as_bytes(), Existing::Replace).unwrap();
        assert_eq!(second, Imported { created: 0, replaced: 0, kept: 6 });
    }

    #[test]
    fn a_znode_that_is_there_is_kept_or_replaced_as_asked() {
        let (_store, session) = filled();
        let line = b"{\"path\":\"/brokers/topics/t\",\"value\":\"new\"}\n";
        import(&session, &mut &line[..], Existing::Keep).unwrap();
        assert!(exported(&session).contains("{\\\"a\\\":1}"));
        import(&session, &mut &line[..], Existing::Replace).unwrap();
        assert!(exported(&session).contains("\"value\":\"new\""));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        let (_store, session) = filled();
        let broken = b"{\"path\":\"/a\"}\n{\"path\":1}\n";
        let error = import(&session, &mut &broken[..], Existing::Keep).unwrap_err();
        assert!(matches!(error, TransferError::Line { line: 2, .. }), "{error}");
        let both = b"{\"path\":\"/b\",\"value\":\"\",\"base64\":\"\"}";
        assert!(import(&session, &mut &both[..], Existing::Keep).is_err());
    }
}

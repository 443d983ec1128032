//! A file beside the data that tells the next process which session this one had, so that it can end it.
//!
//! A broker that was killed leaves a session that lives on until its timeout, and with it a registration that keeps its
//! successor out. The successor on the same data proves by id and password that the session is its own. The id of the
//! machine's boot stands there, too: what a process wrote without a sync is still there as long as the machine runs.
//!
//! The file is readable by its owner alone, and locked while its process lives, so that nobody takes a living session for
//! a predecessor's. It is written in place and not synced: after a lost power, or a kill in the middle of a write, it says
//! nothing, which is as good as another boot.

use super::SessionCredentials;
use crate::store::SessionId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// The name of the file in a log directory. Kafka takes a plain file there for nothing of its own.
pub const SESSION_FILE: &str = "blumfeld-zookeeper-session";

const VERSION: i32 = 1;
/// The longest file that is read, in bytes.
const MAX_BYTES: usize = 4096;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The id of the machine's present boot; empty where the system tells none.
pub fn boot_id() -> String {
    fs::read_to_string(BOOT_ID).map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// What the file tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// The boot of the machine in which the session was begun; empty where the system tells none.
    pub boot_id: String,
    /// The session.
    pub credentials: SessionCredentials,
    /// Whether the logs beside the file were known to lack nothing, or were not relied on, at some time in that boot. A
    /// process that waits for this may die before it comes true.
    pub logs_are_whole: bool,
}

impl SessionRecord {
    /// Whether the machine has been up ever since.
    pub fn is_of_boot(&self, boot_id: &str) -> bool {
        !boot_id.is_empty() && self.boot_id == boot_id
    }
}

#[derive(Serialize, Deserialize)]
struct Json {
    version: i32,
    boot_id: String,
    session_id: String,
    password: String,
    logs_are_whole: bool,
}

/// The file, held by this process.
#[derive(Debug)]
pub struct SessionFile(File);

impl SessionFile {
    /// Makes the file if there is none, and locks it for as long as the value lives; `None` if another process holds it.
    ///
    /// # Errors
    /// As the system says.
    pub fn hold(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// What the file tells; `None` if it was made just now, or tells nothing that is understood.
    ///
    /// # Errors
    /// As the system says.
    pub fn read(&self) -> io::Result<Option<SessionRecord>> {
        let mut bytes = vec![0; MAX_BYTES];
        let mut length = 0;
        while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match self.0.read_at(rest, u64::try_from(length).unwrap_or(u64::MAX))? {
                0 => break,
                read => length += read,
            }
        }
        bytes.truncate(length);
        Ok(parse(&bytes))
    }

    /// Makes the file tell `record`.
    ///
    /// # Errors
    /// As the system says.
    pub fn keep(&self, record: &SessionRecord) -> io::Result<()> {
        let json = Json {
            version: VERSION,
            boot_id: record.boot_id.clone(),
            session_id: format!("{:#x}", record.credentials.id.0),
            password: STANDARD.encode(&record.credentials.password),
            logs_are_whole: record.logs_are_whole,
        };
        let mut bytes = serde_json::to_vec(&json)?;
        bytes.push(b'\n');
        self.0.write_all_at(&bytes, 0)?;
        self.0.set_len(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
    }
}

fn parse(bytes: &[u8]) -> Option<SessionRecord> {
    let json: Json = serde_json::from_slice(bytes).ok()?;
    let id = u64::from_str_radix(json.session_id.strip_prefix("0x")?, 16).ok()?;
    let password = STANDARD.decode(&json.password).ok()?;
    (json.version == VERSION).then(|| SessionRecord {
        boot_id: json.boot_id,
        credentials: SessionCredentials { id: SessionId(id.cast_signed()), password: Bytes::from(password) },
        logs_are_whole: json.logs_are_whole,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn record(boot_id: &str) -> SessionRecord {
        let credentials = SessionCredentials {
            id: SessionId(-0x7eff_0000_0000_0001),
            password: Bytes::from_static(&[0, 255, 7, 9]),
        };
        SessionRecord { boot_id: boot_id.to_owned(), credentials, logs_are_whole: boot_id.len() > 5 }
    }

    #[test]
    fn a_record_is_read_as_it_was_kept_and_by_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SESSION_FILE);
        let file = SessionFile::hold(&path).unwrap().unwrap();
        assert_eq!(file.read().unwrap(), None);
        for boot_id in ["a long name of a boot", "short"] {
            file.keep(&record(boot_id)).unwrap();
            assert_eq!(file.read().unwrap(), Some(record(boot_id)));
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_is_held_by_one_and_left_to_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SESSION_FILE);
        let file = SessionFile::hold(&path).unwrap().unwrap();
        file.keep(&record("boot")).unwrap();
        assert!(SessionFile::hold(&path).unwrap().is_none());
        drop(file);
        assert_eq!(SessionFile::hold(&path).unwrap().unwrap().read().unwrap(), Some(record("boot")));
    }

    #[test]
    fn a_file_that_is_not_understood_tells_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SESSION_FILE);
        for text in [
            "{",
            "{}",
            r#"{"version":2,"boot_id":"","session_id":"0x1","password":"","logs_are_whole":true}"#,
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(SessionFile::hold(&path).unwrap().unwrap().read().unwrap(), None, "{text}");
        }
    }

    #[test]
    fn a_boot_without_a_name_is_like_no_other() {
        assert!(record(&boot_id()).is_of_boot(&boot_id()), "this machine's has one");
        assert!(!record("another").is_of_boot(&boot_id()));
        assert!(!record("").is_of_boot(""));
    }
}

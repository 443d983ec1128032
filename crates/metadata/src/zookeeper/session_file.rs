//! A file beside the data that tells the next process which session this one had, so that it can end it.
//!
//! A broker that was killed leaves a session that lives on until its timeout, and with it a registration that keeps its
//! successor out. The successor on the same data proves by id and password that the session is its own. The id of the
//! machine's boot stands there, too: what a process wrote without a sync is still there as long as the machine runs. The
//! file is readable by its owner alone; it is not synced, since it says nothing after a lost power but "another boot".

use super::SessionCredentials;
use crate::store::SessionId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The name of the file in a log directory. Kafka takes a plain file there for nothing of its own.
pub const SESSION_FILE: &str = "blumfeld-zookeeper-session";

const VERSION: i32 = 1;
/// The longest file that is read, in bytes.
const MAX_BYTES: u64 = 4096;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The id of the machine's present boot; `None` where the system tells none.
pub fn boot_id() -> Option<String> {
    let id = fs::read_to_string(BOOT_ID).ok()?;
    let id = id.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// What the file tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// The boot of the machine in which the session was begun; empty where the system tells none.
    pub boot_id: String,
    /// The session.
    pub credentials: SessionCredentials,
}

#[derive(Serialize, Deserialize)]
struct Json {
    version: i32,
    boot_id: String,
    session_id: String,
    password: String,
}

impl SessionRecord {
    /// Writes the file `path` anew: it is the old one or the new one, never a part.
    ///
    /// # Errors
    /// As the system says.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let json = Json {
            version: VERSION,
            boot_id: self.boot_id.clone(),
            session_id: format!("{:#x}", self.credentials.id.0),
            password: STANDARD.encode(&self.credentials.password),
        };
        let temporary = path.with_extension("tmp");
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        serde_json::to_writer(&mut file, &json)?;
        file.write_all(b"\n")?;
        drop(file);
        fs::rename(&temporary, path)
    }

    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// As the system says; [`io::ErrorKind::InvalidData`] if it is no such file.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text)?;
        let malformed = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
        let json: Json = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        if json.version != VERSION {
            return Err(malformed(format!("its version is {}", json.version)));
        }
        let id = json.session_id.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let id = id.ok_or_else(|| malformed(format!("{:?} is no session id", json.session_id)))?;
        let password = STANDARD.decode(&json.password).map_err(|error| malformed(error.to_string()))?;
        Ok(Some(Self {
            boot_id: json.boot_id,
            credentials: SessionCredentials {
                id: SessionId(id.cast_signed()),
                password: Bytes::from(password),
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn record() -> SessionRecord {
        let credentials = SessionCredentials {
            id: SessionId(-0x7eff_0000_0000_0001),
            password: Bytes::from_static(&[0, 255, 7, 9]),
        };
        SessionRecord { boot_id: "f00d".to_owned(), credentials }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_by_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SESSION_FILE);
        assert_eq!(SessionRecord::read(&path).unwrap(), None);
        for boot_id in ["before", "f00d"] {
            SessionRecord { boot_id: boot_id.to_owned(), ..record() }.write(&path).unwrap();
        }
        assert_eq!(SessionRecord::read(&path).unwrap(), Some(record()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_file_that_is_none_of_ours_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SESSION_FILE);
        for text in ["", "{}", r#"{"version":2,"boot_id":"","session_id":"0x1","password":""}"#] {
            fs::write(&path, text).unwrap();
            assert_eq!(SessionRecord::read(&path).unwrap_err().kind(), io::ErrorKind::InvalidData, "{text}");
        }
    }

    #[test]
    fn the_boot_of_this_machine_has_an_id() {
        assert_eq!(boot_id(), boot_id());
        assert!(boot_id().is_some());
    }
}

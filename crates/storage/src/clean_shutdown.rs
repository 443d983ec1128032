//! The file `.kafka_cleanshutdown`: all logs of the directory were closed in order, so a start may trust
//! their ends and indexes. Only its existence counts.
//!
//! It is removed before any log is loaded: a crash during the load must not look like a clean stop
//! (KAFKA-10471).

use std::io;
use std::path::{Path, PathBuf};

use wire::types::BrokerEpoch;

use crate::disk::Disk;
use crate::disk::atomic::{Durability, write_atomically};
use crate::names::CLEAN_SHUTDOWN;

fn path(log_dir: &Path) -> PathBuf {
    log_dir.join(CLEAN_SHUTDOWN)
}

/// Removes the marker, durably; returns whether it was there. If this fails the directory must not be used.
pub fn take_clean_shutdown(disk: &dyn Disk, log_dir: &Path) -> io::Result<bool> {
    match disk.remove_file(&path(log_dir)) {
        Ok(()) => {
            disk.sync_dir(log_dir)?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes the marker, durably: the last act on a directory whose logs are all closed and flushed.
pub fn write_clean_shutdown(disk: &dyn Disk, log_dir: &Path, epoch: BrokerEpoch) -> io::Result<()> {
    let content = format!("{{\"version\":0,\"brokerEpoch\":{epoch}}}");
    write_atomically(disk, &path(log_dir), content.as_bytes(), Durability::Synced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::OpenOptions;
    use crate::disk::atomic::read_file;
    use crate::disk::crash::{CrashDisk, CrashMode, Fault, Operation};

    const DIR: &str = "/";

    #[test]
    fn the_marker_is_found_once() {
        let disk = CrashDisk::new();
        assert!(!take_clean_shutdown(&disk, Path::new(DIR)).unwrap());
        write_clean_shutdown(&disk, Path::new(DIR), BrokerEpoch(25)).unwrap();
        let content = read_file(&disk, Path::new("/.kafka_cleanshutdown"), 100).unwrap().unwrap();
        assert_eq!(content, br#"{"version":0,"brokerEpoch":25}"#);
        assert!(take_clean_shutdown(&disk, Path::new(DIR)).unwrap());
        assert!(!take_clean_shutdown(&disk, Path::new(DIR)).unwrap());
    }

    #[test]
    fn an_empty_marker_of_an_older_broker_counts_too() {
        let disk = CrashDisk::new();
        disk.open(Path::new("/.kafka_cleanshutdown"), OpenOptions::CREATE).unwrap();
        assert!(take_clean_shutdown(&disk, Path::new(DIR)).unwrap());
    }

    #[test]
    fn a_taken_marker_does_not_come_back_and_a_written_one_does_not_go_with_the_power() {
        let disk = CrashDisk::new();
        write_clean_shutdown(&disk, Path::new(DIR), BrokerEpoch(-1)).unwrap();
        let disk = disk.crash(CrashMode::LoseUnsynced);
        assert!(take_clean_shutdown(&disk, Path::new(DIR)).unwrap());
        let disk = disk.crash(CrashMode::LoseUnsynced);
        assert!(!take_clean_shutdown(&disk, Path::new(DIR)).unwrap());
    }

    #[test]
    fn a_marker_that_cannot_be_removed_is_an_error() {
        let disk = CrashDisk::new();
        write_clean_shutdown(&disk, Path::new(DIR), BrokerEpoch(1)).unwrap();
        let (operation, kind) = (Operation::Remove, io::ErrorKind::ReadOnlyFilesystem);
        disk.fail(Fault { operation, path_contains: "clean".into(), skip: 0, times: 1, kind });
        assert_eq!(take_clean_shutdown(&disk, Path::new(DIR)).unwrap_err().kind(), kind);
    }
}

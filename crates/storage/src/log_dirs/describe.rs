//! What lies where, for DescribeLogDirs (KIP-113, KIP-827).

use std::path::PathBuf;

use wire::types::TopicPartition;

use super::LogDirs;

/// A log directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDirReport {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it can be used.
    pub is_online: bool,
    /// The size of its file system and what may still be written there, in bytes, if known.
    pub space: Option<(u64, u64)>,
    /// Its logs, by partition; none if it is offline.
    pub logs: Vec<LogReport>,
}

/// A log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogReport {
    /// The partition.
    pub partition: TopicPartition,
    /// The bytes of its batches.
    pub size_bytes: u64,
    /// How far its end is behind the high watermark, in records.
    pub offset_lag: i64,
}

impl LogDirs {
    /// All directories, in the order they were given.
    pub fn describe(&self) -> Vec<LogDirReport> {
        self.dirs
            .iter()
            .map(|dir| {
                let is_online = dir.health.is_online();
                let logs = if is_online { self.logs_of(dir) } else { Vec::new() };
                // A file system that does not tell its size is no failed one.
                let space = if is_online { self.disk.space(dir.path()).ok() } else { None };
                LogDirReport {
                    path: dir.path().to_path_buf(),
                    is_online,
                    space: space.map(|space| (space.total, space.usable)),
                    logs: logs
                        .iter()
                        .map(|log| {
                            let positions = log.positions();
                            let lag = positions.high_watermark.0.saturating_sub(positions.log_end.0);
                            LogReport {
                                partition: log.partition().clone(),
                                size_bytes: log.size_bytes(),
                                offset_lag: lag.max(0),
                            }
                        })
                        .collect(),
                }
            })
            .collect()
    }
}

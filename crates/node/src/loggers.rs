//! The levels of the process's loggers, which tools describe and alter while it runs (KIP-412). Nothing of it is stored:
//! a restart begins with what the process is started with. Names are those at the end of log lines.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The logger that all others inherit from.
pub const ROOT: &str = "root";

/// What the controller has changed, under Kafka's name.
pub const STATE_CHANGES: &str = "state.change.logger";

/// The loggers that have a level of their own when they are given one. A name stands for all that begins with it.
pub const NAMES: [&str; 15] = [
    "blumfeld",
    "kernel",
    "metadata",
    "net",
    "node",
    "node.api",
    "node.append",
    "node.control",
    "node.drive",
    "node.drive.controller",
    "node.drive.fetchers",
    "node.partition",
    "server",
    STATE_CHANGES,
    "storage",
];

/// A level, in Kafka's words. FATAL shows nothing, since nothing here is fatal but a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// What developers look for.
    Debug,
    /// What happens.
    Info,
    /// What is odd.
    Warn,
    /// What has failed.
    Error,
    /// Nothing.
    Fatal,
}

impl LogLevel {
    /// All levels, the finest first.
    pub const ALL: [Self; 6] = [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error, Self::Fatal];

    /// The level of exactly this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Kafka's name of the level.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
        }
    }
}

/// The levels at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLevels {
    /// Of the root logger.
    pub root: LogLevel,
    /// Of those that have a level of their own, by name.
    pub own: BTreeMap<String, LogLevel>,
}

impl LogLevels {
    /// The level that a logger goes by: its own, else that of the nearest logger above it.
    #[must_use]
    pub fn of(&self, logger: &str) -> LogLevel {
        let mut name = logger;
        loop {
            if let Some(level) = self.own.get(name) {
                return *level;
            }
            match name.rsplit_once('.') {
                Some((above, _)) => name = above,
                None => return self.root,
            }
        }
    }

    fn set(&mut self, logger: &str, level: Option<LogLevel>) {
        match level {
            Some(level) if logger == ROOT => self.root = level,
            Some(level) => drop(self.own.insert(logger.to_owned(), level)),
            None => drop(self.own.remove(logger)),
        }
    }
}

/// Whether there is a logger of this name.
#[must_use]
pub fn exists(name: &str) -> bool {
    name == ROOT || NAMES.contains(&name)
}

/// Where the lines of a logger come from, in the words of `tracing`.
#[must_use]
pub fn target(name: &str) -> String {
    if name == STATE_CHANGES { name.to_owned() } else { name.replace('.', "::") }
}

type Apply = Box<dyn Fn(&LogLevels) + Send + Sync>;

/// The loggers of a process. Several brokers of one process share them.
pub struct Loggers {
    levels: Mutex<LogLevels>,
    apply: Apply,
}

impl Loggers {
    /// Loggers with these levels; `apply` puts other ones in force.
    pub fn new(levels: LogLevels, apply: impl Fn(&LogLevels) + Send + Sync + 'static) -> Self {
        Self { levels: Mutex::new(levels), apply: Box::new(apply) }
    }

    /// The levels as they are.
    #[must_use]
    pub fn levels(&self) -> LogLevels {
        self.lock().clone()
    }

    /// Gives loggers levels of their own, or takes these away (`None`).
    pub fn change<'a>(&self, changes: impl IntoIterator<Item = (&'a str, Option<LogLevel>)>) {
        // Held to the end, so that the last who changes them is the last whose levels are put in force.
        let mut levels = self.lock();
        for (logger, level) in changes {
            levels.set(logger, level);
        }
        (self.apply)(&levels);
    }

    fn lock(&self) -> MutexGuard<'_, LogLevels> {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Loggers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loggers").field("levels", &self.levels()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_logger_goes_by_its_own_level_or_by_that_of_the_nearest_above_it() {
        let mut levels = LogLevels { root: LogLevel::Info, own: BTreeMap::new() };
        levels.set("node", Some(LogLevel::Warn));
        levels.set("node.drive.controller", Some(LogLevel::Trace));
        let of: Vec<_> =
            ["storage", "node.api", "node.drive", "node.drive.controller"].map(|it| levels.of(it)).into();
        assert_eq!(of, [LogLevel::Info, LogLevel::Warn, LogLevel::Warn, LogLevel::Trace]);
        levels.set("node.drive.controller", None);
        levels.set(ROOT, Some(LogLevel::Error));
        assert_eq!((levels.of("node.drive.controller"), levels.of("net")), (LogLevel::Warn, LogLevel::Error));
    }

    #[test]
    fn levels_have_kafkas_names_and_no_others() {
        for level in LogLevel::ALL {
            assert_eq!(LogLevel::parse(level.name()), Some(level));
        }
        for name in ["info", "OFF", "ALL", ""] {
            assert_eq!(LogLevel::parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_change_is_put_in_force_as_a_whole() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let levels = LogLevels { root: LogLevel::Info, own: BTreeMap::new() };
        let loggers = Loggers::new(levels, move |levels| sink.lock().unwrap().push(levels.clone()));
        loggers.change([("net", Some(LogLevel::Debug)), (ROOT, Some(LogLevel::Warn))]);
        assert_eq!(*seen.lock().unwrap(), [loggers.levels()]);
        assert_eq!(loggers.levels().of("net"), LogLevel::Debug);
        assert_eq!(loggers.levels().of("node"), LogLevel::Warn);
    }
}

//! The topics of a run, and what clients make of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What may be expected of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// Three replicas, two of them in sync for a write, clean elections: what is confirmed stays.
    Safe,
    /// Two replicas, one of them in sync for a write, clean elections.
    Pair,
    /// Three replicas, unclean elections: availability first.
    Unclean,
    /// As safe as any, but what was read is deleted.
    Trimmed,
    /// As safe as any, but only the last record of each key stays.
    Compacted,
    /// As safe as any, for a while.
    Doomed,
}

impl Kind {
    /// What topics of this kind are called, or begin with.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Pair => "pair",
            Self::Unclean => "unclean",
            Self::Trimmed => "trimmed",
            Self::Compacted => "compacted",
            Self::Doomed => "doomed",
        }
    }

    /// The number of replicas.
    pub(crate) fn replicas(self) -> i16 {
        if self == Self::Pair { 2 } else { 3 }
    }

    /// What is set on it.
    pub(crate) fn configs(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Safe | Self::Doomed => vec![("min.insync.replicas", "2")],
            Self::Trimmed => vec![("min.insync.replicas", "2"), ("segment.bytes", "1024")],
            Self::Compacted => vec![
                ("min.insync.replicas", "2"),
                ("segment.bytes", "1024"),
                ("cleanup.policy", "compact"),
                // Tombstones stay for the usual day: a replica that is away for longer than they stay keeps what they bury.
                ("min.cleanable.dirty.ratio", "0.1"),
            ],
            Self::Pair => Vec::new(),
            Self::Unclean => vec![("unclean.leader.election.enable", "true")],
        }
    }

    /// Whether what was confirmed or read once stays.
    pub(crate) fn is_clean(self) -> bool {
        self != Self::Unclean
    }
}

/// How far a topic is, as its clients know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its creation was asked for.
    Wanted,
    /// It is there.
    There,
    /// Its deletion was asked for.
    Leaving,
    /// It is gone.
    Gone,
}

/// A topic.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) partitions: i32,
    pub(crate) stage: Stage,
}

/// All topics of a run, in the order in which they were wanted.
#[derive(Debug, Default)]
pub(crate) struct Topics(Mutex<Vec<Topic>>);

impl Topics {
    fn lock(&self) -> MutexGuard<'_, Vec<Topic>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new topic is wanted.
    pub(crate) fn want(&self, name: &str, kind: Kind, partitions: i32) -> Topic {
        let topic = Topic { name: name.to_owned(), kind, partitions, stage: Stage::Wanted };
        self.lock().push(topic.clone());
        topic
    }

    /// A topic as it is now.
    pub(crate) fn get(&self, name: &str) -> Option<Topic> {
        self.lock().iter().find(|topic| topic.name == name).cloned()
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Topic> {
        self.lock().clone()
    }

    /// Changes one.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Topic)) {
        if let Some(topic) = self.lock().iter_mut().find(|topic| topic.name == name) {
            change(topic);
        }
    }

    /// Whether a topic is of this kind.
    pub(crate) fn is_of(&self, name: &str, kind: Kind) -> bool {
        self.get(name).is_some_and(|topic| topic.kind == kind)
    }

    /// Whether a topic is there and not to be deleted.
    pub(crate) fn is_there(&self, name: &str) -> bool {
        self.get(name).is_some_and(|topic| topic.stage == Stage::There)
    }
}

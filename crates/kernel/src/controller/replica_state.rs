//! The states of one replica in the eyes of the controller, and which may follow which.

/// What the controller wants of a replica, or knows of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReplicaState {
    /// Not yet, or no longer, a replica.
    #[default]
    NonExistent,
    /// Assigned, but told nothing yet; it can only become a follower.
    New,
    /// Its broker is registered and its log directory works.
    Online,
    /// Its broker is gone, its log directory failed, or it was told to stop.
    Offline,
    /// It was told to delete its log.
    DeletionStarted,
    /// It deleted its log.
    DeletionSuccessful,
    /// It cannot delete its log now.
    DeletionIneligible,
}

impl ReplicaState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::NonExistent,
        Self::New,
        Self::Online,
        Self::Offline,
        Self::DeletionStarted,
        Self::DeletionSuccessful,
        Self::DeletionIneligible,
    ];

    /// The states from which a replica may come into this one.
    pub fn legal_previous(self) -> &'static [Self] {
        match self {
            Self::New => &[Self::NonExistent],
            Self::Online | Self::Offline => {
                &[Self::New, Self::Online, Self::Offline, Self::DeletionIneligible]
            }
            Self::DeletionStarted => &[Self::Offline],
            Self::DeletionSuccessful => &[Self::DeletionStarted],
            Self::DeletionIneligible => &[Self::Offline, Self::DeletionStarted],
            Self::NonExistent => &[Self::DeletionSuccessful],
        }
    }

    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::NonExistent => "NonExistentReplica",
            Self::New => "NewReplica",
            Self::Online => "OnlineReplica",
            Self::Offline => "OfflineReplica",
            Self::DeletionStarted => "ReplicaDeletionStarted",
            Self::DeletionSuccessful => "ReplicaDeletionSuccessful",
            Self::DeletionIneligible => "ReplicaDeletionIneligible",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ReplicaState;
    use super::ReplicaState::*;

    #[test]
    fn every_pair_of_states_is_legal_or_not_as_the_table_says() {
        #[rustfmt::skip]
        let legal: [(ReplicaState, [u8; 7]); 7] = [
            // from        to: NonExistent New Online Offline Started Successful Ineligible
            (NonExistent,        [0, 1, 0, 0, 0, 0, 0]),
            (New,                [0, 0, 1, 1, 0, 0, 0]),
            (Online,             [0, 0, 1, 1, 0, 0, 0]),
            (Offline,            [0, 0, 1, 1, 1, 0, 1]),
            (DeletionStarted,    [0, 0, 0, 0, 0, 1, 1]),
            (DeletionSuccessful, [1, 0, 0, 0, 0, 0, 0]),
            (DeletionIneligible, [0, 0, 1, 1, 0, 0, 0]),
        ];
        for (from, row) in legal {
            for (to, expected) in ReplicaState::ALL.into_iter().zip(row) {
                assert_eq!(to.legal_previous().contains(&from), expected == 1, "{from:?} -> {to:?}");
            }
        }
    }
}

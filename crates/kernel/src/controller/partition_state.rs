//! The states of one partition in the eyes of the controller, and which may follow which.

/// Whether a partition can be led.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartitionState {
    /// Not yet, or no longer, there.
    #[default]
    NonExistent,
    /// Assigned, but it never had a leader.
    New,
    /// It has a leader.
    Online,
    /// It had a leader, which is gone.
    Offline,
}

impl PartitionState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::NonExistent, Self::New, Self::Online, Self::Offline];

    /// The states from which a partition may come into this one.
    pub fn legal_previous(self) -> &'static [Self] {
        match self {
            Self::New => &[Self::NonExistent],
            Self::Online | Self::Offline => &[Self::New, Self::Online, Self::Offline],
            Self::NonExistent => &[Self::Offline],
        }
    }

    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::NonExistent => "NonExistentPartition",
            Self::New => "NewPartition",
            Self::Online => "OnlinePartition",
            Self::Offline => "OfflinePartition",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PartitionState;
    use super::PartitionState::*;

    #[test]
    fn every_pair_of_states_is_legal_or_not_as_the_table_says() {
        #[rustfmt::skip]
        let legal: [(PartitionState, [u8; 4]); 4] = [
            // from  to: NonExistent New Online Offline
            (NonExistent, [0, 1, 0, 0]),
            (New,         [0, 0, 1, 1]),
            (Online,      [0, 0, 1, 1]),
            (Offline,     [1, 0, 1, 1]),
        ];
        for (from, row) in legal {
            for (to, expected) in PartitionState::ALL.into_iter().zip(row) {
                assert_eq!(to.legal_previous().contains(&from), expected == 1, "{from:?} -> {to:?}");
            }
        }
    }
}

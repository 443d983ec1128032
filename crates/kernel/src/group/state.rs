//! The states of a group, and which may follow which.

/// The state of a group. It is not stored: after a load a group with members is Stable, one without is Empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// No members, but perhaps offsets.
    Empty,
    /// JoinGroup requests are being collected.
    PreparingRebalance,
    /// All have joined; the leader's SyncGroup is awaited.
    CompletingRebalance,
    /// Members have their assignments.
    Stable,
    /// Deleted, expired or unloaded.
    Dead,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Empty, Self::PreparingRebalance, Self::CompletingRebalance, Self::Stable, Self::Dead];

    /// The name as ListGroups and DescribeGroups give it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }

    /// Whether a group in this state may become `next`.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match next {
            Self::Empty | Self::CompletingRebalance => matches!(self, Self::PreparingRebalance),
            Self::PreparingRebalance => {
                matches!(self, Self::Stable | Self::CompletingRebalance | Self::Empty)
            }
            Self::Stable => matches!(self, Self::CompletingRebalance),
            Self::Dead => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_follow_each_other_as_in_the_table() {
        use State::{CompletingRebalance, Dead, Empty, PreparingRebalance, Stable};
        let legal = [
            (PreparingRebalance, Empty),
            (Stable, PreparingRebalance),
            (CompletingRebalance, PreparingRebalance),
            (Empty, PreparingRebalance),
            (PreparingRebalance, CompletingRebalance),
            (CompletingRebalance, Stable),
        ];
        for from in State::ALL {
            for to in State::ALL {
                let expected = to == Dead || legal.contains(&(from, to));
                assert_eq!(from.may_become(to), expected, "{from:?} -> {to:?}");
            }
        }
    }
}

//! The check before all others: may this broker speak for the group at all?

use wire::error_code::ErrorCode;

/// What is asked of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Api {
    /// JoinGroup.
    Join,
    /// SyncGroup.
    Sync,
    /// Heartbeat.
    Heartbeat,
    /// LeaveGroup.
    Leave,
    /// OffsetCommit.
    Commit,
    /// TxnOffsetCommit.
    TxnCommit,
    /// OffsetFetch.
    Fetch,
    /// OffsetDelete.
    DeleteOffsets,
    /// DescribeGroups.
    Describe,
    /// DeleteGroups.
    Delete,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Join,
        Self::Sync,
        Self::Heartbeat,
        Self::Leave,
        Self::Commit,
        Self::TxnCommit,
        Self::Fetch,
        Self::DeleteOffsets,
        Self::Describe,
        Self::Delete,
    ];

    /// Whether a group without a name can be meant, as old consumers without a group do (KAFKA-6773).
    const fn allows_empty_id(self) -> bool {
        matches!(self, Self::Commit | Self::Fetch | Self::Describe | Self::Delete)
    }
}

/// What this broker is for the partition of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ownership {
    /// The coordinator has been shut down, or has not been started.
    Inactive,
    /// The partition is being loaded, or could not be.
    Loading,
    /// Another broker is the coordinator.
    Elsewhere,
    /// This broker is the coordinator.
    Owned,
}

/// What a request is answered with before its group is looked at; none: go on.
///
/// Two requests do not show that a group is loading: Heartbeat is answered with no error at all, SyncGroup with
/// REBALANCE_IN_PROGRESS, so that members neither give up nor look for another coordinator.
#[must_use]
pub fn gate(api: Api, group_id: &str, ownership: Ownership) -> Option<ErrorCode> {
    if group_id.is_empty() && !api.allows_empty_id() {
        return Some(ErrorCode::InvalidGroupId);
    }
    match (ownership, api) {
        (Ownership::Inactive, _) => Some(ErrorCode::CoordinatorNotAvailable),
        (Ownership::Loading, Api::Heartbeat) => Some(ErrorCode::None),
        (Ownership::Loading, Api::Sync) => Some(ErrorCode::RebalanceInProgress),
        (Ownership::Loading, _) => Some(ErrorCode::CoordinatorLoadInProgress),
        (Ownership::Elsewhere, _) => Some(ErrorCode::NotCoordinator),
        (Ownership::Owned, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_group_is_for_consumers_that_only_keep_offsets() {
        for api in Api::ALL {
            let expected = match api {
                Api::Commit | Api::Fetch | Api::Describe | Api::Delete => None,
                _ => Some(ErrorCode::InvalidGroupId),
            };
            assert_eq!(gate(api, "", Ownership::Owned), expected, "{api:?}");
        }
    }

    #[test]
    fn a_name_that_cannot_be_is_told_before_anything_else() {
        assert_eq!(gate(Api::Join, "", Ownership::Inactive), Some(ErrorCode::InvalidGroupId));
    }

    #[test]
    fn shut_down_moved_and_owned_are_told_apart_for_every_api() {
        for api in Api::ALL {
            assert_eq!(gate(api, "g", Ownership::Inactive), Some(ErrorCode::CoordinatorNotAvailable));
            assert_eq!(gate(api, "g", Ownership::Elsewhere), Some(ErrorCode::NotCoordinator));
            assert_eq!(gate(api, "g", Ownership::Owned), None);
        }
    }

    #[test]
    fn loading_is_hidden_from_heartbeat_and_sync_only() {
        for api in Api::ALL {
            let expected = match api {
                Api::Heartbeat => ErrorCode::None,
                Api::Sync => ErrorCode::RebalanceInProgress,
                _ => ErrorCode::CoordinatorLoadInProgress,
            };
            assert_eq!(gate(api, "g", Ownership::Loading), Some(expected), "{api:?}");
        }
    }
}

//! What the error of an append becomes for those who wait.

use wire::error_code::ErrorCode;

/// For OffsetCommit and TxnOffsetCommit.
pub(super) fn of_commit(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::NetworkException => ErrorCode::CoordinatorLoadInProgress,
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge | ErrorCode::InvalidFetchSize => {
            ErrorCode::InvalidCommitOffsetSize
        }
        other => other,
    }
}

/// Whether the batch may be in the log although its append ended with this error: it was not replicated in time, or
/// nobody knows how far it came. The others come before the append.
pub(super) fn may_be_stored(error: ErrorCode) -> bool {
    !matches!(
        error,
        ErrorCode::NotEnoughReplicas
            | ErrorCode::UnknownTopicOrPartition
            | ErrorCode::MessageTooLarge
            | ErrorCode::RecordListTooLarge
            | ErrorCode::InvalidFetchSize
    )
}

/// For those who wait for the group's record: SyncGroup, and JoinGroup of a replaced static member.
pub(super) fn of_group(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        ErrorCode::RequestTimedOut => ErrorCode::RebalanceInProgress,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge | ErrorCode::InvalidFetchSize => {
            ErrorCode::UnknownServerError
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(map: fn(ErrorCode) -> ErrorCode, codes: &[i16]) -> Vec<i16> {
        codes.iter().map(|code| map(ErrorCode::from_code(*code).unwrap()).code()).collect()
    }

    #[test]
    fn errors_of_an_append_reach_a_committer_as_kafka_maps_them() {
        let kept = [0, 7, 47, 48, 49, 51, 120, -1];
        assert_eq!(mapped(of_commit, &kept), kept);
        assert_eq!(
            mapped(of_commit, &[13, 3, 19, 20, 6, 56, 10, 18, 4]),
            [14, 15, 15, 15, 16, 16, 28, 28, 28]
        );
    }

    #[test]
    fn only_what_was_refused_before_the_append_is_surely_not_in_the_log() {
        let all = [6, 7, 20, 56, -1, 19, 3, 10, 18, 4].map(|code| ErrorCode::from_code(code).unwrap());
        let stored: Vec<_> =
            all.into_iter().filter(|error| may_be_stored(*error)).map(ErrorCode::code).collect();
        assert_eq!(stored, [6, 7, 20, 56, -1]);
    }

    #[test]
    fn errors_of_an_append_reach_a_member_as_kafka_maps_them() {
        assert_eq!(mapped(of_group, &[3, 19, 20, 6, 56, 7, 10, 18, 4]), [15, 15, 15, 16, 16, 27, -1, -1, -1]);
        assert_eq!(mapped(of_group, &[0, 13]), [0, 13]);
    }
}

//! What fetchers tell the operator.

use kernel::replica::fetcher::{Failure, Note};
use wire::error_code::ErrorCode;
use wire::types::TopicPartition;

use super::Key;

/// A request to a leader has failed. `known`: so did the one before.
pub(super) fn request_failed(key: Key, reason: &str, known: bool) {
    let Key { leader, number } = key;
    if known {
        tracing::debug!(%leader, fetcher = number, reason, "the leader cannot be asked");
    } else {
        tracing::info!(%leader, fetcher = number, reason, "the leader cannot be asked; it is tried again and again");
    }
}

/// A partition is not fetched any more.
pub(super) fn failed(key: Key, partition: &TopicPartition, failure: Failure) {
    let leader = key.leader;
    match failure {
        // The controller is about to say who leads.
        Failure::Fenced => {
            tracing::info!(%partition, %leader, "the leader is in a later epoch; fetching rests until ours is told");
        }
        Failure::UnexpectedLogEnd { fetch_offset, log_end } => tracing::error!(
            %partition, %leader, %fetch_offset, %log_end,
            "fetching stops until the next leader is named: the log does not end where it was fetched from"
        ),
        Failure::UnexpectedRecords { first, last } => tracing::error!(
            %partition, %leader, %first, %last,
            "fetching stops until the next leader is named: the leader sends records that do not fit the log"
        ),
        Failure::Storage => tracing::error!(
            %partition, %leader, "fetching stops until the next leader is named: the log has failed"
        ),
    }
}

/// What the machine has to tell.
pub(super) fn note(key: Key, note: &Note) {
    let leader = key.leader;
    match note {
        Note::Refused(
            partition,
            error @ (ErrorCode::UnknownLeaderEpoch | ErrorCode::NotLeaderOrFollower),
        ) => tracing::debug!(%partition, %leader, error = error.name(), "the leader does not lead yet"),
        Note::Refused(partition, error) => {
            tracing::info!(%partition, %leader, error = error.name(), "the leader refuses; it is asked again");
        }
        Note::OutOfRange(partition, offset) => {
            tracing::info!(%partition, %leader, %offset, "the offset is out of the leader's range");
        }
        // They are told where they are found.
        Note::CorruptRecords(_) | Note::LogUnavailable(_) => {}
        Note::NothingAppended(partition) => {
            tracing::info!(%partition, %leader, "none of the records that were fetched could be appended");
        }
        Note::Unanswered(partition) => {
            tracing::warn!(%partition, %leader, "the leader answers nothing about a partition it was asked about");
        }
        Note::NotAsked(partition) => {
            tracing::warn!(%partition, %leader, "the leader answers about a partition it was not asked about");
        }
        Note::Outdated(partition) => {
            tracing::debug!(%partition, %leader, "an answer came too late");
        }
        Note::SessionLost(error) => {
            tracing::debug!(%leader, error = error.name(), "the fetch session is begun anew");
        }
        Note::FetchRefused(error) => {
            tracing::warn!(%leader, error = error.name(), "the leader refuses to be fetched from");
        }
        Note::SessionMismatch => {
            tracing::warn!(%leader, "the leader answers about other partitions than those of the fetch session");
        }
    }
}

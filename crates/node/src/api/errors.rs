//! From the errors of the log to those of the protocol: the one place where they meet.

use kernel::producer::Rejection as ProducerRejection;
use kernel::replica::control::{Refusal, Stale};
use storage::log_dirs::CreateError;
use storage::partition_log::{AppendError, LogError, ReadError};
use wire::batch::validate::{Rejection, ValidationError};
use wire::error_code::ErrorCode;

use crate::control::Failure;

/// The code of an append that failed.
pub(crate) fn of_append(error: &AppendError) -> ErrorCode {
    match error {
        AppendError::Invalid(invalid) => of_validation(invalid),
        AppendError::RecordListTooLarge { .. } => ErrorCode::RecordListTooLarge,
        AppendError::Producer { rejection, .. } => of_producer(*rejection),
        AppendError::Control(_) => ErrorCode::InvalidRecord,
        AppendError::OffsetsOutOfOrder
        | AppendError::UnexpectedOffset { .. }
        | AppendError::NoOffsetsLeft => ErrorCode::UnknownServerError,
        // The replica is being deleted: the client asks for new metadata.
        AppendError::Closed => ErrorCode::NotLeaderOrFollower,
        AppendError::Storage(_) => ErrorCode::KafkaStorageError,
    }
}

/// The code of a read that failed.
pub(crate) fn of_read(error: &ReadError) -> ErrorCode {
    match error {
        ReadError::OffsetOutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        ReadError::Corrupt(_) => ErrorCode::CorruptMessage,
        ReadError::Storage(_) => ErrorCode::KafkaStorageError,
    }
}

/// The code of another operation of a log that failed.
pub(crate) fn of_log(error: &LogError) -> ErrorCode {
    match error {
        LogError::NegativeOffset(_) | LogError::AboveHighWatermark { .. } => ErrorCode::OffsetOutOfRange,
        LogError::InconsistentTopicId { .. } => ErrorCode::InconsistentTopicId,
        LogError::BadEpoch { .. } => ErrorCode::UnknownServerError,
        LogError::Closed => ErrorCode::NotLeaderOrFollower,
        LogError::Storage(_) => ErrorCode::KafkaStorageError,
    }
}

/// The code of a request of a controller that is refused as a whole; none if nobody waits for it.
pub(crate) fn of_stale(stale: Stale) -> Option<ErrorCode> {
    match stale {
        Stale::BrokerEpoch => Some(ErrorCode::StaleBrokerEpoch),
        Stale::ControllerEpoch => Some(ErrorCode::StaleControllerEpoch),
        Stale::Connection => None,
    }
}

/// The code of a partition in a request of a controller.
pub(crate) fn of_control(failure: &Failure) -> ErrorCode {
    match failure {
        Failure::Refused(Refusal::Offline) => ErrorCode::KafkaStorageError,
        Failure::Refused(Refusal::InconsistentTopicId) => ErrorCode::InconsistentTopicId,
        Failure::Refused(Refusal::NotAReplica) => ErrorCode::UnknownTopicOrPartition,
        Failure::Refused(Refusal::StaleLeaderEpoch) => ErrorCode::FencedLeaderEpoch,
        Failure::Create(CreateError::Log(error)) | Failure::Log(error) => of_log(error),
        Failure::Create(_) => ErrorCode::KafkaStorageError,
        Failure::Configs => ErrorCode::UnknownServerError,
    }
}

fn of_validation(error: &ValidationError) -> ErrorCode {
    match error.rejection() {
        Rejection::CorruptMessage => ErrorCode::CorruptMessage,
        Rejection::InvalidRecord => ErrorCode::InvalidRecord,
        Rejection::InvalidTimestamp => ErrorCode::InvalidTimestamp,
        Rejection::MessageTooLarge => ErrorCode::MessageTooLarge,
        Rejection::UnsupportedCompressionType => ErrorCode::UnsupportedCompressionType,
        Rejection::UnsupportedForMessageFormat => ErrorCode::UnsupportedForMessageFormat,
    }
}

fn of_producer(rejection: ProducerRejection) -> ErrorCode {
    match rejection {
        ProducerRejection::InvalidProducerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
        ProducerRejection::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        ProducerRejection::InvalidTxnState => ErrorCode::InvalidTxnState,
        ProducerRejection::TransactionCoordinatorFenced { .. } => ErrorCode::TransactionCoordinatorFenced,
    }
}

//! Why the cluster did not do what a tool asked for.

use std::time::Duration;

use net::client::ClientError;
use wire::error_code::ErrorCode;

/// Why a request to the cluster failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    /// No broker answers.
    #[error(
        "no broker answers at {servers} ({error}); check --bootstrap-server, and that the broker runs there"
    )]
    Unreachable {
        /// The addresses that were tried.
        servers: String,
        /// The last failure.
        error: ClientError,
    },
    /// A broker answers, but not as a tool can use.
    #[error("broker {address}: {error}")]
    Client {
        /// `host:port`
        address: String,
        /// What went wrong.
        error: ClientError,
    },
    /// The broker refused.
    #[error("{what}: {message} ({})", name(*.code))]
    Refused {
        /// What was asked for, such as `topic t`.
        what: String,
        /// The code of the protocol.
        code: i16,
        /// The broker's text, or one for the code.
        message: String,
    },
    /// What was asked for did not happen in time.
    #[error("{what} within {} ms; the last failure: {last}", .within.as_millis())]
    TimedOut {
        /// What did not happen.
        what: String,
        /// How long it was tried.
        within: Duration,
        /// The last failure.
        last: String,
    },
    /// The cluster does not name the broker.
    #[error("broker {0} is not in the cluster at the moment")]
    NoSuchBroker(i32),
    /// A batch cannot be built or read.
    #[error("{what}: {error}")]
    Batch {
        /// Where it belongs.
        what: String,
        /// What is wrong.
        error: wire::batch::BatchError,
    },
}

/// The name of an error code, or its number if this release does not know it.
pub(crate) fn name(code: i16) -> String {
    ErrorCode::from_code(code).map_or_else(|| format!("error code {code}"), |code| code.name().to_owned())
}

impl ClusterError {
    /// A refusal with the broker's text if it gave one.
    pub(crate) fn refused(what: impl Into<String>, code: i16, message: Option<&str>) -> Self {
        let own = || ErrorCode::from_code(code).map_or("the broker refused", ErrorCode::message);
        let message = message.filter(|text| !text.is_empty()).unwrap_or_else(own);
        Self::Refused { what: what.into(), code, message: message.trim_end_matches('.').to_owned() }
    }

    /// The failure as Kafka's tools show it; see [`java_text`].
    pub(crate) fn java_text(&self) -> String {
        match self {
            Self::Refused { code, .. } => java_text(*code, None),
            Self::TimedOut { .. } => {
                let class = java_class(ErrorCode::RequestTimedOut);
                format!("{class}: {self}")
            }
            other => other.to_string(),
        }
    }

    /// Whether the broker refused with this code.
    pub(crate) fn is(&self, code: ErrorCode) -> bool {
        matches!(self, Self::Refused { code: refused, .. } if *refused == code.code())
    }
}

/// The failure as Kafka's tools show it: the class of the client in Java, and the text. Scripts look for both.
pub(crate) fn java_text(code: i16, message: Option<&str>) -> String {
    let error = ErrorCode::from_code(code).unwrap_or(ErrorCode::UnknownServerError);
    let text = message.filter(|text| !text.is_empty()).unwrap_or_else(|| error.message());
    format!("{}: {text}", java_class(error))
}

/// The class of the client in Java for an error: its name in camel case.
pub(crate) fn java_class(error: ErrorCode) -> String {
    let name: String = error
        .name()
        .split('_')
        .filter(|word| *word != "EXCEPTION")
        .map(|word| match word.split_at_checked(1) {
            Some((first, rest)) => format!("{first}{}", rest.to_ascii_lowercase()),
            None => String::new(),
        })
        .collect();
    match error {
        ErrorCode::RequestTimedOut => "org.apache.kafka.common.errors.TimeoutException".to_owned(),
        ErrorCode::MessageTooLarge => "org.apache.kafka.common.errors.RecordTooLargeException".to_owned(),
        ErrorCode::RecordListTooLarge => {
            "org.apache.kafka.common.errors.RecordBatchTooLargeException".to_owned()
        }
        ErrorCode::NonEmptyGroup => "org.apache.kafka.common.errors.GroupNotEmptyException".to_owned(),
        ErrorCode::KafkaStorageError => "org.apache.kafka.common.errors.KafkaStorageException".to_owned(),
        _ => format!("org.apache.kafka.common.errors.{name}Exception"),
    }
}

/// Whether the same request may succeed over a new connection, or at another broker.
pub(crate) fn is_transient(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Connect { .. }
            | ClientError::Io(_)
            | ClientError::Closed
            | ClientError::Timeout(_)
            | ClientError::Unusable
    )
}

/// Whether a code says that the same request may succeed later, or at another broker.
pub(crate) fn is_retriable(code: i16) -> bool {
    ErrorCode::from_code(code).is_some_and(ErrorCode::is_retriable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_shown_by_the_class_of_the_java_client() {
        for (code, class) in [
            (ErrorCode::OffsetOutOfRange, "OffsetOutOfRangeException"),
            (ErrorCode::UnknownTopicOrPartition, "UnknownTopicOrPartitionException"),
            (ErrorCode::InvalidTopicException, "InvalidTopicException"),
            (ErrorCode::RequestTimedOut, "TimeoutException"),
        ] {
            assert_eq!(java_class(code), format!("org.apache.kafka.common.errors.{class}"));
        }
        let text = java_text(ErrorCode::PolicyViolation.code(), Some("no"));
        assert_eq!(text, "org.apache.kafka.common.errors.PolicyViolationException: no");
    }
}

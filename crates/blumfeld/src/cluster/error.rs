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

    /// Whether the broker refused with this code.
    pub(crate) fn is(&self, code: ErrorCode) -> bool {
        matches!(self, Self::Refused { code: refused, .. } if *refused == code.code())
    }
}

/// Whether the same request may succeed over a new connection, or at another broker.
pub(super) fn is_transient(error: &ClientError) -> bool {
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
pub(super) fn is_retriable(code: i16) -> bool {
    ErrorCode::from_code(code).is_some_and(ErrorCode::is_retriable)
}

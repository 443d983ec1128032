//! Resources of config requests: the numbers of their types, and why a request for one of them is refused.

use wire::error_code::ErrorCode;

/// A topic, by name.
pub const TOPIC: i8 = 2;
/// A broker by id, or the defaults of all brokers by the empty name.
pub const BROKER: i8 = 4;
/// The log levels of a broker, by its id.
pub const BROKER_LOGGER: i8 = 8;
/// A subscription to client metrics, by name (KIP-714).
pub const CLIENT_METRICS: i8 = 16;

/// Why a resource is neither described nor altered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceError {
    /// The code.
    pub code: ErrorCode,
    /// The reason in words; none where Kafka gives none.
    pub message: Option<String>,
}

impl ResourceError {
    /// An error that says nothing but its code.
    #[must_use]
    pub fn code(code: ErrorCode) -> Self {
        Self { code, message: None }
    }
}

pub(super) fn refuse<T>(code: ErrorCode, message: impl Into<String>) -> Result<T, ResourceError> {
    Err(ResourceError { code, message: Some(message.into()) })
}

/// An INVALID_REQUEST.
pub(super) fn invalid<T>(message: impl Into<String>) -> Result<T, ResourceError> {
    refuse(ErrorCode::InvalidRequest, message)
}

/// Checks that a resource's name is the id of this broker.
pub(super) fn check_own_id(name: &str, broker_id: i32) -> Result<(), ResourceError> {
    match name.parse::<i32>() {
        Ok(id) if id == broker_id => Ok(()),
        Ok(id) => invalid(format!("Only broker {broker_id} is served here, not broker {id}")),
        Err(_) => invalid(format!("A broker id must be an integer, but it is: {name}")),
    }
}

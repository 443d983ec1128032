//! Why an administrative request is refused: the protocol's code and a sentence for the one who asked.

use std::borrow::Cow;

use wire::Str;
use wire::error_code::ErrorCode;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The protocol's code.
    pub(crate) code: ErrorCode,
    text: Option<Cow<'static, str>>,
}

impl Refusal {
    /// A refusal with a sentence.
    pub(crate) fn new(code: ErrorCode, text: impl Into<Cow<'static, str>>) -> Self {
        Self { code, text: Some(text.into()) }
    }

    /// A refusal that says what its code says.
    pub(crate) fn code(code: ErrorCode) -> Self {
        Self { code, text: None }
    }

    /// The answer of every broker but the controller.
    pub(crate) fn not_controller() -> Self {
        Self::new(ErrorCode::NotController, "This is not the correct controller for this cluster.")
    }

    /// The work was begun, but the client did not want to wait for it.
    pub(crate) fn timed_out() -> Self {
        Self::new(ErrorCode::RequestTimedOut, "The request timed out.")
    }

    /// The sentence that goes on the wire.
    pub(crate) fn message(&self) -> Option<Str> {
        Some(Str::from(self.text.as_deref().unwrap_or(self.code.message())))
    }
}

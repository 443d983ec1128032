//! Vocabulary, messages and record batches of the Kafka protocol; pure.

mod decoder;
mod encoder;
mod str;

pub mod api;
pub mod batch;
pub mod error_code;
pub mod fetch_body;
pub mod header;
pub mod internal;
pub mod messages;
#[cfg(any(test, feature = "testing"))]
pub mod random;
pub mod response;
pub mod types;

pub use decoder::{DecodeError, Decoder, MAX_STRING_LEN};
pub use encoder::{EncodeError, Encoder};
pub use str::Str;

//! The requests and responses of the protocol, generated from `schema/`.
//!
//! One module per message holds its structures under Kafka's names; the message itself stands here, too
//! (`messages::ProduceRequest`). Fields are in snake case, integers plain, a nullable field is an `Option`,
//! text and bytes are slices of the frame. `Default` gives Kafka's defaults, except that records and bytes
//! are empty rather than null unless the schema says null.
//!
//! `decode` refuses null in a field that is not nullable, counts and lengths that the frame cannot hold,
//! and unknown versions. Unknown tagged fields are skipped. `encode` refuses what the version cannot carry:
//! a field at other than its default in a version without that field, unless it is ignorable.

use std::any::Any;
use std::fmt::Debug;
use std::ops::RangeInclusive;

#[cfg(any(test, feature = "testing"))]
use crate::random::Rng;
use crate::{DecodeError, Decoder, EncodeError, Encoder};

/// Which half of an api a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// From the client to the broker.
    Request,
    /// From the broker to the client.
    Response,
}

/// A request or a response.
pub trait Message: Clone + Debug + Default + PartialEq + Send + Sync + 'static {
    /// The key of its api.
    const API_KEY: i16;
    /// Whether it is a request or a response.
    const KIND: Kind;
    /// Its name in Kafka, such as `FetchRequest`.
    const NAME: &'static str;
    /// The versions it is defined in.
    const VERSIONS: RangeInclusive<i16>;

    /// Reads the message in `version`; bytes behind it are left.
    ///
    /// # Errors
    /// `UnsupportedVersion` outside [`VERSIONS`](Self::VERSIONS); else what is wrong with the bytes.
    fn decode(src: &mut Decoder, version: i16) -> Result<Self, DecodeError>;

    /// Writes the message in `version`.
    ///
    /// # Errors
    /// `UnsupportedVersion` outside [`VERSIONS`](Self::VERSIONS); else the field that the version cannot carry.
    fn encode(&self, dst: &mut Encoder, version: i16) -> Result<(), EncodeError>;

    /// A random message that `version` can carry.
    #[cfg(any(test, feature = "testing"))]
    fn random(rng: &mut Rng, version: i16) -> Self;
}

/// A request, and what answers it.
pub trait Request: Message {
    /// The response of the same api.
    type Response: Message;
}

/// A message whose type is known at run time only ([`decode_any`]).
pub trait AnyMessage: Debug + Send + Sync {
    /// Its name in Kafka.
    fn name(&self) -> &'static str;

    /// Writes it in `version`, as [`Message::encode`] does.
    ///
    /// # Errors
    /// Those of [`Message::encode`].
    fn encode(&self, dst: &mut Encoder, version: i16) -> Result<(), EncodeError>;

    /// The message, to be downcast.
    fn as_any(&self) -> &dyn Any;
}

impl<M: Message> AnyMessage for M {
    fn name(&self) -> &'static str {
        M::NAME
    }

    fn encode(&self, dst: &mut Encoder, version: i16) -> Result<(), EncodeError> {
        Message::encode(self, dst, version)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What every generated module uses.
mod prelude {
    pub(super) use std::ops::RangeInclusive;

    pub(super) use bytes::Bytes;

    pub(super) use super::{Kind, Message};
    #[cfg(any(test, feature = "testing"))]
    pub(super) use crate::random::Rng;
    pub(super) use crate::types::TopicId;
    pub(super) use crate::{DecodeError, Decoder, EncodeError, Encoder, Str};
}

include!(concat!(env!("OUT_DIR"), "/messages.rs"));

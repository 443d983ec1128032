//! `/controller_epoch`: the epoch of the latest controller as decimal text. Its znode version fences every write of a
//! controller (KAFKA-6082).

use super::DecodeError;
use wire::types::ControllerEpoch;

/// The path.
pub const PATH: &str = "/controller_epoch";

/// The epoch before any election; the first controller has the next.
pub const INITIAL: ControllerEpoch = ControllerEpoch(0);

const KIND: &str = "controller epoch";

/// The value of the znode.
pub fn encode(epoch: ControllerEpoch) -> Vec<u8> {
    epoch.to_string().into_bytes()
}

/// The epoch in the value of the znode.
pub fn decode(data: Option<&[u8]>) -> Result<ControllerEpoch, DecodeError> {
    let text =
        std::str::from_utf8(data.unwrap_or_default()).map_err(|error| DecodeError::new(KIND, error))?;
    text.trim().parse().map(ControllerEpoch).map_err(|error| DecodeError::new(KIND, error))
}

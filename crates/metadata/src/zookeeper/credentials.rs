//! What proves that a session is one's own: with it a new connection, or a successor of the process, takes it up again.

use crate::store::SessionId;
use bytes::Bytes;
use std::fmt;

/// The id of a session and the password that the ensemble gave with it.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionCredentials {
    /// The id.
    pub id: SessionId,
    /// The password, 16 bytes.
    pub password: Bytes,
}

impl fmt::Debug for SessionCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCredentials").field("id", &self.id).finish_non_exhaustive()
    }
}

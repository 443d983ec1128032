//! The numbers of ZooKeeper's protocol: operations, marks of unasked frames, and errors.

use crate::store::{OpError, StoreError};

/// The operation of a request.
pub(super) mod operation {
    pub(in super::super) const CREATE: i32 = 1;
    pub(in super::super) const DELETE: i32 = 2;
    pub(in super::super) const EXISTS: i32 = 3;
    pub(in super::super) const GET_DATA: i32 = 4;
    pub(in super::super) const SET_DATA: i32 = 5;
    pub(in super::super) const PING: i32 = 11;
    pub(in super::super) const GET_CHILDREN_AND_STAT: i32 = 12;
    pub(in super::super) const CHECK: i32 = 13;
    pub(in super::super) const MULTI: i32 = 14;
    pub(in super::super) const CREATE_AND_STAT: i32 = 15;
    pub(in super::super) const SET_WATCHES: i32 = 101;
    pub(in super::super) const CLOSE_SESSION: i32 = -11;
    /// Within the answer to a multi: the operation failed, or was not done since another one failed.
    pub(in super::super) const ERROR: i32 = -1;
}

/// The xid of frames that are no answer to a numbered request.
pub(super) mod xid {
    pub(in super::super) const NOTIFICATION: i32 = -1;
    pub(in super::super) const PING: i32 = -2;
    pub(in super::super) const SET_WATCHES: i32 = -8;
}

/// No error.
pub(super) const OK: i32 = 0;
/// The session is over.
pub(super) const SESSION_EXPIRED: i32 = -112;
/// The session goes on over another connection.
pub(super) const SESSION_MOVED: i32 = -118;

const NO_NODE: i32 = -101;
const NO_AUTH: i32 = -102;
const BAD_VERSION: i32 = -103;
const NO_CHILDREN_FOR_EPHEMERALS: i32 = -108;
const NODE_EXISTS: i32 = -110;
const NOT_EMPTY: i32 = -111;
const AUTH_FAILED: i32 = -115;
const SESSION_REQUIRES_SASL: i32 = -124;
const BAD_ARGUMENTS: i32 = -8;

/// The error of a single operation.
pub(super) fn op_error(code: i32) -> Option<OpError> {
    match code {
        NO_NODE => Some(OpError::NoNode),
        NODE_EXISTS => Some(OpError::NodeExists),
        BAD_VERSION => Some(OpError::BadVersion),
        NOT_EMPTY => Some(OpError::NotEmpty),
        NO_CHILDREN_FOR_EPHEMERALS => Some(OpError::NoChildrenForEphemerals),
        BAD_ARGUMENTS => Some(OpError::BadArguments),
        NO_AUTH => Some(OpError::NoAuth),
        _ => None,
    }
}

/// The error of a whole request.
pub(super) fn store_error(code: i32) -> StoreError {
    if let Some(error) = op_error(code) {
        return error.into();
    }
    match code {
        SESSION_EXPIRED => StoreError::SessionExpired,
        SESSION_MOVED => StoreError::ConnectionLoss,
        AUTH_FAILED | SESSION_REQUIRES_SASL => StoreError::AuthFailed,
        -1 => StoreError::Unexpected("ZooKeeper: system error"),
        -5 => StoreError::Unexpected("ZooKeeper: marshalling error"),
        -6 => StoreError::Unexpected("ZooKeeper: unimplemented"),
        -7 => StoreError::Unexpected("ZooKeeper: operation timeout"),
        -114 => StoreError::Unexpected("ZooKeeper: invalid access list"),
        -119 => StoreError::Unexpected("ZooKeeper: the server is read-only"),
        -125 => StoreError::Unexpected("ZooKeeper: quota exceeded"),
        -127 => StoreError::Unexpected("ZooKeeper: throttled"),
        _ => StoreError::Unexpected("ZooKeeper: an error of an unknown number"),
    }
}

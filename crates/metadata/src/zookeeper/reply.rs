//! Answers and notifications from frames.

use super::chroot::Chroot;
use super::codes::{self, OK, operation};
use super::credentials::SessionCredentials;
use super::jute::{FrameReader, Malformed};
use crate::store::{NodeEventKind, Op, OpError, OpResult, Request, Response, SessionId, StoreError};
use bytes::Bytes;
use std::time::Duration;

/// The answer to the first frame of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Greeting {
    /// The session lives; its timeout is what the server made of the wish.
    Session {
        /// Id and password.
        credentials: SessionCredentials,
        /// After how long without a sign of life the ensemble ends it.
        timeout: Duration,
    },
    /// The session that was to be resumed is over.
    Expired,
}

pub(super) fn greeting(frame: Bytes) -> Result<Greeting, Malformed> {
    let mut reader = FrameReader(frame);
    let _protocol_version = reader.int()?;
    let timeout_ms = reader.int()?;
    let id = SessionId(reader.long()?);
    let password = reader.buffer()?.unwrap_or_default();
    match u64::try_from(timeout_ms) {
        Ok(timeout_ms) if timeout_ms > 0 && id != SessionId::NONE => Ok(Greeting::Session {
            credentials: SessionCredentials { id, password },
            timeout: Duration::from_millis(timeout_ms),
        }),
        _ => Ok(Greeting::Expired),
    }
}

/// What stands before every answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplyHeader {
    /// The number of the request, or the mark of an unasked frame.
    pub(super) xid: i32,
    /// The transaction that the server has reached; not positive where that is not told.
    pub(super) zxid: i64,
    /// What went wrong.
    pub(super) code: i32,
}

pub(super) fn header(reader: &mut FrameReader) -> Result<ReplyHeader, Malformed> {
    Ok(ReplyHeader { xid: reader.int()?, zxid: reader.long()?, code: reader.int()? })
}

/// What happened to which znode, as the server names it. `None`: it is about the session, which the connection itself
/// tells better.
pub(super) fn notification(reader: &mut FrameReader) -> Result<Option<(NodeEventKind, String)>, Malformed> {
    let kind = reader.int()?;
    let _state = reader.int()?;
    let path = reader.text()?;
    Ok(match kind {
        1 => Some((NodeEventKind::Created, path)),
        2 => Some((NodeEventKind::Deleted, path)),
        3 => Some((NodeEventKind::DataChanged, path)),
        4 => Some((NodeEventKind::ChildrenChanged, path)),
        _ => None,
    })
}

/// The outcome of `request` from the code and the rest of its answer.
pub(super) fn outcome(
    request: &Request,
    code: i32,
    reader: &mut FrameReader,
    chroot: &Chroot,
) -> Result<Result<Response, StoreError>, Malformed> {
    match request {
        Request::Multi(ops) => multi(ops, code, reader, chroot),
        Request::Write(Op::Check { .. }) => {
            let results = multi(std::slice::from_ref(&Op::check("", 0)), code, reader, chroot)?;
            Ok(results.map(|_| Response::Written(OpResult::Checked)).map_err(alone))
        }
        Request::Exists { .. } if codes::op_error(code) == Some(OpError::NoNode) => {
            Ok(Ok(Response::Exists(None)))
        }
        _ if code != OK => Ok(Err(codes::store_error(code))),
        Request::Write(op) => written(op, reader, chroot).map(|result| Ok(Response::Written(result))),
        Request::Get { .. } => {
            let data = reader.buffer()?;
            Ok(Ok(Response::Data { data, stat: reader.stat()? }))
        }
        Request::Exists { .. } => Ok(Ok(Response::Exists(Some(reader.stat()?)))),
        Request::Children { .. } => {
            let mut names = reader.texts()?;
            names.sort_unstable();
            Ok(Ok(Response::Children { names, stat: reader.stat()? }))
        }
    }
}

fn alone(error: StoreError) -> StoreError {
    match error {
        StoreError::Multi { error, .. } => StoreError::Op(error),
        other => other,
    }
}

fn written(op: &Op, reader: &mut FrameReader, chroot: &Chroot) -> Result<OpResult, Malformed> {
    match op {
        Op::Create { .. } => {
            let path = created_path(reader, chroot)?;
            Ok(OpResult::Created { path, stat: Some(reader.stat()?) })
        }
        Op::SetData { .. } => Ok(OpResult::Set { stat: reader.stat()? }),
        Op::Delete { .. } => Ok(OpResult::Deleted),
        Op::Check { .. } => Ok(OpResult::Checked),
    }
}

fn created_path(reader: &mut FrameReader, chroot: &Chroot) -> Result<String, Malformed> {
    let path = reader.text()?;
    chroot.inward(&path).map(str::to_owned).ok_or(Malformed("a path outside the chroot"))
}

/// A multi is answered part by part. When it failed, every part is an error: 0 before the one at fault, its own code, and
/// one that means nothing after it.
fn multi(
    ops: &[Op],
    code: i32,
    reader: &mut FrameReader,
    chroot: &Chroot,
) -> Result<Result<Response, StoreError>, Malformed> {
    if reader.0.is_empty() && code != OK {
        return Ok(Err(match codes::op_error(code) {
            // No place is told.
            Some(error) => StoreError::Multi { index: 0, error },
            None => codes::store_error(code),
        }));
    }
    let mut results = Vec::new();
    let mut failure = None;
    for index in 0.. {
        let (operation, is_last, _) = (reader.int()?, reader.bool()?, reader.int()?);
        if is_last {
            break;
        }
        let op = ops.get(index).ok_or(Malformed("more results than operations"))?;
        match operation {
            operation::ERROR => {
                let code = reader.int()?;
                if code != OK && failure.is_none() {
                    failure = Some((index, code));
                }
            }
            operation::CREATE => {
                results.push(OpResult::Created { path: created_path(reader, chroot)?, stat: None });
            }
            operation::SET_DATA => results.push(OpResult::Set { stat: reader.stat()? }),
            operation::DELETE | operation::CHECK => results.push(written(op, reader, chroot)?),
            _ => return Err(Malformed("a result of an unknown kind")),
        }
    }
    if let Some((index, code)) = failure {
        return Ok(Err(match codes::op_error(code) {
            Some(error) => StoreError::Multi { index, error },
            None => codes::store_error(code),
        }));
    }
    if code != OK {
        return Ok(Err(codes::store_error(code)));
    }
    if results.len() != ops.len() {
        return Err(Malformed("fewer results than operations"));
    }
    Ok(Ok(Response::Multi(results)))
}

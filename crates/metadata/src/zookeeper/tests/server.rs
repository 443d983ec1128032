//! What a server reads and writes.

use crate::store::Stat;
use crate::zookeeper::codes::{operation, xid};
use crate::zookeeper::credentials::SessionCredentials;
use crate::zookeeper::jute::{FrameReader, FrameWriter};
use bytes::{Buf, Bytes};
use std::time::Duration;

/// A frame that a server has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The first of a connection.
    Greeting { last_zxid: i64, session: i64, password: Bytes },
    /// A sign of life.
    Ping,
    /// Watches: for data, for what is absent, for children.
    SetWatches { since: i64, data: Vec<String>, absent: Vec<String>, children: Vec<String> },
    /// A request: number, operation and the path it begins with.
    Request(i32, i32, String),
}

impl Asked {
    /// The number of a request.
    pub(super) fn number(&self) -> i32 {
        match self {
            Self::Request(number, ..) => *number,
            other => panic!("{other:?} has no number"),
        }
    }
}

/// Reads a frame with its length.
pub(super) fn asked(mut frame: Bytes) -> Asked {
    assert_eq!(usize::try_from(frame.get_i32()).unwrap(), frame.len());
    let mut reader = FrameReader(frame);
    match reader.int().unwrap() {
        0 => {
            let last_zxid = reader.long().unwrap();
            assert_eq!(reader.int().unwrap(), 6000);
            let session = reader.long().unwrap();
            let password = reader.buffer().unwrap().unwrap();
            assert_eq!((reader.bool(), reader.0.len()), (Ok(false), 0));
            Asked::Greeting { last_zxid, session, password }
        }
        xid::PING => {
            assert_eq!((reader.int(), reader.0.len()), (Ok(operation::PING), 0));
            Asked::Ping
        }
        xid::SET_WATCHES => {
            assert_eq!(reader.int(), Ok(operation::SET_WATCHES));
            let since = reader.long().unwrap();
            let mut paths = || reader.texts().unwrap();
            Asked::SetWatches { since, data: paths(), absent: paths(), children: paths() }
        }
        number => {
            let operation = reader.int().unwrap();
            let path = match operation {
                operation::CLOSE_SESSION | operation::MULTI => String::new(),
                _ => reader.text().unwrap(),
            };
            Asked::Request(number, operation, path)
        }
    }
}

fn without_length(frame: FrameWriter) -> Bytes {
    let mut frame = frame.finish();
    frame.advance(4);
    frame
}

/// The answer to a greeting.
pub(super) fn greeting(timeout: Duration, session: &SessionCredentials) -> Bytes {
    let mut frame = FrameWriter::new();
    frame.int(0);
    frame.int(i32::try_from(timeout.as_millis()).unwrap());
    frame.long(session.id.0);
    frame.buffer(Some(&session.password));
    frame.bool(false);
    without_length(frame)
}

/// The answer to the greeting of a session that is over.
pub(super) fn expired() -> Bytes {
    let mut frame = FrameWriter::new();
    frame.int(0);
    frame.int(0);
    frame.long(0);
    frame.buffer(Some(&[0; 16]));
    without_length(frame)
}

/// An answer; `body` is what follows its header.
pub(super) fn reply(number: i32, zxid: i64, code: i32, body: &[u8]) -> Bytes {
    let mut frame = FrameWriter::new();
    frame.int(number);
    frame.long(zxid);
    frame.int(code);
    let mut bytes = without_length(frame).to_vec();
    bytes.extend_from_slice(body);
    bytes.into()
}

/// An event: 1 created, 2 deleted, 3 data changed, 4 children changed.
pub(super) fn notification(kind: i32, path: &str) -> Bytes {
    let mut body = FrameWriter::new();
    body.int(kind);
    body.int(3);
    body.text(path);
    reply(xid::NOTIFICATION, -1, 0, &without_length(body))
}

/// The body of an answer that is one stat.
pub(super) fn stat(stat: &Stat) -> Vec<u8> {
    let mut body = FrameWriter::new();
    for number in [stat.czxid, stat.mzxid, stat.ctime_ms, stat.mtime_ms] {
        body.long(number);
    }
    for number in [stat.version, stat.cversion, 0] {
        body.int(number);
    }
    body.long(stat.ephemeral_owner.0);
    body.int(stat.data_length);
    body.int(stat.num_children);
    body.long(stat.pzxid);
    without_length(body).to_vec()
}

/// The body of an answer that is data and stat.
pub(super) fn data(bytes: Option<&[u8]>, of: &Stat) -> Vec<u8> {
    let mut body = FrameWriter::new();
    body.buffer(bytes);
    let mut bytes = without_length(body).to_vec();
    bytes.extend(stat(of));
    bytes
}

/// The body of an answer to a multi: each part is an operation and what follows its head.
pub(super) fn multi(parts: &[(i32, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let head = |operation: i32, is_last: bool| {
        let mut head = FrameWriter::new();
        head.int(operation);
        head.bool(is_last);
        head.int(-1);
        without_length(head)
    };
    for (operation, part) in parts {
        bytes.extend_from_slice(&head(*operation, false));
        bytes.extend_from_slice(part);
    }
    bytes.extend_from_slice(&head(-1, true));
    bytes
}

//! Requests as frames.

use super::chroot::Chroot;
use super::codes::{OK, operation, xid};
use super::credentials::SessionCredentials;
use super::jute::FrameWriter;
use crate::path;
use crate::store::{CreateMode, MAX_DATA_BYTES, Op, OpError, Request, StoreError};
use bytes::Bytes;

/// All permissions of a znode.
const ALL_PERMISSIONS: i32 = 31;
/// Matches any version.
const ANY_VERSION: i32 = -1;
/// What a batch of watches may hold in bytes: an ensemble takes about a mebibyte in one frame.
const WATCHES_BYTES: usize = 128 * 1024;

/// Refuses what no server would take, before anything is sent.
pub(super) fn check(request: &Request) -> Result<(), StoreError> {
    match request {
        Request::Write(op) => check_op(op).map_err(StoreError::Op),
        Request::Multi(ops) => ops
            .iter()
            .enumerate()
            .try_for_each(|(index, op)| check_op(op).map_err(|error| StoreError::Multi { index, error })),
        Request::Get { path, .. } | Request::Exists { path, .. } | Request::Children { path, .. } => {
            check_path(path).map_err(StoreError::Op)
        }
    }
}

fn check_op(op: &Op) -> Result<(), OpError> {
    match op {
        Op::Create { path, mode, .. } if mode.is_sequential() => {
            path::is_valid_sequential_prefix(path).then_some(()).ok_or(OpError::BadArguments)?;
        }
        _ => check_path(op.path())?,
    }
    match op {
        Op::Create { path, .. } if path == path::ROOT => Err(OpError::NodeExists),
        Op::Delete { path, .. } if path == path::ROOT => Err(OpError::BadArguments),
        Op::Create { data: Some(data), .. } | Op::SetData { data: Some(data), .. }
            if data.len() > MAX_DATA_BYTES =>
        {
            Err(OpError::TooLarge)
        }
        _ => Ok(()),
    }
}

fn check_path(path: &str) -> Result<(), OpError> {
    if path::is_valid(path) { Ok(()) } else { Err(OpError::BadArguments) }
}

/// The first frame of a connection. `last_zxid` is the newest state that the session has seen: a server that is behind
/// it refuses the connection.
pub(super) fn connect(last_zxid: i64, timeout_ms: i32, resumed: Option<&SessionCredentials>) -> Bytes {
    let mut frame = FrameWriter::new();
    frame.int(0);
    frame.long(last_zxid);
    frame.int(timeout_ms);
    match resumed {
        Some(session) => {
            frame.long(session.id.0);
            frame.buffer(Some(&session.password));
        }
        None => {
            frame.long(0);
            frame.buffer(Some(&[0; 16]));
        }
    }
    // A server that has lost its quorum, and could only tell old news, will not do.
    frame.bool(false);
    frame.finish()
}

/// A sign of life.
pub(super) fn ping() -> Bytes {
    header(xid::PING, operation::PING).finish()
}

/// The orderly end of a session.
pub(super) fn close_session(number: i32) -> Bytes {
    header(number, operation::CLOSE_SESSION).finish()
}

/// The frame of a request that [`check`] has accepted.
pub(super) fn encode(number: i32, request: &Request, chroot: &Chroot) -> Bytes {
    match request {
        Request::Write(op) => single(number, op, chroot),
        Request::Multi(ops) => multi(number, ops, chroot),
        Request::Get { path, watch } => read(number, operation::GET_DATA, path, *watch, chroot),
        Request::Exists { path, watch } => read(number, operation::EXISTS, path, *watch, chroot),
        Request::Children { path, watch } => {
            read(number, operation::GET_CHILDREN_AND_STAT, path, *watch, chroot)
        }
    }
}

fn header(number: i32, operation: i32) -> FrameWriter {
    let mut frame = FrameWriter::new();
    frame.int(number);
    frame.int(operation);
    frame
}

fn read(number: i32, operation: i32, path: &str, watch: bool, chroot: &Chroot) -> Bytes {
    let mut frame = header(number, operation);
    frame.text(&chroot.outward(path));
    frame.bool(watch);
    frame.finish()
}

fn single(number: i32, op: &Op, chroot: &Chroot) -> Bytes {
    let operation = match op {
        Op::Create { .. } => operation::CREATE_AND_STAT,
        Op::SetData { .. } => operation::SET_DATA,
        Op::Delete { .. } => operation::DELETE,
        // Alone it is an operation of servers among themselves.
        Op::Check { .. } => return multi(number, std::slice::from_ref(op), chroot),
    };
    let mut frame = header(number, operation);
    put_op(&mut frame, op, chroot);
    frame.finish()
}

fn multi(number: i32, ops: &[Op], chroot: &Chroot) -> Bytes {
    let mut frame = header(number, operation::MULTI);
    let part = |frame: &mut FrameWriter, operation, is_last| {
        frame.int(operation);
        frame.bool(is_last);
        frame.int(-1);
    };
    for op in ops {
        let operation = match op {
            Op::Create { .. } => operation::CREATE,
            Op::SetData { .. } => operation::SET_DATA,
            Op::Delete { .. } => operation::DELETE,
            Op::Check { .. } => operation::CHECK,
        };
        part(&mut frame, operation, false);
        put_op(&mut frame, op, chroot);
    }
    part(&mut frame, operation::ERROR, true);
    frame.finish()
}

fn put_op(frame: &mut FrameWriter, op: &Op, chroot: &Chroot) {
    frame.text(&chroot.outward(op.path()));
    match op {
        Op::Create { data, mode, .. } => {
            frame.buffer(data.as_deref());
            // One entry: anyone may do anything.
            frame.int(1);
            frame.int(ALL_PERMISSIONS);
            frame.text("world");
            frame.text("anyone");
            frame.int(create_flags(*mode));
        }
        Op::SetData { data, version, .. } => {
            frame.buffer(data.as_deref());
            frame.int(version.unwrap_or(ANY_VERSION));
        }
        Op::Delete { version, .. } | Op::Check { version, .. } => {
            frame.int(version.unwrap_or(ANY_VERSION));
        }
    }
}

fn create_flags(mode: CreateMode) -> i32 {
    i32::from(mode.is_ephemeral()) | (i32::from(mode.is_sequential()) << 1)
}

/// A watch that a new connection sets again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchList {
    /// For changes of the data of a znode that was there.
    Data,
    /// For the creation of a znode that was not there.
    Absent,
    /// For changes among the children.
    Children,
}

/// The frames that set watches again on a new connection; whatever happened since `last_zxid` fires them at once.
pub(super) fn set_watches<'a>(
    last_zxid: i64,
    watches: impl Iterator<Item = (WatchList, &'a str)>,
    chroot: &Chroot,
) -> Vec<Bytes> {
    let mut frames = Vec::new();
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for (list, path) in watches {
        let path = chroot.outward(path).into_owned();
        bytes += path.len();
        batch.push((list, path));
        if bytes >= WATCHES_BYTES {
            frames.push(watches_frame(last_zxid, &std::mem::take(&mut batch)));
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        frames.push(watches_frame(last_zxid, &batch));
    }
    frames
}

fn watches_frame(last_zxid: i64, batch: &[(WatchList, String)]) -> Bytes {
    let mut frame = header(xid::SET_WATCHES, operation::SET_WATCHES);
    frame.long(last_zxid);
    for list in [WatchList::Data, WatchList::Absent, WatchList::Children] {
        let paths = batch.iter().filter(|(of, _)| *of == list);
        frame.int(i32::try_from(paths.clone().count()).unwrap_or(i32::MAX));
        for (_, path) in paths {
            frame.text(path);
        }
    }
    frame.finish()
}

/// The number after `number`; answers are told apart by it, and the negative ones have meanings of their own.
pub(super) fn next_number(number: i32) -> i32 {
    number.checked_add(1).unwrap_or(OK + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Value;

    #[test]
    fn what_no_server_takes_is_refused_with_its_place() {
        let fine = Op::set("/a", "", None);
        let multi = Request::Multi(vec![fine.clone(), Op::delete("/", None)]);
        assert_eq!(check(&multi), Err(StoreError::Multi { index: 1, error: OpError::BadArguments }));
        let large = Bytes::from(vec![0; MAX_DATA_BYTES + 1]);
        assert_eq!(check(&Request::set("/a", large.clone(), None)), Err(OpError::TooLarge.into()));
        assert_eq!(check(&Request::set("/a", large.slice(1..), None)), Ok(()));
        assert_eq!(
            check(&Request::create("/", Value::NULL, CreateMode::Persistent)),
            Err(OpError::NodeExists.into())
        );
        assert_eq!(check(&Request::create("/a/", "", CreateMode::PersistentSequential)), Ok(()));
        assert_eq!(check(&Request::get("/a/")), Err(OpError::BadArguments.into()));
    }

    #[test]
    fn watches_are_set_again_in_frames_that_a_server_takes() {
        let path = format!("/{}", "x".repeat(1000));
        let watches = (0..1000).map(|_| (WatchList::Children, path.as_str()));
        let frames = set_watches(5, watches, &Chroot::default());
        assert_eq!(frames.len(), 8);
        assert!(frames.iter().all(|frame| frame.len() < 200 * 1024));
        assert!(set_watches(5, std::iter::empty(), &Chroot::default()).is_empty());
    }

    #[test]
    fn numbers_start_again_above_zero() {
        assert_eq!(next_number(i32::MAX), 1);
    }
}

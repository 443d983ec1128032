//! The store with sockets: servers that are not there, overload, and a thread that ends.

use crate::store::{Blocking, EventSink, MAX_WAITING_REQUESTS, Request, Store, StoreError};
use crate::zookeeper::jute::{FrameReader, FrameWriter};
use crate::zookeeper::{ConnectError, ZooKeeperOptions, ZooKeeperStore};
use bytes::Bytes;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::Duration;

fn silent() -> EventSink {
    Arc::new(|_| {})
}

fn options(connect: &str) -> ZooKeeperOptions {
    let mut options = ZooKeeperOptions::new(connect.parse().unwrap());
    options.connection_timeout = Duration::from_secs(20);
    options
}

/// A server that gives one session and then answers nothing; `reads` tells of each frame.
fn mute_server(reads: mpsc::Sender<usize>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_frame(&mut stream).unwrap();
        let mut greeting = FrameWriter::new();
        greeting.int(0);
        greeting.int(600_000);
        greeting.long(7);
        greeting.buffer(Some(&[1; 16]));
        greeting.bool(false);
        stream.write_all(&greeting.finish()).unwrap();
        while let Ok(length) = read_frame(&mut stream) {
            if reads.send(length).is_err() {
                break;
            }
        }
    });
    address
}

fn read_frame(stream: &mut TcpStream) -> std::io::Result<usize> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let length = FrameReader(Bytes::copy_from_slice(&head)).int().unwrap();
    let mut body = vec![0; usize::try_from(length).unwrap()];
    stream.read_exact(&mut body)?;
    Ok(body.len())
}

#[test]
fn an_ensemble_that_is_not_there_is_one_line_with_the_reason() {
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let mut options = options(&format!("{free}/kafka"));
    options.connection_timeout = Duration::from_millis(300);
    let Err(error) = ZooKeeperStore::connect(&options, silent()) else { panic!("nobody is there") };
    assert!(matches!(error, ConnectError::NoSession { .. }));
    let line = error.to_string();
    assert!(line.starts_with(&format!("no session with ZooKeeper {free}/kafka within 300 ms: ")), "{line}");
    assert!(line.contains("refused") && !line.contains('\n'), "{line}");
}

#[test]
fn requests_beyond_the_limit_are_refused_at_once_and_no_request_is_left_without_an_answer() {
    let (reads, _served) = mpsc::channel();
    let store = ZooKeeperStore::connect(&options(&mute_server(reads)), silent()).unwrap();
    let (sender, answers) = mpsc::channel();
    for number in 0..=MAX_WAITING_REQUESTS {
        let sender = sender.clone();
        store.submit(Request::exists("/"), Box::new(move |answer| sender.send((number, answer)).unwrap()));
    }
    assert_eq!(answers.try_recv(), Ok((MAX_WAITING_REQUESTS, Err(StoreError::Overloaded))));
    drop((store, sender));
    let rest: Vec<_> = answers.iter().collect();
    assert_eq!(rest.len(), MAX_WAITING_REQUESTS);
    assert!(rest.iter().enumerate().all(|(at, (number, _))| at == *number));
    assert!(rest.iter().all(|(_, answer)| *answer == Err(StoreError::Closed)));
}

#[test]
fn a_store_may_be_closed_by_the_receiver_of_an_answer() {
    let (reads, served) = mpsc::channel();
    let store = Arc::new(ZooKeeperStore::connect(&options(&mute_server(reads)), silent()).unwrap());
    let (sender, answers) = mpsc::channel();
    let closing = store.clone();
    let close = move |answer| {
        closing.close();
        sender.send(answer).unwrap();
    };
    store.submit(Request::get("malformed"), Box::new(close));
    answers.recv_timeout(Duration::from_secs(20)).unwrap().unwrap_err();
    assert_eq!(
        served.recv_timeout(Duration::from_secs(20)).unwrap(),
        8,
        "the end of the session is asked for"
    );
    assert_eq!(Blocking::new(&*store).exists("/"), Err(StoreError::Closed));
    assert_eq!(store.session_id(), None);
}

//! What the remedy for stalled disks stands on: work from outside wakes a thread of the runtime, and that one watches the
//! sockets that a caught thread was watching.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How long an answer may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn sockets_are_watched_again_when_work_comes_from_outside() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (release, held) = mpsc::channel::<()>();
    let (catch, caught) = mpsc::channel();
    let held = Arc::new(Mutex::new(held));
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (held, catch) = (Arc::clone(&held), catch.clone());
            tokio::spawn(async move {
                while let Ok(byte) = stream.read_u8().await {
                    if byte == b'c' {
                        catch.send(()).unwrap();
                        // The end of the test's half lets it go.
                        let _ = held.lock().unwrap().recv();
                    }
                    stream.write_u8(byte).await.unwrap();
                }
            });
        }
    });
    let mut other = TcpStream::connect(address).unwrap();
    other.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut first = TcpStream::connect(address).unwrap();
    first.write_all(b"c").unwrap();
    caught.recv().unwrap();
    other.write_all(b"e").unwrap();
    let start = Instant::now();
    while other.read(&mut [0]).is_err() {
        assert!(start.elapsed() < PATIENCE, "nobody watches the sockets");
        drop(runtime.handle().spawn(async {}));
    }
    drop(release);
    first.read_exact(&mut [0]).unwrap();
}

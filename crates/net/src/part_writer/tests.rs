use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::*;

/// The first bytes of a file.
struct Start(std::fs::File, u64);

impl RangeSource for Start {
    fn len(&self) -> u64 {
        self.1
    }

    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        self.0.read_at(buf, at)
    }

    fn fd(&self) -> Option<(BorrowedFd<'_>, u64)> {
        Some((self.0.as_fd(), 0))
    }
}

fn range(bytes: &[u8]) -> Part {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Part::Range(Box::new(Start(file, bytes.len() as u64)))
}

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connect = TcpStream::connect(listener.local_addr().unwrap());
    let (ours, theirs) = tokio::join!(listener.accept(), connect);
    (ours.unwrap().0, theirs.unwrap())
}

/// Writes all that is queued.
async fn flush(writer: &mut PartWriter, stream: &mut TcpStream, counters: &ListenerCounters) {
    std::future::poll_fn(|cx| writer.poll_flush(cx, stream, counters).1).await.unwrap();
    assert!(writer.is_empty());
    assert_eq!(writer.queued, 0);
}

#[tokio::test]
async fn a_cold_range_is_read_by_the_pool_and_sent_all_the_same() {
    for mode in [RangeMode::Copy, RangeMode::Sendfile { from: 0 }] {
        let (mut ours, mut theirs) = pair().await;
        let (mut writer, counters) = (PartWriter::new(mode), ListenerCounters::default());
        let bytes: Vec<u8> = (0..1_000_000u32).map(|i| (i % 249) as u8).collect();
        writer.push(vec![range(&bytes)]).unwrap();
        // The size goes out first; then the range is in front, and called cold whatever the kernel thinks.
        let size = std::future::poll_fn(|cx| writer.poll_step(cx, &mut ours, &counters));
        let Step::Wrote(count) = size.await.unwrap() else { panic!("nothing written") };
        writer.advance(count);
        while !matches!(writer.pieces.front(), Some(Piece::Range { .. })) {
            let step = std::future::poll_fn(|cx| writer.poll_step(cx, &mut ours, &counters)).await.unwrap();
            let Step::Wrote(count) = step else { panic!("nothing written") };
            writer.advance(count);
        }
        writer.warm_front(&counters);
        assert!(matches!(writer.pieces.front(), Some(Piece::Warming { .. })));
        let reading = tokio::spawn(async move {
            let mut received = vec![0; 4 + 1_000_000];
            theirs.read_exact(&mut received).await.unwrap();
            received
        });
        flush(&mut writer, &mut ours, &counters).await;
        assert_eq!(counters.cold_ranges.get(), 1);
        let received = reading.await.unwrap();
        assert_eq!(received[..4], 1_000_000i32.to_be_bytes());
        assert!(received[4..] == bytes, "{mode:?}");
    }
}

#[tokio::test]
async fn many_small_answers_share_one_write() {
    let (mut ours, mut theirs) = pair().await;
    let (mut writer, counters) = (PartWriter::new(RangeMode::default()), ListenerCounters::default());
    for n in 0..8u8 {
        writer.push(vec![Part::Bytes(Bytes::copy_from_slice(&[n; 10])), range(&[n + 100; 20])]).unwrap();
    }
    let step = std::future::poll_fn(|cx| writer.poll_step(cx, &mut ours, &counters)).await.unwrap();
    assert!(matches!(step, Step::Wrote(272)));
    let mut received = [0; 272];
    theirs.read_exact(&mut received).await.unwrap();
    for (n, answer) in (0u8..).zip(received.chunks(34)) {
        assert_eq!(answer[..4], 30i32.to_be_bytes());
        assert_eq!(answer[4..14], [n; 10]);
        assert_eq!(answer[14..], [n + 100; 20]);
    }
}

#[tokio::test]
async fn an_answer_too_long_for_its_size_is_refused() {
    struct Endless;
    impl RangeSource for Endless {
        fn len(&self) -> u64 {
            1 << 30
        }
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }
        fn fd(&self) -> Option<(BorrowedFd<'_>, u64)> {
            None
        }
    }
    let mut writer = PartWriter::new(RangeMode::default());
    let parts = || vec![Part::Range(Box::new(Endless)), Part::Range(Box::new(Endless))];
    assert_eq!(writer.push(parts()), Err(TooLong));
    assert!(writer.is_empty());
    let mut almost = parts();
    almost.pop();
    assert_eq!(writer.push(almost), Ok(()));
    assert!(!writer.has_room());
}

#[test]
fn only_a_read_that_would_wait_is_cold() {
    assert_eq!(attempt(Ok(5)).unwrap(), Attempt::Read(5));
    assert_eq!(attempt(Err(Errno::AGAIN)).unwrap(), Attempt::Cold);
    assert_eq!(attempt(Err(Errno::OPNOTSUPP)).unwrap(), Attempt::Unknown);
    assert_eq!(attempt(Err(Errno::IO)).unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
}

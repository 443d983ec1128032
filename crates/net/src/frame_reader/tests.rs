use std::collections::VecDeque;
use std::task::Waker;

use super::*;

const LIMIT: usize = 1_000_000;

/// Gives one scripted chunk per read, as far as it fits, then nothing; `None` is the end.
struct Script(VecDeque<Option<Vec<u8>>>);

impl Script {
    fn new(chunks: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self(chunks.into_iter().map(Some).collect())
    }
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.0.pop_front() {
            None => Poll::Pending,
            Some(None) => Poll::Ready(Ok(())),
            Some(Some(mut chunk)) => {
                let rest = chunk.split_off(chunk.len().min(buf.remaining()));
                buf.put_slice(&chunk);
                if !rest.is_empty() {
                    self.0.push_front(Some(rest));
                }
                Poll::Ready(Ok(()))
            }
        }
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = i32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// Reads all that the script gives, and takes every frame.
fn read_all(reader: &mut FrameReader, script: &mut Script) -> Vec<Bytes> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut frames = Vec::new();
    loop {
        while let Some(frame) = reader.take() {
            frames.push(frame);
        }
        if reader.failure().is_some() {
            return frames;
        }
        match reader.poll_fill(&mut cx, script) {
            Poll::Ready(Ok(Fill::Bytes(_))) => {}
            _ => return frames,
        }
    }
}

#[test]
fn frames_arrive_whole_however_the_stream_is_cut() {
    let bodies = [body(1), body(7), body(5000), body(3), body(20_000), body(300_000), body(9)];
    let stream: Vec<u8> = bodies.iter().flat_map(|body| framed(body)).collect();
    for cut in [1, 2, 3, 5, 1448, 4096, 8192, 65_536, stream.len()] {
        let mut script = Script::new(stream.chunks(cut).map(<[u8]>::to_vec));
        let frames = read_all(&mut FrameReader::new(LIMIT), &mut script);
        assert_eq!(frames, bodies, "cut into pieces of {cut}");
    }
}

#[test]
fn a_small_request_takes_one_read() {
    let mut reader = FrameReader::new(LIMIT);
    let mut script = Script::new([framed(&body(200))]);
    let fill = reader.poll_fill(&mut Context::from_waker(Waker::noop()), &mut script);
    assert!(matches!(fill, Poll::Ready(Ok(Fill::Bytes(204)))));
    assert_eq!(reader.take().unwrap(), body(200));
}

#[test]
fn a_frame_may_be_as_large_as_the_limit_and_no_larger() {
    let mut reader = FrameReader::new(100);
    assert_eq!(read_all(&mut reader, &mut Script::new([framed(&body(100))])).len(), 1);
    assert_eq!(reader.failure(), None);
    assert_eq!(read_all(&mut reader, &mut Script::new([framed(&body(101))])).len(), 0);
    assert_eq!(reader.failure(), Some(FrameError::TooLarge { size: 101, limit: 100 }));
}

#[test]
fn a_bad_size_is_told_after_the_frames_before_it() {
    for (prefix, failure) in [
        (-1i32, FrameError::Negative(-1)),
        (i32::MIN, FrameError::Negative(i32::MIN)),
        (0, FrameError::Empty),
        (i32::MAX, FrameError::TooLarge { size: i32::MAX, limit: LIMIT }),
    ] {
        let mut stream = framed(b"first");
        stream.extend_from_slice(&prefix.to_be_bytes());
        stream.extend_from_slice(b"never read as a frame");
        let mut reader = FrameReader::new(LIMIT);
        let mut script = Script::new([stream]);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(reader.poll_fill(&mut cx, &mut script).is_ready());
        assert_eq!(reader.failure(), None, "the first frame is not taken yet");
        assert_eq!(reader.take().unwrap(), "first");
        assert_eq!(reader.failure(), Some(failure));
        assert_eq!(reader.take(), None);
    }
}

#[test]
fn the_error_names_the_protocol_that_was_spoken() {
    let told = |bytes: &[u8]| {
        let mut reader = FrameReader::new(104_857_600);
        read_all(&mut reader, &mut Script::new([bytes.to_vec()]));
        reader.failure().unwrap().to_string()
    };
    assert!(told(b"GET / HTTP/1.1\r\n").contains("HTTP"));
    assert!(told(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]).contains("TLS"));
    assert!(told(b"SSH-2.0-OpenSSH").contains("SSH"));
    assert!(!told(&[0x7f, 0xff, 0xff, 0xff]).contains("first bytes"));
}

#[test]
fn memory_follows_what_has_arrived_not_what_was_claimed() {
    let claim: i32 = 100_000_000;
    let mut reader = FrameReader::new(104_857_600);
    let mut cx = Context::from_waker(Waker::noop());
    let mut script = Script::new([claim.to_be_bytes().to_vec()]);
    assert!(reader.poll_fill(&mut cx, &mut script).is_ready());
    assert!(reader.memory() <= SMALL_STEP, "{} bytes for a claim alone", reader.memory());
    assert_eq!(reader.begun(), Some(usize::try_from(claim).unwrap()));

    let mut arrived = 0;
    for chunk in [100, 4000, 100_000, 1_000_000, 5_000_000] {
        let mut script = Script::new([body(chunk)]);
        while !script.0.is_empty() {
            assert!(reader.poll_fill(&mut cx, &mut script).is_ready());
        }
        arrived += chunk;
        let allowed = (arrived * GROWTH).max(LARGE_STEP);
        assert!(reader.memory() <= allowed, "{} bytes for {arrived} arrived", reader.memory());
    }
}

#[test]
fn nothing_is_held_between_frames() {
    let mut reader = FrameReader::new(LIMIT);
    let small: Vec<u8> = (0..2000).flat_map(|_| framed(b"x")).collect();
    let frames = read_all(&mut reader, &mut Script::new([small, framed(&body(900_000))]));
    assert_eq!(frames.len(), 2001);
    assert!(reader.memory() <= KEPT_READY * 2 * size_of::<Bytes>(), "{} bytes", reader.memory());
}

#[test]
fn the_end_is_told_also_within_a_frame() {
    let mut reader = FrameReader::new(LIMIT);
    let mut cx = Context::from_waker(Waker::noop());
    let mut script = Script(VecDeque::from([Some(vec![0, 0, 1, 0, 7, 7]), None]));
    assert!(matches!(reader.poll_fill(&mut cx, &mut script), Poll::Ready(Ok(Fill::Bytes(6)))));
    assert!(matches!(reader.poll_fill(&mut cx, &mut script), Poll::Ready(Ok(Fill::End))));
    assert_eq!(reader.take(), None);
}

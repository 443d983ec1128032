//! Replaying encoded requests: a few connections, a few requests in flight on each, one thread a connection.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use interop::raw;
use kafka_protocol::messages::{ProduceResponse, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Request};

/// Requests that wait for their answers on one connection.
const IN_FLIGHT: u64 = 5;

/// Version of the produce requests that are replayed.
pub(crate) const PRODUCE_VERSION: i16 = 9;

/// What one connection sends: its frames in turn, until `requests` are sent.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Whole frames with their sizes.
    pub(crate) frames: Vec<Bytes>,
    /// How many requests are sent.
    pub(crate) requests: u64,
}

/// What a replay moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moved {
    /// Requests answered.
    pub(crate) requests: u64,
    /// Bytes of all responses.
    pub(crate) received: u64,
    /// From the common start to the last answer.
    pub(crate) seconds: f64,
}

/// Judges the body of a response (from the correlation id on).
pub(crate) type Judge = fn(&[u8]) -> Result<()>;

/// A frame ready for the socket.
pub(crate) fn encode<R: Request>(version: i16, request: &R) -> Result<Bytes> {
    let payload = raw::frame(version, 1, request)?;
    let mut frame = BytesMut::with_capacity(payload.len() + 4);
    frame.put_i32(i32::try_from(payload.len())?);
    frame.put_slice(&payload);
    Ok(frame.freeze())
}

/// Wants every partition of a produce response to be accepted.
pub(crate) fn produced(body: &[u8]) -> Result<()> {
    let mut bytes = Bytes::copy_from_slice(body);
    ResponseHeader::decode(&mut bytes, 1)?;
    let response = ProduceResponse::decode(&mut bytes, PRODUCE_VERSION)?;
    for partition in response.responses.iter().flat_map(|topic| &topic.partition_responses) {
        ensure!(partition.error_code == 0, "a produce was refused: {partition:?}");
    }
    Ok(())
}

/// Sends every plan over a connection of its own, all at once.
pub(crate) fn replay(address: &str, plans: &[Plan], judge: Judge) -> Result<Moved> {
    let plans: Vec<_> = plans.iter().map(|plan| (address.to_owned(), plan.clone())).collect();
    replay_at(&plans, judge)
}

/// As [`replay`], each plan at an address of its own.
pub(crate) fn replay_at(plans: &[(String, Plan)], judge: Judge) -> Result<Moved> {
    let barrier = Barrier::new(plans.len() + 1);
    thread::scope(|scope| {
        let workers: Vec<_> = plans
            .iter()
            .map(|(address, plan)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let stream = TcpStream::connect(address);
                    barrier.wait();
                    connection(stream?, plan, judge)
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        let mut moved = Moved { requests: 0, received: 0, seconds: 0.0 };
        for worker in workers {
            let received = worker.join().map_err(|_| anyhow!("a load thread panicked"))??;
            moved.received += received;
        }
        moved.seconds = start.elapsed().as_secs_f64();
        moved.requests = plans.iter().map(|(_, plan)| plan.requests).sum();
        Ok(moved)
    })
}

fn connection(stream: TcpStream, plan: &Plan, judge: Judge) -> Result<u64> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::with_capacity(64 << 10, stream);
    let mut frames = plan.frames.iter().cycle();
    let (mut sent, mut answered, mut received) = (0, 0, 0);
    let mut body = Vec::new();
    while answered < plan.requests {
        while sent < plan.requests && sent - answered < IN_FLIGHT {
            writer.write_all(frames.next().context("a plan without frames")?)?;
            sent += 1;
        }
        received += read_response(&mut reader, &mut body)?;
        judge(&body)?;
        answered += 1;
    }
    Ok(received)
}

/// Reads one response into `body`; returns its size on the wire.
pub(crate) fn read_response(reader: &mut impl Read, body: &mut Vec<u8>) -> Result<u64> {
    let mut size = [0; 4];
    reader.read_exact(&mut size).context("the broker closed the connection")?;
    let size = usize::try_from(i32::from_be_bytes(size))?;
    body.resize(size, 0);
    reader.read_exact(body)?;
    Ok(u64::try_from(size + 4)?)
}

//! Hostile bytes: every key and version with every count and length at its largest, to a broker whose address
//! space ends at 4 GB. The connection is closed, the process lives, and its memory stays.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::broker::{Broker, Kind, Options};
use interop::raw::{Answer, Connection};
use kafka_protocol::messages::ApiVersionsRequest;
use wire::api::ApiKey;
use wire::header::{RequestHeader, encode_request_header};
use wire::messages::{Kind as MessageKind, random_any};
use wire::random::Rng;
use wire::{Encoder, Str};

const ADDRESS_SPACE: u64 = 4 << 30;
/// By how much resident memory may grow over all of it, in bytes.
const GROWTH: u64 = 10_000_000;
const SILENCE: Duration = Duration::from_secs(20);

/// Frames of one key and version, each with one count or length that claims as much as can be said.
fn hostile_frames(key: ApiKey, version: i16, seed: u64) -> Result<Vec<Vec<u8>>> {
    let mut header = Encoder::new();
    let client_id = Some(Str::from("hostile"));
    let request = RequestHeader { api_key: key.code(), api_version: version, correlation_id: 7, client_id };
    encode_request_header(&mut header, &request)?;
    let header = header.into_bytes();
    let mut body = Encoder::new();
    let message = random_any(key.code(), version, MessageKind::Request, &mut Rng::new(seed));
    message.context("no such message")?.encode(&mut body, version)?;
    let positions = body.length_positions().to_vec();
    let body = body.into_bytes();
    let mut frames = Vec::new();
    for position in positions {
        let claims: &[&[u8]] = match (position.flexible, position.end - position.start) {
            (true, _) => &[&[0xff, 0xff, 0xff, 0xff, 0x0f], &[0xff, 0xff, 0xff, 0xff, 0x07]],
            (false, 2) => &[&[0x7f, 0xff]],
            (false, _) => &[&[0x7f, 0xff, 0xff, 0xff]],
        };
        let before = body.get(..position.start).context("a position outside")?;
        let behind = body.get(position.end..).context("a position outside")?;
        frames.extend(claims.iter().map(|claim| [&header[..], before, claim, behind].concat()));
    }
    Ok(frames)
}

fn advertised(address: &str) -> Result<Vec<(ApiKey, i16, i16)>> {
    let answer = Connection::open(address)?.call(0, &ApiVersionsRequest::default())?;
    let ranges = answer.api_keys.iter();
    ranges
        .map(|range| {
            let key = ApiKey::from_code(range.api_key).context("an unknown key is advertised")?;
            Ok((key, range.min_version, range.max_version))
        })
        .collect()
}

fn resident(broker: &mut Broker) -> Result<u64> {
    broker.process()?.resident_bytes()
}

fn must_close(address: &str, frame: &[u8], about: &str) -> Result<()> {
    let mut connection = Connection::open(address)?;
    connection.set_answer_limit(SILENCE)?;
    connection.send(frame)?;
    let answer = connection.receive()?;
    ensure!(answer == Answer::Closed, "{about}: {answer:?} instead of a closed connection");
    Ok(())
}

#[test]
fn counts_that_lie_close_the_connection_and_take_no_memory() -> Result<()> {
    let options = Options { address_space: Some(ADDRESS_SPACE), ..Options::default() };
    let mut broker = Broker::start(Kind::Blumfeld, options)?;
    let address = broker.bootstrap();
    let keys = advertised(&address)?;
    // What a first connection and a first refusal cost for good is not counted.
    for (key, version, _) in &keys {
        for frame in hostile_frames(*key, *version, 0)? {
            must_close(&address, &frame, &format!("{key:?} v{version}"))?;
        }
    }
    let before = resident(&mut broker)?;
    let mut sent = 0;
    for (key, lowest, highest) in keys {
        for version in lowest..=highest {
            for (seed, frame) in (1..7).flat_map(|seed| {
                hostile_frames(key, version, seed).into_iter().flatten().map(move |f| (seed, f))
            }) {
                must_close(&address, &frame, &format!("{key:?} v{version} seed {seed}"))?;
                sent += 1;
            }
        }
    }
    ensure!(sent > 2_000, "only {sent} hostile frames");
    ensure!(broker.process()?.is_running()?, "the broker ended:\n{}", broker.process()?.log_tail(30));
    let grown = resident(&mut broker)?.saturating_sub(before);
    ensure!(grown < GROWTH, "{grown} bytes more after {sent} hostile frames");
    Connection::open(&address)?.call(0, &ApiVersionsRequest::default())?;
    println!("{sent} hostile frames, {grown} bytes more");
    broker.stop()
}

#[test]
fn sizes_that_lie_take_no_memory() -> Result<()> {
    let options = Options { address_space: Some(ADDRESS_SPACE), ..Options::default() };
    let mut broker = Broker::start(Kind::Blumfeld, options)?;
    let address = broker.bootstrap();
    let before = resident(&mut broker)?;
    for size in [i32::MAX, -1, i32::MIN, 104_857_601, 0x4745_5420] {
        let mut connection = Connection::open(&address)?;
        connection.set_answer_limit(SILENCE)?;
        connection.send_bytes(&size.to_be_bytes())?;
        ensure!(connection.receive()? == Answer::Closed, "size {size} is waited for");
    }
    // The largest size that is allowed, promised on many connections, of which little ever comes.
    let mut waiting = Vec::new();
    for _ in 0..100 {
        let mut connection = Connection::open(&address)?;
        connection.send_bytes(&104_857_600_i32.to_be_bytes())?;
        connection.send_bytes(&[0; 100])?;
        waiting.push(connection);
    }
    Connection::open(&address)?.call(0, &ApiVersionsRequest::default())?;
    let grown = resident(&mut broker)?.saturating_sub(before);
    ensure!(grown < GROWTH, "{grown} bytes more for {} promised frames", waiting.len());
    drop(waiting);
    broker.stop()
}

//! Requests that are well formed and ask for too much, sent to a Blumfeld process whose address space is
//! limited to 4 GB: vast numbers, compressed bombs, compressed garbage. Each gets its answer, the process
//! lives, holds no more memory than before, and serves whoever comes next.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::{Bytes, BytesMut};
use interop::batch::{Draft, now_ms, seal};
use interop::broker::{Broker, Kind, Options};
use interop::calls;
use interop::raw::Connection;
use interop::wait;
use kafka_protocol::messages::CreatePartitionsRequest;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use wire::batch::{BatchBuilder, Compression};
use wire::random::Rng;
use wire::types::Millis;

const ADDRESS_SPACE: u64 = 4 << 30;
/// By how much resident memory may grow over all of it, in bytes.
const GROWTH: u64 = 10_000_000;
/// How long freed memory may take until the system has it back.
const PURGE_LIMIT: Duration = Duration::from_secs(20);
const TOPIC: &str = "victim";
const RECOMPRESSED: &str = "recompressed";
const MESSAGE_TOO_LARGE: i16 = 10;
const INVALID_PARTITIONS: i16 = 37;

/// A broker under attack, and its memory before.
struct Victim {
    broker: Broker,
    resident: u64,
}

impl Victim {
    /// A broker that has served a little, so that its memory is what it needs for serving.
    fn start() -> Result<Self> {
        let options = Options { address_space: Some(ADDRESS_SPACE), ..Options::default() };
        let mut broker = Broker::start(Kind::Blumfeld, options)?;
        calls::create_topic(&broker.bootstrap(), TOPIC, 1, &[])?;
        calls::create_topic(&broker.bootstrap(), RECOMPRESSED, 1, &[("compression.type", "gzip")])?;
        serve(&broker.bootstrap(), 50)?;
        let resident = broker.process()?.resident_bytes()?;
        Ok(Self { broker, resident })
    }

    fn connect(&self) -> Result<Connection> {
        Connection::open(&self.broker.bootstrap())
    }

    /// Alive, no larger than before, and serving.
    fn judge(&mut self, about: &str) -> Result<()> {
        let most = self.resident + GROWTH;
        let bootstrap = self.broker.bootstrap();
        serve(&bootstrap, 5)?;
        let process = self.broker.process()?;
        ensure!(process.is_running()?, "the process ended:\n{}", process.log_tail(30));
        let what = format!("a resident size below {} KiB after {about}", most >> 10);
        let is_small = || {
            // A thread gives freed memory back with its next work, so there is some for each.
            serve(&bootstrap, 1)?;
            Ok((process.resident_bytes()? < most).then_some(()))
        };
        wait::until(&what, PURGE_LIMIT, is_small)
            .with_context(|| format!("now {} KiB", process.resident_bytes().unwrap_or(0) >> 10))
    }
}

/// Writes and reads as a client does.
fn serve(bootstrap: &str, times: usize) -> Result<()> {
    let mut connection = Connection::open(bootstrap)?;
    let batch = Draft::of_values(now_ms(), &[b"a value"]).build();
    for _ in 0..times {
        let from = calls::end_offset(bootstrap, TOPIC, 0)?;
        let answer = calls::produce(&mut connection, TOPIC, 0, batch.clone())?;
        ensure!((answer.error_code, answer.base_offset) == (0, from), "{answer:?}");
        let read = calls::fetch_all(bootstrap, TOPIC, 0, from)?;
        ensure!(read.iter().any(|batch| batch.ends_with(b"a value\0")), "what was written is not read");
    }
    Ok(())
}

#[test]
fn more_partitions_than_anybody_could_serve() -> Result<()> {
    let mut victim = Victim::start()?;
    for partitions in [i32::MAX, 1 << 28] {
        let mut connection = victim.connect()?;
        let response = connection.call(4, &calls::create_topics_request("vast", partitions, &[]))?;
        let code = response.topics.first().context("no topic in the answer")?.error_code;
        ensure!(code == INVALID_PARTITIONS, "{partitions} partitions: error {code}");
        let topic = CreatePartitionsTopic::default()
            .with_name(calls::topic_name(TOPIC))
            .with_count(partitions)
            .with_assignments(None);
        let request = CreatePartitionsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000);
        let response = connection.call(1, &request)?;
        let code = response.results.first().context("no topic in the answer")?.error_code;
        ensure!(code == INVALID_PARTITIONS, "{partitions} partitions more: error {code}");
    }
    victim.judge("vast numbers")?;
    victim.broker.stop()
}

fn batch(compression: Compression, value: &[u8], count: usize) -> Result<Bytes> {
    let mut builder = BatchBuilder::new(compression);
    for _ in 0..count {
        builder.append(Millis(1_700_000_000_000), None, Some(value));
    }
    Ok(builder.build()?.bytes)
}

#[test]
fn compressed_bombs() -> Result<()> {
    let mut victim = Victim::start()?;
    let zeros = vec![0; 30 << 20];
    // The last one is beyond what is read of any batch.
    let bombs = [
        ("gzip", Compression::Gzip { level: 6 }, 1, 0),
        ("lz4", Compression::Lz4 { level: 9 }, 1, 0),
        ("zstd", Compression::Zstd { level: 3 }, 1, 0),
        ("large zstd", Compression::Zstd { level: 3 }, 10, MESSAGE_TOO_LARGE),
    ];
    for (what, codec, count, expected) in bombs {
        let bomb = batch(codec, &zeros, count)?;
        ensure!(bomb.len() < 1_000_000, "{what} takes {} bytes", bomb.len());
        for topic in [TOPIC, RECOMPRESSED] {
            let answer = calls::produce(&mut victim.connect()?, topic, 0, bomb.clone())?;
            ensure!(answer.error_code == expected, "{what} to {topic}: {answer:?}");
            victim.judge(&format!("{what} to {topic}"))?;
        }
    }
    victim.broker.stop()
}

#[test]
fn compressed_garbage() -> Result<()> {
    let mut victim = Victim::start()?;
    let mut connection = victim.connect()?;
    let mut rng = Rng::new(23);
    let codecs = [
        Compression::Gzip { level: 6 },
        Compression::Snappy,
        Compression::Lz4 { level: 9 },
        Compression::Zstd { level: 3 },
    ];
    let good = codecs.map(|codec| batch(codec, b"some value", 20));
    let good = good.into_iter().collect::<Result<Vec<_>>>()?;
    for good in good.iter().cycle().take(400) {
        let mut changed = BytesMut::from(&good[..]);
        for _ in 0..=rng.below(4) {
            // From the attributes on: the length stays right, so that the batch is looked into.
            let at = 21 + rng.below(changed.len() - 21);
            *changed.get_mut(at).context("a byte")? = rng.i8().cast_unsigned();
        }
        seal(&mut changed);
        let topic = if rng.bool() { TOPIC } else { RECOMPRESSED };
        // Any answer will do: a changed batch may still be one.
        calls::produce(&mut connection, topic, 0, changed.freeze())?;
    }
    victim.judge("garbage")?;
    victim.broker.stop()
}

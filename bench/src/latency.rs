//! Time from request to acknowledgement at a fixed, modest rate.

use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use interop::batch::{Draft, now_ms};
use interop::calls;

use crate::Effort;
use crate::contender::Contender;
use crate::figures::{Figures, Goal, Row};
use crate::load::{self, PRODUCE_VERSION};

const RATE_PER_SECOND: u64 = 500;
const NAME: &str = "500 requests/s of one 1 KiB record: ack";

const ROWS: [(f64, Row); 3] = [
    (0.5, Row { name: NAME, unit: "ms p50", goal: Goal::RatioAtMost(0.7) }),
    (0.99, Row { name: NAME, unit: "ms p99", goal: Goal::RatioAtMost(0.12) }),
    (0.999, Row { name: NAME, unit: "ms p99.9", goal: Goal::RatioAtMost(0.08) }),
];

/// One run.
pub(crate) fn measure(contender: &mut Contender, effort: Effort, figures: &mut Figures) -> Result<()> {
    let topic = &format!("latency-{}", now_ms());
    calls::create_topic(&contender.address(), topic, 1, &[("file.delete.delay.ms", "0")])?;
    let batch = Draft::of_values(now_ms(), &[&[b'x'; 1024]]).build();
    let frame = load::encode(PRODUCE_VERSION, &calls::produce_request(topic, 0, batch, 1))?;
    let requests = RATE_PER_SECOND * effort.latency_seconds;
    let mut samples = run(&contender.address(), &frame, RATE_PER_SECOND, requests)?;
    samples.sort_unstable();
    for (share, row) in ROWS {
        let sample = quantile(&samples, share).context("no samples")?;
        figures.add(row, contender.kind(), sample.as_secs_f64() * 1e3);
    }
    calls::delete_topic(&contender.address(), topic)
}

/// The sample below which this share of them lies; they must be sorted.
pub(crate) fn quantile(samples: &[Duration], share: f64) -> Option<Duration> {
    let index = (samples.len() as f64 * share) as usize;
    samples.get(index.min(samples.len().saturating_sub(1))).copied()
}

/// Sends on schedule whatever the answers do, so that a stall is paid by every request that it holds up.
pub(crate) fn run(address: &str, frame: &[u8], rate_per_second: u64, requests: u64) -> Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut reader = stream.try_clone()?;
    let (sent_at, sent) = mpsc::channel::<Instant>();
    let gap = Duration::from_micros(1_000_000 / rate_per_second);
    thread::scope(|scope| {
        let answers = scope.spawn(move || -> Result<Vec<Duration>> {
            let (mut samples, mut body) = (Vec::new(), Vec::new());
            while samples.len() < usize::try_from(requests)? {
                load::read_response(&mut reader, &mut body)?;
                let now = Instant::now();
                load::produced(&body)?;
                samples.push(now - sent.recv()?);
            }
            Ok(samples)
        });
        let mut due = Instant::now();
        for _ in 0..requests {
            due += gap;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            sent_at.send(Instant::now())?;
            stream.write_all(frame)?;
        }
        answers.join().map_err(|_| anyhow!("the reading thread panicked"))?
    })
}

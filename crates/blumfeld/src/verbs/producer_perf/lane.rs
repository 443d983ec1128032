//! The way to one leader: batches go out one behind the other, several under way at a time, and each tells when it was
//! acknowledged.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use net::client::{Client, ClientError, Pending};
use tokio::sync::mpsc;
use tokio::time::Instant;
use wire::Str;
use wire::messages::ProduceRequest;
use wire::messages::produce_request::{PartitionProduceData, TopicProduceData};

/// Requests under way (`max.in.flight.requests.per.connection`).
const IN_FLIGHT: usize = 5;
/// Batches that wait before a lane, beyond those under way.
const WAITING: usize = 8;

/// Reports that a lane can have to make before its next batch is given to it: the room that it needs, so that it never
/// waits for whoever waits for it.
pub(super) const REPORTS: usize = IN_FLIGHT + WAITING + 2;

/// A batch that is ready.
#[derive(Debug)]
pub(super) struct Sealed {
    /// Its partition.
    pub(super) partition: i32,
    /// Its bytes.
    pub(super) bytes: Bytes,
    /// When each of its records was made.
    pub(super) made: Vec<Instant>,
    /// Bytes of the values.
    pub(super) value_bytes: u64,
}

/// A batch that was answered.
#[derive(Debug)]
pub(super) struct Done {
    /// When each of its records was made.
    pub(super) made: Vec<Instant>,
    /// Bytes of the values.
    pub(super) value_bytes: u64,
    /// When the answer came.
    pub(super) at: Instant,
    /// What the broker says: an error code, or 0.
    pub(super) code: i16,
}

/// What a lane reports: a batch that was answered, or why it has ended early.
pub(super) type Report = Result<Done, ClientError>;

/// See the module.
#[derive(Debug)]
pub(super) struct Lane {
    batches: mpsc::Sender<Sealed>,
    busy: Arc<AtomicUsize>,
}

/// How a lane produces.
#[derive(Clone, Debug)]
pub(super) struct LaneSettings {
    /// The topic.
    pub(super) topic: String,
    /// `acks`
    pub(super) acks: i16,
    /// `request.timeout.ms`
    pub(super) timeout_ms: i32,
}

impl Lane {
    /// Opens a lane over a connection; its task ends when the lane is dropped and all is answered.
    pub(super) fn open(client: Client, settings: LaneSettings, reports: mpsc::Sender<Report>) -> Self {
        let (batches, waiting) = mpsc::channel(WAITING);
        let busy = Arc::new(AtomicUsize::new(0));
        let task = Task { client, settings, waiting, under_way: VecDeque::new(), busy: Arc::clone(&busy) };
        tokio::spawn(async move {
            let mut task = task;
            if let Err(error) = task.run(&reports).await {
                // Nobody listens any more when the verb has ended.
                let _ = reports.send(Err(error)).await;
            }
        });
        Self { batches, busy }
    }

    /// Whether a batch would go out at once.
    pub(super) fn is_free(&self) -> bool {
        self.busy.load(Ordering::Relaxed) < IN_FLIGHT
    }

    /// Sends a batch, once there is room for it. False if the lane has ended.
    pub(super) async fn send(&self, batch: Sealed) -> bool {
        self.busy.fetch_add(1, Ordering::Relaxed);
        self.batches.send(batch).await.is_ok()
    }
}

struct Task {
    client: Client,
    settings: LaneSettings,
    waiting: mpsc::Receiver<Sealed>,
    under_way: VecDeque<(Sealed, Pending<ProduceRequest>)>,
    busy: Arc<AtomicUsize>,
}

impl Task {
    async fn run(&mut self, reports: &mpsc::Sender<Report>) -> Result<(), ClientError> {
        loop {
            // Reading an answer must not be broken off, so batches are taken as they lie there.
            while self.under_way.len() < IN_FLIGHT {
                let next = match self.under_way.is_empty() {
                    true => self.waiting.recv().await,
                    false => self.waiting.try_recv().ok(),
                };
                match next {
                    Some(batch) => self.post(batch, reports).await?,
                    None if self.under_way.is_empty() => return Ok(()),
                    None => break,
                }
            }
            let Some((batch, pending)) = self.under_way.pop_front() else { continue };
            let response = self.client.collect(pending).await?;
            let answers = response.responses.iter().flat_map(|topic| &topic.partition_responses);
            let code = answers.map(|answer| answer.error_code).find(|code| *code != 0).unwrap_or(0);
            self.report(batch, code, reports).await;
        }
    }

    async fn post(&mut self, batch: Sealed, reports: &mpsc::Sender<Report>) -> Result<(), ClientError> {
        let data = PartitionProduceData { index: batch.partition, records: Some(batch.bytes.clone()) };
        let request = ProduceRequest {
            transactional_id: None,
            acks: self.settings.acks,
            timeout_ms: self.settings.timeout_ms,
            topic_data: vec![TopicProduceData {
                name: Str::from(self.settings.topic.as_str()),
                partition_data: vec![data],
            }],
        };
        if self.settings.acks == 0 {
            self.client.send_unanswered(&request).await?;
            self.report(batch, 0, reports).await;
        } else {
            let pending = self.client.post(&request).await?;
            self.under_way.push_back((batch, pending));
        }
        Ok(())
    }

    async fn report(&self, batch: Sealed, code: i16, reports: &mpsc::Sender<Report>) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
        let done = Done { made: batch.made, value_bytes: batch.value_bytes, at: Instant::now(), code };
        // Nobody listens any more when the verb has ended.
        let _ = reports.send(Ok(done)).await;
    }
}

//! A producer for one topic: records are gathered in one batch a partition, and a flush sends what was gathered
//! and waits for it.
//!
//! With acks -1 it is idempotent (KIP-98): what is sent again after a lost answer is not appended twice. Records
//! with a key go where every client sends them; records without one stay in one partition for a batch, then move
//! on to the next (KIP-480).

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use net::client::ClientError;
use wire::Str;
use wire::batch::BatchBuilder;
use wire::error_code::ErrorCode;
use wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use wire::messages::produce_response::PartitionProduceResponse;
use wire::messages::{InitProducerIdRequest, ProduceRequest, ProduceResponse};
use wire::types::{Millis, Offset};

use super::offsets::{Leaders, leaders};
use super::partitioner::partition_of_key;
pub(crate) use super::producer_settings::ProducerSettings;
use super::{Attempts, Cluster, ClusterError, Topics, error_name, is_retriable, is_transient};

/// What a record takes in a batch beside its key, value and headers, at most.
const RECORD_OVERHEAD: usize = 40;
/// The fixed part of a batch.
const BATCH_OVERHEAD: usize = wire::batch::HEADER_LEN;

/// A record to be produced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NewRecord {
    /// The key; `None` is null.
    pub(crate) key: Option<Vec<u8>>,
    /// The value; `None` is null.
    pub(crate) value: Option<Vec<u8>>,
    /// The headers in order; a value of `None` is null.
    pub(crate) headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl NewRecord {
    /// The bytes it takes at most in a batch that is not compressed.
    fn size(&self) -> usize {
        let length = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
        let headers = self.headers.iter().map(|(key, value)| key.len() + length(value) + 10);
        length(&self.key) + length(&self.value) + headers.sum::<usize>() + RECORD_OVERHEAD
    }
}

/// What became of a batch.
#[derive(Debug)]
pub(crate) struct Sent {
    /// The partition.
    pub(crate) partition: i32,
    /// The number of records.
    pub(crate) count: i32,
    /// The offset of the first record; -1 if the broker did not tell (acks 0, or a batch that it had already).
    /// Or why the broker refused the batch for good.
    pub(crate) result: Result<Offset, ClusterError>,
}

/// The records gathered for one partition.
#[derive(Debug)]
struct Gathered {
    builder: BatchBuilder,
    bytes: usize,
}

/// A batch as it is sent, and sent again.
#[derive(Debug)]
struct Outgoing {
    bytes: Bytes,
    count: i32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Producer {
    cluster: Cluster,
    topic: String,
    settings: ProducerSettings,
    leaders: Leaders,
    partitions: Vec<i32>,
    /// Id and epoch.
    identity: Option<(i64, i16)>,
    /// The next sequence number by partition.
    sequences: BTreeMap<i32, i32>,
    gathered: BTreeMap<i32, Gathered>,
    sticky: usize,
}

/// What a producer of one's own needs: a cluster that knows the topic, its leaders, and an id if it is to be
/// idempotent.
#[derive(Debug)]
pub(crate) struct Route {
    /// The cluster.
    pub(crate) cluster: Cluster,
    /// The leaders by partition; partitions without a leader are left out.
    pub(crate) leaders: Leaders,
    /// Producer id and epoch.
    pub(crate) identity: Option<(i64, i16)>,
}

impl Route {
    /// Finds the topic as [`Producer::open`] does.
    ///
    /// # Errors
    /// If the topic cannot be had in time.
    pub(crate) async fn find(
        cluster: Cluster,
        topic: &str,
        settings: &ProducerSettings,
        max_block: Duration,
    ) -> Result<Self, ClusterError> {
        let producer = Producer::open(cluster, topic, settings.clone(), max_block).await?;
        let Producer { cluster, mut leaders, identity, .. } = producer;
        leaders.retain(|_, leader| *leader >= 0);
        Ok(Self { cluster, leaders, identity })
    }
}

impl Producer {
    /// A producer for `topic`, which is created if the brokers do that.
    ///
    /// # Errors
    /// If the topic cannot be had in time.
    pub(crate) async fn open(
        cluster: Cluster,
        topic: &str,
        settings: ProducerSettings,
        max_block: Duration,
    ) -> Result<Self, ClusterError> {
        let mut producer = Self {
            cluster,
            topic: topic.to_owned(),
            settings,
            leaders: Leaders::new(),
            partitions: Vec::new(),
            identity: None,
            sequences: BTreeMap::new(),
            gathered: BTreeMap::new(),
            sticky: 0,
        };
        producer.find_topic(max_block).await?;
        if producer.settings.idempotent && producer.settings.acks == -1 {
            producer.identity = producer.init_producer_id().await?;
        }
        Ok(producer)
    }

    /// Asks for the topic until it is there.
    async fn find_topic(&mut self, max_block: Duration) -> Result<(), ClusterError> {
        let attempts = Attempts::new(max_block, self.cluster.settings().retry_backoff);
        let mut warned = false;
        loop {
            let code = self.refresh().await?;
            if code == 0 && !self.partitions.is_empty() {
                return Ok(());
            }
            let refused = ClusterError::refused(format!("topic {}", self.topic), code, None);
            if code != 0 && !is_retriable(code) {
                return Err(refused);
            }
            let missing = code == ErrorCode::UnknownTopicOrPartition.code();
            if missing && !std::mem::replace(&mut warned, true) {
                eprintln!("WARNING: topic {} does not exist yet; waiting for it", self.topic);
            }
            if !attempts.again().await {
                let what = format!("topic {} was not there", self.topic);
                let last = refused.to_string();
                return Err(ClusterError::TimedOut { what, within: max_block, last });
            }
        }
    }

    /// Asks for the leaders, and returns the topic's error code.
    async fn refresh(&mut self) -> Result<i16, ClusterError> {
        let metadata = self.cluster.metadata(Topics::Named { name: &self.topic, create: true }).await?;
        let Some(topic) = metadata.topics.first() else { return Ok(0) };
        if topic.error_code == 0 {
            self.leaders = leaders(topic);
            self.partitions = self.leaders.keys().copied().collect();
        }
        Ok(topic.error_code)
    }

    /// Asks for an id; `None` from a broker that has none to give.
    async fn init_producer_id(&mut self) -> Result<Option<(i64, i16)>, ClusterError> {
        let request = InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: i32::MAX,
            ..Default::default()
        };
        let attempts = self.cluster.attempts();
        loop {
            let response = match self.cluster.call_any(&request).await {
                Ok(response) => response,
                Err(ClusterError::Client { error: ClientError::Unsupported { .. }, .. }) => return Ok(None),
                Err(error) => return Err(error),
            };
            let code = response.error_code;
            if code == 0 {
                return Ok(Some((response.producer_id, response.producer_epoch)));
            }
            if !is_retriable(code) || !attempts.again().await {
                return Err(ClusterError::refused("a producer id", code, None));
            }
        }
    }

    /// Whether records wait for [`flush`](Self::flush).
    pub(crate) fn has_gathered(&self) -> bool {
        !self.gathered.is_empty()
    }

    /// Adds a record with a timestamp in milliseconds since the Unix epoch. Returns whether the batch it went
    /// to is full now, and should be flushed.
    ///
    /// # Errors
    /// If the record is larger than `max.request.size`.
    pub(crate) fn add(&mut self, record: &NewRecord, timestamp_ms: i64) -> Result<bool, ClusterError> {
        let size = record.size();
        if size + BATCH_OVERHEAD > self.settings.max_request_size {
            let text = format!(
                "a record of {size} bytes is larger than max.request.size, {}",
                self.settings.max_request_size
            );
            let code = ErrorCode::MessageTooLarge.code();
            return Err(ClusterError::refused(format!("topic {}", self.topic), code, Some(&text)));
        }
        let partition = self.partition_of(record);
        let compression = self.settings.compression;
        let gathered = self
            .gathered
            .entry(partition)
            .or_insert_with(|| Gathered { builder: BatchBuilder::new(compression), bytes: BATCH_OVERHEAD });
        let headers: Vec<(&[u8], Option<&[u8]>)> =
            record.headers.iter().map(|(key, value)| (key.as_slice(), value.as_deref())).collect();
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        gathered.builder.append_with_headers(Millis(timestamp_ms), key, value, &headers);
        gathered.bytes += size;
        Ok(gathered.bytes >= self.settings.batch_size)
    }

    /// Whether `record` would make its batch larger than `batch.size`, so that what was gathered should go first.
    pub(crate) fn overflows(&self, record: &NewRecord) -> bool {
        let gathered = self.gathered.get(&self.partition_of(record));
        gathered.is_some_and(|gathered| gathered.bytes + record.size() > self.settings.batch_size)
    }

    /// The partition that `record` goes to if it is added next.
    pub(crate) fn partition_of(&self, record: &NewRecord) -> i32 {
        match &record.key {
            Some(key) => partition_of_key(key, self.partitions.len()),
            None => self.sticky_partition(),
        }
    }

    /// The partition for records without a key: with a leader if any has one.
    fn sticky_partition(&self) -> i32 {
        let led: Vec<i32> =
            self.leaders.iter().filter(|(_, leader)| **leader >= 0).map(|(p, _)| *p).collect();
        let among = if led.is_empty() { &self.partitions } else { &led };
        among.get(self.sticky.checked_rem(among.len()).unwrap_or(0)).copied().unwrap_or(0)
    }

    /// Sends what was gathered, again where it must be, and tells what became of each batch.
    ///
    /// # Errors
    /// If a batch is still unsettled at the end of `delivery.timeout.ms`.
    pub(crate) async fn flush(&mut self) -> Result<Vec<Sent>, ClusterError> {
        let mut outgoing = BTreeMap::new();
        for (partition, gathered) in std::mem::take(&mut self.gathered) {
            outgoing.insert(partition, self.seal(partition, gathered)?);
        }
        self.sticky = self.sticky.wrapping_add(1);
        let patience = self.settings.delivery_timeout;
        let attempts = Attempts::new(patience, self.cluster.settings().retry_backoff);
        let mut sent = Vec::new();
        loop {
            let mut last = format!("topic {} has a partition without a leader", self.topic);
            for (leader, partitions) in self.by_leader(&outgoing) {
                match self.send_to(leader, &partitions, &outgoing).await? {
                    Ok(answers) => {
                        for answer in answers {
                            self.settle(&answer, &mut outgoing, &mut sent, &mut last);
                        }
                    }
                    Err(transient) => last = transient,
                }
            }
            if outgoing.is_empty() {
                return Ok(sent);
            }
            if !attempts.again().await {
                let what = format!("records for {} were not acknowledged", self.topic);
                return Err(ClusterError::TimedOut { what, within: patience, last });
            }
            self.refresh().await?;
        }
    }

    fn seal(&self, partition: i32, gathered: Gathered) -> Result<Outgoing, ClusterError> {
        let mut builder = gathered.builder;
        if let Some((id, epoch)) = self.identity {
            builder = builder.producer(id, epoch, self.sequences.get(&partition).copied().unwrap_or(0));
        }
        let count = builder.count();
        let what = format!("{}-{partition}", self.topic);
        let batch = builder.build().map_err(|error| ClusterError::Batch { what, error })?;
        Ok(Outgoing { bytes: batch.bytes, count })
    }

    fn by_leader(&self, outgoing: &BTreeMap<i32, Outgoing>) -> BTreeMap<i32, Vec<i32>> {
        let mut grouped: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for partition in outgoing.keys() {
            if let Some(leader) = self.leaders.get(partition).filter(|leader| **leader >= 0) {
                grouped.entry(*leader).or_default().push(*partition);
            }
        }
        grouped
    }

    /// Sends the batches of `partitions` to their leader. The inner error is one after which they are sent again.
    async fn send_to(
        &mut self,
        leader: i32,
        partitions: &[i32],
        outgoing: &BTreeMap<i32, Outgoing>,
    ) -> Result<Result<Vec<PartitionProduceResponse>, String>, ClusterError> {
        let Some(address) = self.cluster.brokers().get(&leader).cloned() else {
            return Ok(Err(ClusterError::NoSuchBroker(leader).to_string()));
        };
        let request = self.request(partitions, outgoing);
        let answer = match self.settings.acks {
            0 => self.send_unanswered(&address, &request).await,
            _ => self.cluster.send(&address, &request).await,
        };
        match answer {
            Ok(response) => {
                Ok(Ok(response.responses.into_iter().flat_map(|t| t.partition_responses).collect()))
            }
            Err(error) if is_transient(&error) => Ok(Err(error.to_string())),
            Err(error) => Err(ClusterError::Client { address, error }),
        }
    }

    fn request(&self, partitions: &[i32], outgoing: &BTreeMap<i32, Outgoing>) -> ProduceRequest {
        let data = |partition: &i32| {
            let batch = outgoing.get(partition)?;
            Some(PartitionProduceData { index: *partition, records: Some(batch.bytes.clone()) })
        };
        let timeout = self.cluster.settings().request_timeout.as_millis();
        ProduceRequest {
            transactional_id: None,
            acks: self.settings.acks,
            timeout_ms: i32::try_from(timeout).unwrap_or(i32::MAX),
            topic_data: vec![TopicProduceData {
                name: Str::from(self.topic.as_str()),
                partition_data: partitions.iter().filter_map(data).collect(),
            }],
        }
    }

    /// Sends what nobody will answer, and answers it as a success at an unknown offset.
    async fn send_unanswered(
        &mut self,
        address: &str,
        request: &ProduceRequest,
    ) -> Result<ProduceResponse, ClientError> {
        let mut client = self.cluster.take_connection(address).await?;
        client.send_unanswered(request).await?;
        self.cluster.give_connection(address, client);
        let partitions = request.topic_data.iter().flat_map(|topic| &topic.partition_data);
        let success = |partition: &PartitionProduceData| PartitionProduceResponse {
            index: partition.index,
            base_offset: -1,
            ..Default::default()
        };
        let topic = wire::messages::produce_response::TopicProduceResponse {
            partition_responses: partitions.map(success).collect(),
            ..Default::default()
        };
        Ok(ProduceResponse { responses: vec![topic], ..Default::default() })
    }

    /// Takes the answer about one batch: done, refused for good, or to be sent again.
    fn settle(
        &mut self,
        answer: &PartitionProduceResponse,
        outgoing: &mut BTreeMap<i32, Outgoing>,
        sent: &mut Vec<Sent>,
        last: &mut String,
    ) {
        let code = answer.error_code;
        let what = format!("{}-{}", self.topic, answer.index);
        let duplicate = code == ErrorCode::DuplicateSequenceNumber.code();
        // A batch that was damaged on its way would be damaged again only if it is so here.
        if is_retriable(code) && code != ErrorCode::CorruptMessage.code() {
            *last = format!("{what}: {}", error_name(code));
            return;
        }
        let Some(batch) = outgoing.remove(&answer.index) else { return };
        let result = if code == 0 || duplicate {
            let next = self.sequences.entry(answer.index).or_default();
            *next = wire::batch::sequence_after(*next, batch.count);
            Ok(Offset(if duplicate { -1 } else { answer.base_offset }))
        } else {
            let errors = answer.record_errors.iter();
            let of_record = errors.filter_map(|error| error.batch_index_error_message.as_deref()).next();
            let message = of_record.or(answer.error_message.as_deref());
            Err(ClusterError::refused(what, code, message))
        };
        sent.push(Sent { partition: answer.index, count: batch.count, result });
    }
}

//! A reader of partitions without a group: one fetch at a time under way to each leader, batches in, records out.
//!
//! It follows leaders as they move, starts anew where `auto.offset.reset` says when an offset has gone, and
//! leaves out what a reader of committed data must not see.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use net::client::{Client, ClientError};
use tokio::task::{JoinError, JoinSet};
use wire::Str;
use wire::batch::{AbortedTransactions, Batch, BatchError, Limits, Record, TimestampType, batches};
use wire::error_code::ErrorCode;
use wire::messages::fetch_request::{FetchPartition, FetchTopic};
use wire::messages::fetch_response::PartitionData;
use wire::messages::{FetchRequest, FetchResponse};
use wire::types::{Offset, TopicId, TopicName, TopicPartition};

use super::leaders::by_topic;
use super::offsets::{Isolation, Place};
use super::settings::{ClientProperties, invalid};
use super::{Cluster, ClusterError, Topics, error_name, is_retriable, is_transient};
use crate::error::VerbError;

/// The version from which topics are named by id (KIP-516).
const TOPIC_ID_VERSION: i16 = 13;

/// How records are fetched.
#[derive(Clone, Debug)]
pub(crate) struct FetchSettings {
    /// `isolation.level`
    pub(crate) isolation: Isolation,
    /// `fetch.min.bytes`
    pub(crate) min_bytes: i32,
    /// `fetch.max.bytes`
    pub(crate) max_bytes: i32,
    /// `fetch.max.wait.ms`
    pub(crate) max_wait: Duration,
    /// `max.partition.fetch.bytes`
    pub(crate) max_partition_bytes: i32,
    /// Where reading goes on when its offset has gone; `None` is an error (`auto.offset.reset`).
    pub(crate) reset: Option<Place>,
    /// `check.crcs`
    pub(crate) check_crcs: bool,
}

impl FetchSettings {
    /// Takes what concerns fetches. `reset` is the default of `auto.offset.reset`.
    ///
    /// # Errors
    /// If a value cannot be used.
    pub(crate) fn take(properties: &mut ClientProperties, reset: &str) -> Result<Self, VerbError> {
        let isolation = properties.take("isolation.level").unwrap_or_else(|| "read_uncommitted".to_owned());
        let isolation = match isolation.trim() {
            "read_uncommitted" => Isolation::ReadUncommitted,
            "read_committed" => Isolation::ReadCommitted,
            _ => return Err(invalid("isolation.level", &isolation)),
        };
        let reset = properties.take("auto.offset.reset").unwrap_or_else(|| reset.to_owned());
        let reset = match reset.trim() {
            "none" => None,
            name => Some(Place::of_name(name).ok_or_else(|| invalid("auto.offset.reset", &reset))?),
        };
        Ok(Self {
            isolation,
            reset,
            min_bytes: properties.take_as("fetch.min.bytes", 1)?,
            max_bytes: properties.take_as("fetch.max.bytes", 50 << 20)?,
            max_wait: properties.take_millis("fetch.max.wait.ms", Duration::from_millis(500))?,
            max_partition_bytes: properties.take_as("max.partition.fetch.bytes", 1 << 20)?,
            check_crcs: properties.take_flag("check.crcs", true),
        })
    }
}

/// A record, and where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    /// The partition.
    pub(crate) partition: TopicPartition,
    /// What the timestamp means.
    pub(crate) timestamp_type: TimestampType,
    /// The record.
    pub(crate) record: Record,
}

#[cfg(test)]
impl Fetched {
    /// A record of the topic `t` in which nothing is.
    pub(crate) fn empty(index: i32, offset: i64) -> Self {
        Self {
            partition: TopicPartition::new("t", index),
            timestamp_type: TimestampType::CreateTime,
            record: Record {
                offset: Offset(offset),
                offset_delta: 0,
                timestamp: wire::types::Millis(0),
                sequence: -1,
                key: None,
                value: None,
                headers: Vec::new(),
                size_in_bytes: 0,
            },
        }
    }
}

/// What a task that fetches hands back: the leader, its connection if it is sound, and the answer.
type Answer = (i32, Option<Client>, Result<FetchResponse, ClientError>);

/// See the module.
#[derive(Debug)]
pub(crate) struct Fetcher {
    cluster: Cluster,
    /// The ids of the topics, as far as they are known.
    ids: BTreeMap<TopicName, TopicId>,
    settings: FetchSettings,
    /// The leaders of the partitions; -1 where there is none.
    leaders: BTreeMap<TopicPartition, i32>,
    /// The next offset by partition.
    positions: BTreeMap<TopicPartition, Offset>,
    /// In which order partitions are asked for; the first one moves back each time.
    order: VecDeque<TopicPartition>,
    tasks: JoinSet<Answer>,
    /// Leaders with a fetch under way.
    busy: Vec<i32>,
    stale: bool,
}

impl Fetcher {
    /// A reader of partitions from `positions` on.
    pub(crate) fn new(
        cluster: Cluster,
        settings: FetchSettings,
        positions: BTreeMap<TopicPartition, Offset>,
    ) -> Self {
        let order = positions.keys().cloned().collect();
        Self {
            cluster,
            ids: BTreeMap::new(),
            settings,
            leaders: BTreeMap::new(),
            positions,
            order,
            tasks: JoinSet::new(),
            busy: Vec::new(),
            stale: true,
        }
    }

    /// The next offset of each partition, behind what [`next`](Self::next) gave.
    pub(crate) fn positions(&self) -> &BTreeMap<TopicPartition, Offset> {
        &self.positions
    }

    /// Gives the cluster back; what is under way is dropped.
    pub(crate) fn into_cluster(self) -> Cluster {
        self.cluster
    }

    /// The next records, some or none, in the order of their partition; blocks at most `fetch.max.wait.ms` when
    /// brokers answer. Dropped before it is ready, it may take records with it: then nothing more is to be read.
    ///
    /// # Errors
    /// If a broker refuses for good, or no broker is left.
    pub(crate) async fn next(&mut self) -> Result<Vec<Fetched>, ClusterError> {
        if self.stale {
            self.refresh().await?;
        }
        self.start_fetches().await?;
        let Some(finished) = self.tasks.join_next().await else {
            // No partition has a leader at the moment.
            tokio::time::sleep(self.cluster.settings().retry_backoff).await;
            self.stale = true;
            return Ok(Vec::new());
        };
        let (leader, client, answer) = finished.map_err(task_failed)?;
        self.busy.retain(|busy| *busy != leader);
        let address = self.cluster.brokers().get(&leader).cloned().unwrap_or_default();
        if let Some(client) = client {
            self.cluster.give_connection(&address, client);
        }
        match answer {
            Ok(response) => self.take(response).await,
            Err(error) if is_transient(&error) => {
                self.stale = true;
                tokio::time::sleep(self.cluster.settings().retry_backoff).await;
                Ok(Vec::new())
            }
            Err(error) => Err(ClusterError::Client { address, error }),
        }
    }

    async fn refresh(&mut self) -> Result<(), ClusterError> {
        let names: BTreeSet<TopicName> = self.positions.keys().map(|it| it.topic.clone()).collect();
        let names: Vec<&str> = names.iter().map(TopicName::as_str).collect();
        let metadata = self.cluster.metadata(Topics::Several(&names)).await?;
        let mut all = true;
        for topic in &metadata.topics {
            let Some(name) = topic.name.as_deref().map(TopicName::from) else { continue };
            all &= topic.error_code == 0;
            if topic.error_code != 0 {
                continue;
            }
            for partition in &topic.partitions {
                let at = TopicPartition { topic: name.clone(), partition: partition.partition_index };
                self.leaders.insert(at, partition.leader_id);
            }
            self.ids.insert(name, topic.topic_id);
        }
        self.stale = !all;
        Ok(())
    }

    /// Sends a fetch to each leader that has none under way.
    async fn start_fetches(&mut self) -> Result<(), ClusterError> {
        self.order.rotate_left(usize::from(self.order.len() > 1));
        let mut by_leader: BTreeMap<i32, Vec<TopicPartition>> = BTreeMap::new();
        for partition in &self.order {
            let leader = self.leaders.get(partition).copied().filter(|leader| *leader >= 0);
            if let Some(leader) = leader.filter(|leader| !self.busy.contains(leader)) {
                by_leader.entry(leader).or_default().push(partition.clone());
            }
        }
        for (leader, partitions) in by_leader {
            let Some(address) = self.cluster.brokers().get(&leader).cloned() else {
                self.stale = true;
                continue;
            };
            let mut client = match self.cluster.take_connection(&address).await {
                Ok(client) => client,
                Err(error) if is_transient(&error) => {
                    self.stale = true;
                    continue;
                }
                Err(error) => return Err(ClusterError::Client { address, error }),
            };
            client.set_timeout(self.cluster.settings().request_timeout + self.settings.max_wait);
            let request = self.request(&partitions);
            let by_name = request.topics.iter().any(|topic| topic.topic_id.is_zero());
            self.busy.push(leader);
            self.tasks.spawn(async move {
                let answer = fetch(&mut client, &request, by_name).await;
                let sound = answer.is_ok();
                (leader, sound.then_some(client), answer)
            });
        }
        Ok(())
    }

    fn request(&self, partitions: &[TopicPartition]) -> FetchRequest {
        let topic = |(name, indexes): (&str, Vec<i32>)| {
            let partition = |index: i32| {
                let position = self.positions.get(&TopicPartition::new(name, index))?;
                Some(FetchPartition {
                    partition: index,
                    fetch_offset: position.0,
                    partition_max_bytes: self.settings.max_partition_bytes,
                    ..Default::default()
                })
            };
            FetchTopic {
                topic: Str::from(name),
                topic_id: self.ids.get(name).copied().unwrap_or_default(),
                partitions: indexes.into_iter().filter_map(partition).collect(),
            }
        };
        FetchRequest {
            max_wait_ms: i32::try_from(self.settings.max_wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: self.settings.min_bytes,
            max_bytes: self.settings.max_bytes,
            isolation_level: self.settings.isolation.id(),
            topics: by_topic(partitions).into_iter().map(topic).collect(),
            ..Default::default()
        }
    }

    async fn take(&mut self, response: FetchResponse) -> Result<Vec<Fetched>, ClusterError> {
        if response.error_code != 0 {
            let refused = ClusterError::refused("fetch", response.error_code, None);
            return self.unless_fatal(refused, response.error_code).await;
        }
        let mut records = Vec::new();
        for topic in response.responses {
            let by_id = self.ids.iter().find(|(_, id)| !id.is_zero() && **id == topic.topic_id);
            let name = by_id.map_or_else(|| TopicName::from(topic.topic.as_str()), |(name, _)| name.clone());
            for data in topic.partitions {
                let at = TopicPartition { topic: name.clone(), partition: data.partition_index };
                match ErrorCode::from_code(data.error_code) {
                    Some(ErrorCode::None) => self.read(&at, &data, &mut records)?,
                    Some(ErrorCode::OffsetOutOfRange) => self.reset(&at).await?,
                    _ => {
                        let refused = ClusterError::refused(at.to_string(), data.error_code, None);
                        self.unless_fatal(refused, data.error_code).await?;
                    }
                }
            }
        }
        Ok(records)
    }

    /// Passes over what may be different after new metadata.
    async fn unless_fatal(&mut self, refused: ClusterError, code: i16) -> Result<Vec<Fetched>, ClusterError> {
        let fenced = code == ErrorCode::FencedLeaderEpoch.code();
        if !(is_retriable(code) || fenced) {
            return Err(refused);
        }
        tracing::debug!(code = error_name(code), "asking for new metadata");
        self.stale = true;
        tokio::time::sleep(self.cluster.settings().retry_backoff).await;
        Ok(Vec::new())
    }

    /// Goes on elsewhere when the offset has gone.
    async fn reset(&mut self, at: &TopicPartition) -> Result<(), ClusterError> {
        let position = self.positions.get(at).copied().unwrap_or_default();
        let Some(place) = self.settings.reset else {
            let text = format!("offset {position} is not in the log");
            return Err(ClusterError::refused(
                at.to_string(),
                ErrorCode::OffsetOutOfRange.code(),
                Some(&text),
            ));
        };
        let (topic, partition) = (at.topic.as_str(), at.partition);
        let offsets = self.cluster.offsets(topic, &[partition], place, self.settings.isolation).await?;
        let offset = offsets.get(&partition).copied().unwrap_or(position);
        eprintln!("WARNING: offset {position} is not in the log of {at}; reading on at {offset}");
        self.positions.insert(at.clone(), offset);
        Ok(())
    }

    fn read(
        &mut self,
        at: &TopicPartition,
        data: &PartitionData,
        records: &mut Vec<Fetched>,
    ) -> Result<(), ClusterError> {
        let Some(position) = self.positions.get_mut(at) else { return Ok(()) };
        let aborted = data.aborted_transactions.iter().flatten();
        let mut aborted = AbortedTransactions::new(match self.settings.isolation {
            Isolation::ReadUncommitted => Vec::new(),
            Isolation::ReadCommitted => {
                aborted.map(|txn| (txn.producer_id, Offset(txn.first_offset))).collect()
            }
        });
        let bytes = data.records.clone().unwrap_or_default();
        let read = read_batches(at, bytes, position, &mut aborted, self.settings.check_crcs, records);
        read.map_err(|error| ClusterError::Batch { what: format!("{at} at offset {position}"), error })
    }
}

async fn fetch(
    client: &mut Client,
    request: &FetchRequest,
    by_name: bool,
) -> Result<FetchResponse, ClientError> {
    let version = client.common_version::<FetchRequest>()?;
    let version = if by_name { version.min(TOPIC_ID_VERSION - 1) } else { version };
    client.send_version(request, version).await
}

/// Appends the records from `position` on that the reader may see, and moves the position behind the last batch.
fn read_batches(
    partition: &TopicPartition,
    bytes: Bytes,
    position: &mut Offset,
    aborted: &mut AbortedTransactions,
    check_crcs: bool,
    records: &mut Vec<Fetched>,
) -> Result<(), BatchError> {
    for batch in batches(bytes) {
        let batch: Batch = batch?;
        if check_crcs {
            batch.verify_crc()?;
        }
        let timestamp_type = batch.header.timestamp_type();
        if aborted.admits(&batch)? {
            for record in batch.records(Limits::default()) {
                let record = record?;
                if record.offset >= *position {
                    let partition = partition.clone();
                    records.push(Fetched { partition, timestamp_type, record });
                }
            }
        }
        *position = (*position).max(batch.header.next_offset());
    }
    Ok(())
}

fn task_failed(error: JoinError) -> ClusterError {
    let error = ClientError::Io(std::io::Error::other(error));
    ClusterError::Client { address: String::new(), error }
}

#[cfg(test)]
mod tests {
    use wire::batch::control::{EndTxnMarker, MarkerType};
    use wire::batch::{BatchBuilder, Compression};
    use wire::types::Millis;

    use super::*;

    fn batch(base: i64, values: &[&str], producer: Option<i64>) -> Bytes {
        let mut builder = BatchBuilder::new(Compression::None).base_offset(Offset(base));
        if let Some(producer) = producer {
            builder = builder.producer(producer, 0, 0).transactional(true);
        }
        for value in values {
            builder.append(Millis(5), None, Some(value.as_bytes()));
        }
        builder.build().unwrap().bytes
    }

    fn abort(base: i64, producer: i64) -> Bytes {
        let marker = EndTxnMarker { marker_type: MarkerType::Abort, coordinator_epoch: 0 };
        let batch = marker.to_batch(producer, 0, Millis(5)).unwrap();
        let mut header = batch.header;
        header.base_offset = Offset(base);
        [&header.to_bytes()[..], batch.body()].concat().into()
    }

    fn read(bytes: &[Bytes], from: i64, aborted: &[(i64, i64)]) -> (Vec<i64>, i64) {
        let (mut position, mut records) = (Offset(from), Vec::new());
        let aborted = aborted.iter().map(|(producer, first)| (*producer, Offset(*first)));
        let mut aborted = AbortedTransactions::new(aborted);
        read_batches(
            &TopicPartition::new("t", 0),
            bytes.concat().into(),
            &mut position,
            &mut aborted,
            true,
            &mut records,
        )
        .unwrap();
        (records.iter().map(|fetched| fetched.record.offset.0).collect(), position.0)
    }

    #[test]
    fn records_before_the_position_are_passed_over() {
        let bytes = [batch(10, &["a", "b", "c"], None), batch(20, &["d"], None)];
        assert_eq!(read(&bytes, 11, &[]), (vec![11, 12, 20], 21));
    }

    #[test]
    fn aborted_records_and_markers_are_not_shown_and_are_not_read_again() {
        let bytes = [batch(0, &["a"], Some(7)), batch(1, &["b"], Some(8)), abort(2, 7)];
        assert_eq!(read(&bytes, 0, &[(7, 0)]), (vec![1], 3));
        assert_eq!(read(&bytes, 0, &[]), (vec![0, 1], 3));
    }

    #[test]
    fn a_batch_that_is_cut_is_left_for_the_next_fetch() {
        let whole = batch(0, &["a"], None);
        let cut = batch(1, &["b"], None);
        assert_eq!(read(&[whole, cut.slice(..60)], 0, &[]), (vec![0], 1));
    }

    #[test]
    fn damage_is_an_error() {
        let mut bytes = batch(0, &["a"], None).to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        let (mut position, mut records) = (Offset(0), Vec::new());
        let mut aborted = AbortedTransactions::default();
        let result = read_batches(
            &TopicPartition::new("t", 0),
            bytes.into(),
            &mut position,
            &mut aborted,
            true,
            &mut records,
        );
        assert!(matches!(result, Err(BatchError::CrcMismatch { .. })));
        assert_eq!((position, records.len()), (Offset(0), 0));
    }
}

//! A connection to the leader of a partition, found by asking any broker that answers.
//!
//! As Kafka's clients do (KIP-320), it does not go back to the leader of an older epoch, of which a broker may tell that
//! has not heard of its successor: such a leader knows nothing of what was written since, and would refuse sequences.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use kafka_protocol::messages::MetadataRequest;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;

use super::{Load, PATIENCE, Progress};
use crate::calls;
use crate::checker::Partition;
use crate::raw::Connection;
use crate::wait;

/// Finds the leader again and again.
#[derive(Debug)]
pub(super) struct Leader<'a> {
    load: &'a Load,
    partition: &'a Partition,
    /// Which broker is asked next.
    next: usize,
    /// The latest leader epoch that was told.
    epoch: i32,
}

impl<'a> Leader<'a> {
    pub(super) fn of(load: &'a Load, partition: &'a Partition) -> Self {
        Self { load, partition, next: usize::try_from(partition.index).unwrap_or(0), epoch: -1 }
    }

    /// The epoch of the leader that was connected to last; -1 before the first.
    pub(super) fn epoch(&self) -> i32 {
        self.epoch
    }

    /// A connection to the leader, as soon as there is one.
    ///
    /// # Errors
    /// When there is none for too long, or at once when the run has failed.
    pub(super) fn connect(&mut self, progress: &Progress) -> Result<Connection> {
        let what = format!("a leader of {}", self.partition);
        wait::until(&what, PATIENCE, || {
            ensure!(!progress.has_failed(), "the run has failed");
            Ok(self.try_connect().ok())
        })
    }

    fn try_connect(&mut self) -> Result<Connection> {
        let addresses = &self.load.addresses;
        self.next = (self.next + 1) % addresses.len().max(1);
        let connection = self.open(addresses.get(self.next).context("no brokers")?)?;
        let address = self.ask(connection)?;
        self.open(&address)
    }

    /// The leader's address, as one broker tells it.
    fn ask(&mut self, mut connection: Connection) -> Result<String> {
        let topic = MetadataRequestTopic::default().with_name(Some(calls::topic_name(&self.partition.topic)));
        let request =
            MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(false);
        let metadata = connection.call(10, &request)?;
        let topic = metadata.topics.first().context("no topic in the answer")?;
        let partition = topic.partitions.iter().find(|it| it.partition_index == self.partition.index);
        let partition = partition.context("no such partition")?;
        let (leader, epoch) = (partition.leader_id, partition.leader_epoch);
        ensure!(epoch >= self.epoch, "leader epoch {epoch} after {}", self.epoch);
        self.epoch = epoch;
        match metadata.brokers.iter().find(|broker| broker.node_id == leader) {
            Some(broker) => Ok(format!("{}:{}", broker.host.as_str(), broker.port)),
            None => bail!("no leader"),
        }
    }

    fn open(&self, address: &str) -> Result<Connection> {
        let connection = Connection::open(address)?;
        connection.set_answer_limit(self.load.answer_limit)?;
        Ok(connection)
    }
}

/// Lets time pass between two tries, a little more for each.
#[derive(Debug)]
pub(super) struct Tries {
    since: Instant,
    count: u32,
}

impl Tries {
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), count: 0 }
    }

    /// Success: patience begins anew.
    pub(super) fn succeeded(&mut self) {
        *self = Self::new();
    }

    /// Notes a failure.
    ///
    /// # Errors
    /// When there has been no success for too long.
    pub(super) fn failed(&mut self, why: &str) -> Result<()> {
        self.count += 1;
        if self.since.elapsed() > PATIENCE {
            bail!("{} tries in {PATIENCE:?} and no success; the last: {why}", self.count);
        }
        let pause = std::time::Duration::from_millis(u64::from(self.count.min(10)) * 10);
        wait::pause(pause);
        Ok(())
    }
}

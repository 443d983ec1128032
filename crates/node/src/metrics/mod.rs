//! What the broker counts, under the names that Kafka's dashboards know: those that the usual rules of
//! jmx_exporter give to Kafka's MBeans.
//!
//! Counters live here and are bumped where things happen; everything that is a state (log sizes, waiting
//! requests, sessions) is read from the broker when it is asked for ([`render`]).

mod cleaner;
mod controller;
mod export;
mod group_lag;
mod groups;
mod histogram;
mod rate;
mod replicas;
mod replication;
mod requests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::api::ApiKey;
use wire::types::TopicName;

use self::cleaner::CleanerMeters;
pub(crate) use self::export::render;
pub(crate) use self::rate::Rate;
use self::replicas::ReplicaMeters;
use self::replication::ReplicationMeters;
pub(crate) use self::requests::RequestTimer;
use self::requests::Requests;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub(crate) fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`.
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The number so far.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// `BrokerTopicMetrics` of one topic, or of all.
#[derive(Debug, Default)]
pub(crate) struct TopicMeters {
    pub(crate) messages_in: Counter,
    pub(crate) bytes_in: Counter,
    pub(crate) bytes_out: Counter,
    pub(crate) bytes_rejected: Counter,
    pub(crate) total_produce_requests: Counter,
    pub(crate) failed_produce_requests: Counter,
    pub(crate) total_fetch_requests: Counter,
    pub(crate) failed_fetch_requests: Counter,
    pub(crate) no_key_compacted_topic_records: Counter,
    pub(crate) invalid_magic_number_records: Counter,
    pub(crate) invalid_message_crc_records: Counter,
    pub(crate) invalid_offset_or_sequence_records: Counter,
}

impl TopicMeters {
    /// Each meter with the name it has in Kafka, without `PerSec`, in lower case.
    pub(crate) fn named(&self) -> [(&'static str, &Counter); 12] {
        [
            ("messagesin", &self.messages_in),
            ("bytesin", &self.bytes_in),
            ("bytesout", &self.bytes_out),
            ("bytesrejected", &self.bytes_rejected),
            ("totalproducerequests", &self.total_produce_requests),
            ("failedproducerequests", &self.failed_produce_requests),
            ("totalfetchrequests", &self.total_fetch_requests),
            ("failedfetchrequests", &self.failed_fetch_requests),
            ("nokeycompactedtopicrecords", &self.no_key_compacted_topic_records),
            ("invalidmagicnumberrecords", &self.invalid_magic_number_records),
            ("invalidmessagecrcrecords", &self.invalid_message_crc_records),
            ("invalidoffsetorsequencerecords", &self.invalid_offset_or_sequence_records),
        ]
    }
}

/// All counters of a broker.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Of all topics together.
    pub(crate) all_topics: Arc<TopicMeters>,
    /// Fetches that were answered because their time was over.
    pub(crate) expired_fetches: Counter,
    /// Of the replicas, and of requests that wait for them.
    pub(crate) replicas: ReplicaMeters,
    /// Of the compaction of logs.
    pub(crate) cleaner: CleanerMeters,
    /// Of the copying between brokers.
    pub(crate) replication: ReplicationMeters,
    topics: Mutex<BTreeMap<TopicName, Arc<TopicMeters>>>,
    requests: Requests,
}

impl Metrics {
    /// The meters of a topic; they are dropped with [`Metrics::forget_topic`].
    pub(crate) fn topic(&self, topic: &TopicName) -> Arc<TopicMeters> {
        self.topics().entry(topic.clone()).or_default().clone()
    }

    /// The topic is gone from this broker, and its series with it.
    pub(crate) fn forget_topic(&self, topic: &TopicName) {
        self.topics().remove(topic);
    }

    /// Notes the arrival of a request.
    pub(crate) fn request(&self, key: ApiKey, version: i16) -> RequestTimer {
        self.requests.begin(key, version)
    }

    fn topics(&self) -> MutexGuard<'_, BTreeMap<TopicName, Arc<TopicMeters>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn topic_meters(&self) -> Vec<(TopicName, Arc<TopicMeters>)> {
        self.topics().iter().map(|(name, meters)| (name.clone(), meters.clone())).collect()
    }
}

//! The broker keys that Blumfeld reads, as fields of their own types. The field's name is the key's with `_`
//! for `.`; units are part of the names.

use super::broker_values::{BrokerValues, FromValue};

macro_rules! typed_keys {
    ($($field:ident: $type:ty = $key:literal,)*) => {
        /// Broker configs by field. Each field is the key it is named after.
        #[derive(Clone, Debug, PartialEq)]
        pub struct BrokerKeys {
            $(
                #[doc = concat!("`", $key, "`.")]
                pub $field: $type,
            )*
        }

        impl BrokerKeys {
            /// Reads every field from the parsed values.
            pub(super) fn read(values: &BrokerValues) -> Self {
                Self { $($field: values.get($key).and_then(FromValue::from_value).unwrap_or_default(),)* }
            }

            /// Every key that has a field, and whether its default fits the field's type.
            #[cfg(test)]
            fn fitting() -> Vec<(&'static str, bool)> {
                vec![$(($key, {
                    let definition = super::broker_keys::governing($key).unwrap();
                    let default = definition.default_value();
                    default.is_none_or(|value| <$type as FromValue>::from_value(&value).is_some())
                }),)*]
            }
        }
    };
}

typed_keys! {
    // identity
    broker_id: i32 = "broker.id",
    broker_id_generation_enable: bool = "broker.id.generation.enable",
    reserved_broker_max_id: i32 = "reserved.broker.max.id",
    broker_rack: Option<String> = "broker.rack",
    blumfeld_http_address: String = "blumfeld.http.address",
    // sockets, requests, threads
    num_network_threads: usize = "num.network.threads",
    num_io_threads: usize = "num.io.threads",
    background_threads: usize = "background.threads",
    queued_max_requests: usize = "queued.max.requests",
    queued_max_request_bytes: i64 = "queued.max.request.bytes",
    socket_request_max_bytes: usize = "socket.request.max.bytes",
    socket_send_buffer_bytes: i32 = "socket.send.buffer.bytes",
    socket_receive_buffer_bytes: i32 = "socket.receive.buffer.bytes",
    socket_listen_backlog_size: i32 = "socket.listen.backlog.size",
    max_connections: usize = "max.connections",
    max_connections_per_ip: usize = "max.connections.per.ip",
    max_connection_creation_rate: usize = "max.connection.creation.rate",
    quota_window_num: i32 = "quota.window.num",
    quota_window_size_seconds: i32 = "quota.window.size.seconds",
    connections_max_idle_ms: i64 = "connections.max.idle.ms",
    connection_failed_authentication_delay_ms: i32 = "connection.failed.authentication.delay.ms",
    request_timeout_ms: i32 = "request.timeout.ms",
    controller_socket_timeout_ms: i32 = "controller.socket.timeout.ms",
    controlled_shutdown_enable: bool = "controlled.shutdown.enable",
    controlled_shutdown_max_retries: i32 = "controlled.shutdown.max.retries",
    controlled_shutdown_retry_backoff_ms: i64 = "controlled.shutdown.retry.backoff.ms",
    // topics
    auto_create_topics_enable: bool = "auto.create.topics.enable",
    delete_topic_enable: bool = "delete.topic.enable",
    num_partitions: i32 = "num.partitions",
    default_replication_factor: i32 = "default.replication.factor",
    auto_leader_rebalance_enable: bool = "auto.leader.rebalance.enable",
    leader_imbalance_check_interval_seconds: i64 = "leader.imbalance.check.interval.seconds",
    leader_imbalance_per_broker_percentage: i32 = "leader.imbalance.per.broker.percentage",
    // logs
    message_max_bytes: i32 = "message.max.bytes",
    num_recovery_threads_per_data_dir: usize = "num.recovery.threads.per.data.dir",
    log_retention_check_interval_ms: i64 = "log.retention.check.interval.ms",
    log_initial_task_delay_ms: i64 = "log.initial.task.delay.ms",
    log_flush_scheduler_interval_ms: i64 = "log.flush.scheduler.interval.ms",
    log_flush_offset_checkpoint_interval_ms: i64 = "log.flush.offset.checkpoint.interval.ms",
    log_flush_start_offset_checkpoint_interval_ms: i64 = "log.flush.start.offset.checkpoint.interval.ms",
    log_cleaner_enable: bool = "log.cleaner.enable",
    log_cleaner_threads: usize = "log.cleaner.threads",
    log_cleaner_backoff_ms: i64 = "log.cleaner.backoff.ms",
    log_cleaner_dedupe_buffer_size: i64 = "log.cleaner.dedupe.buffer.size",
    log_cleaner_io_buffer_size: i32 = "log.cleaner.io.buffer.size",
    log_cleaner_io_buffer_load_factor: f64 = "log.cleaner.io.buffer.load.factor",
    log_cleaner_io_max_bytes_per_second: f64 = "log.cleaner.io.max.bytes.per.second",
    producer_id_expiration_ms: i32 = "producer.id.expiration.ms",
    producer_id_expiration_check_interval_ms: i32 = "producer.id.expiration.check.interval.ms",
    // replication and fetching
    replica_lag_time_max_ms: i64 = "replica.lag.time.max.ms",
    replica_fetch_wait_max_ms: i32 = "replica.fetch.wait.max.ms",
    replica_fetch_min_bytes: i32 = "replica.fetch.min.bytes",
    replica_fetch_max_bytes: i32 = "replica.fetch.max.bytes",
    replica_fetch_response_max_bytes: i32 = "replica.fetch.response.max.bytes",
    replica_fetch_backoff_ms: i32 = "replica.fetch.backoff.ms",
    replica_socket_timeout_ms: i32 = "replica.socket.timeout.ms",
    replica_socket_receive_buffer_bytes: i32 = "replica.socket.receive.buffer.bytes",
    replica_high_watermark_checkpoint_interval_ms: i64 = "replica.high.watermark.checkpoint.interval.ms",
    num_replica_fetchers: usize = "num.replica.fetchers",
    replica_selector_class: Option<String> = "replica.selector.class",
    fetch_max_bytes: i32 = "fetch.max.bytes",
    max_incremental_fetch_session_cache_slots: usize = "max.incremental.fetch.session.cache.slots",
    // groups and transactions
    group_min_session_timeout_ms: i32 = "group.min.session.timeout.ms",
    group_max_session_timeout_ms: i32 = "group.max.session.timeout.ms",
    group_initial_rebalance_delay_ms: i32 = "group.initial.rebalance.delay.ms",
    group_max_size: i32 = "group.max.size",
    offset_metadata_max_bytes: i32 = "offset.metadata.max.bytes",
    offsets_commit_required_acks: i16 = "offsets.commit.required.acks",
    offsets_commit_timeout_ms: i32 = "offsets.commit.timeout.ms",
    offsets_load_buffer_size: usize = "offsets.load.buffer.size",
    offsets_retention_minutes: i32 = "offsets.retention.minutes",
    offsets_retention_check_interval_ms: i64 = "offsets.retention.check.interval.ms",
    offsets_topic_compression_codec: i32 = "offsets.topic.compression.codec",
    offsets_topic_num_partitions: i32 = "offsets.topic.num.partitions",
    offsets_topic_replication_factor: i16 = "offsets.topic.replication.factor",
    offsets_topic_segment_bytes: i32 = "offsets.topic.segment.bytes",
    transaction_state_log_num_partitions: i32 = "transaction.state.log.num.partitions",
    transaction_state_log_replication_factor: i16 = "transaction.state.log.replication.factor",
    transaction_state_log_min_isr: i32 = "transaction.state.log.min.isr",
    transaction_state_log_segment_bytes: i32 = "transaction.state.log.segment.bytes",
    transaction_max_timeout_ms: i32 = "transaction.max.timeout.ms",
    transactional_id_expiration_ms: i32 = "transactional.id.expiration.ms",
    // metadata store
    zookeeper_connect: Option<String> = "zookeeper.connect",
    zookeeper_session_timeout_ms: i32 = "zookeeper.session.timeout.ms",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_takes_the_default_of_its_key() {
        for (key, fits) in BrokerKeys::fitting() {
            assert!(fits, "{key}");
        }
    }

    #[test]
    fn values_that_were_given_reach_their_fields() {
        let given = [("num.io.threads", "3"), ("broker.rack", "r1"), ("delete.topic.enable", "false")];
        let given = given.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        let keys = BrokerKeys::read(&BrokerValues::parse(given).unwrap());
        assert_eq!((keys.num_io_threads, keys.broker_rack.as_deref()), (3, Some("r1")));
        assert!(!keys.delete_topic_enable);
        assert_eq!(keys.log_cleaner_io_buffer_load_factor, 0.9);
    }
}

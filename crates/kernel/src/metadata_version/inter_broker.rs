//! What `inter.broker.protocol.version` decides: the versions of the requests that brokers send each other
//! without asking first (no ApiVersions between them), and what a broker may do at all.
//!
//! A test compares the whole table with what Kafka 3.9 itself answers for each of its versions.

use super::MetadataVersion as V;

/// The version that belongs to the newest step at or below `of`; steps stand newest first.
fn newest(of: V, steps: &[(V, i16)]) -> i16 {
    steps.iter().find(|(since, _)| of >= *since).map_or(0, |(_, version)| *version)
}

/// Versions of requests.
impl V {
    /// LeaderAndIsr (key 4), as the controller sends it.
    #[must_use]
    pub fn leader_and_isr_version(self) -> i16 {
        newest(
            self,
            &[
                (V::IBP_3_4_IV0, 7),
                (V::IBP_3_2_IV0, 6),
                (V::IBP_2_8_IV1, 5),
                (V::IBP_2_4_IV1, 4),
                (V::IBP_2_4_IV0, 3),
                (V::IBP_2_2_IV0, 2),
                (V::IBP_1_0_IV0, 1),
            ],
        )
    }

    /// UpdateMetadata (key 6), as the controller sends it.
    #[must_use]
    pub fn update_metadata_version(self) -> i16 {
        newest(
            self,
            &[
                (V::IBP_3_4_IV0, 8),
                (V::IBP_2_8_IV1, 7),
                (V::IBP_2_4_IV1, 6),
                (V::IBP_2_2_IV0, 5),
                (V::IBP_1_0_IV0, 4),
                (V::IBP_0_10_2_IV0, 3),
                (V::IBP_0_10_0_IV1, 2),
                (V::IBP_0_9_0, 1),
            ],
        )
    }

    /// StopReplica (key 5), as the controller sends it.
    #[must_use]
    pub fn stop_replica_version(self) -> i16 {
        newest(self, &[(V::IBP_3_4_IV0, 4), (V::IBP_2_6_IV0, 3), (V::IBP_2_4_IV1, 2), (V::IBP_2_2_IV0, 1)])
    }

    /// ControlledShutdown (key 7), as a broker that stops sends it.
    #[must_use]
    pub fn controlled_shutdown_version(self) -> i16 {
        newest(self, &[(V::IBP_2_4_IV1, 3), (V::IBP_2_2_IV0, 2), (V::IBP_0_9_0, 1)])
    }

    /// Fetch (key 1), as a follower sends it. `has_topic_ids` says whether every topic of the request has an
    /// id; without, the request stays at the last version that names topics (KIP-516).
    #[must_use]
    pub fn fetch_version(self, has_topic_ids: bool) -> i16 {
        const LAST_WITH_NAMES: i16 = 12;
        let version = newest(
            self,
            &[
                (V::IBP_3_9_IV0, 17),
                (V::IBP_3_7_IV4, 16),
                (V::IBP_3_5_IV1, 15),
                (V::IBP_3_5_IV0, 14),
                (V::IBP_3_1_IV0, 13),
                (V::IBP_2_7_IV1, 12),
                (V::IBP_2_3_IV1, 11),
                (V::IBP_2_1_IV2, 10),
                (V::IBP_2_0_IV1, 8),
                (V::IBP_1_1_IV0, 7),
                (V::IBP_0_11_0_IV1, 5),
                (V::IBP_0_11_0_IV0, 4),
                (V::IBP_0_10_1_IV1, 3),
                (V::IBP_0_10_0_IV0, 2),
                (V::IBP_0_9_0, 1),
            ],
        );
        if has_topic_ids { version } else { version.min(LAST_WITH_NAMES) }
    }

    /// OffsetsForLeaderEpoch (key 23), as a follower sends it.
    #[must_use]
    pub fn offset_for_leader_epoch_version(self) -> i16 {
        newest(self, &[(V::IBP_2_8_IV0, 4), (V::IBP_2_3_IV1, 3), (V::IBP_2_1_IV1, 2), (V::IBP_2_0_IV0, 1)])
    }

    /// ListOffsets (key 2), as a follower sends it.
    #[must_use]
    pub fn list_offsets_version(self) -> i16 {
        newest(
            self,
            &[
                (V::IBP_3_9_IV0, 9),
                (V::IBP_3_5_IV0, 8),
                (V::IBP_3_0_IV1, 7),
                (V::IBP_2_8_IV0, 6),
                (V::IBP_2_2_IV1, 5),
                (V::IBP_2_1_IV1, 4),
                (V::IBP_2_0_IV1, 3),
                (V::IBP_0_11_0_IV0, 2),
                (V::IBP_0_10_1_IV2, 1),
            ],
        )
    }

    /// WriteTxnMarkers (key 27), as a transaction coordinator sends it.
    #[must_use]
    pub fn write_txn_markers_version(self) -> i16 {
        newest(self, &[(V::IBP_2_8_IV0, 1)])
    }

    /// The highest AlterPartition (key 56) that a leader asks for; the version itself is agreed on through
    /// ApiVersions. From version 2 on topics go by id, so one topic without an id holds the request at 1.
    #[must_use]
    pub fn alter_partition_ceiling(self, has_topic_ids: bool) -> i16 {
        if has_topic_ids && self.topic_ids_supported() { 3 } else { 1 }
    }
}

/// What is allowed, or is done differently.
impl V {
    /// A follower may ask for the end of an epoch before it truncates (KIP-101).
    #[must_use]
    pub fn offset_for_leader_epoch_supported(self) -> bool {
        self >= V::IBP_0_11_0_IV2
    }

    /// A broker goes on without a failed log directory (KIP-112); below, any failure stops it.
    #[must_use]
    pub fn survives_log_dir_failure(self) -> bool {
        self >= V::IBP_1_0_IV0
    }

    /// Batches compressed with zstd may be appended (KIP-110).
    #[must_use]
    pub fn zstd_supported(self) -> bool {
        self >= V::IBP_2_1_IV0
    }

    /// Fetch, ListOffsets and OffsetsForLeaderEpoch carry the leader epoch the sender believes in (KIP-320).
    #[must_use]
    pub fn leader_epoch_fencing_supported(self) -> bool {
        self >= V::IBP_2_1_IV1
    }

    /// StopReplica carries the leader epoch of each partition (KIP-570).
    #[must_use]
    pub fn stop_replica_leader_epoch_supported(self) -> bool {
        self >= V::IBP_2_6_IV0
    }

    /// The node `/feature` is enabled (KIP-584).
    #[must_use]
    pub fn feature_versioning_supported(self) -> bool {
        self >= V::IBP_2_7_IV0
    }

    /// A leader tells a follower in the answer to its Fetch where their logs part (KIP-595).
    #[must_use]
    pub fn truncation_on_fetch_supported(self) -> bool {
        self >= V::IBP_2_7_IV1
    }

    /// A leader changes its in-sync replicas through the controller (KIP-497); below, it writes the node.
    #[must_use]
    pub fn alter_partition_supported(self) -> bool {
        self >= V::IBP_2_7_IV2
    }

    /// Topics have ids, and `partition.metadata` is kept (KIP-516).
    #[must_use]
    pub fn topic_ids_supported(self) -> bool {
        self >= V::IBP_2_8_IV0
    }

    /// Blocks of producer ids come from the controller (KIP-730).
    #[must_use]
    pub fn allocate_producer_ids_supported(self) -> bool {
        self >= V::IBP_3_0_IV0
    }

    /// `log.message.format.version` and `message.format.version` are ignored (KIP-724).
    #[must_use]
    pub fn message_format_ignored(self) -> bool {
        self >= V::IBP_3_0_IV1
    }

    /// A partition's state may say that its leader recovers from an unclean election (KIP-704).
    #[must_use]
    pub fn leader_recovery_supported(self) -> bool {
        self >= V::IBP_3_2_IV0
    }

    /// The format of `/feature`: from 2 on features have no minimum level (KIP-778).
    #[must_use]
    pub fn feature_node_version(self) -> i32 {
        if self >= V::IBP_3_3_IV0 { 2 } else { 1 }
    }

    /// The highest record format (magic) that may be written.
    #[must_use]
    pub fn highest_magic(self) -> i8 {
        match self {
            _ if self >= V::IBP_0_11_0_IV0 => 2,
            _ if self >= V::IBP_0_10_0_IV0 => 1,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_KAFKA: &str = include_str!("kafka-3.9.2.txt");

    /// The newest finished step of a release.
    fn v(release: &str) -> V {
        V::parse(release).unwrap()
    }

    #[test]
    fn every_version_answers_as_kafka_does() {
        let rows: Vec<&str> = OF_KAFKA.lines().filter(|line| !line.starts_with('#')).collect();
        let ours = V::all().map(|version| {
            let numbers = [
                version.fetch_version(true),
                version.offset_for_leader_epoch_version(),
                version.list_offsets_version(),
                version.write_txn_markers_version(),
                i16::from(version.highest_magic()),
                i16::from(version.offset_for_leader_epoch_supported()),
                i16::from(version.feature_versioning_supported()),
                i16::from(version.truncation_on_fetch_supported()),
                i16::from(version.alter_partition_supported()),
                i16::from(version.topic_ids_supported()),
                i16::from(version.allocate_producer_ids_supported()),
                i16::from(version.leader_recovery_supported()),
            ];
            numbers.iter().fold(version.to_string(), |row, number| format!("{row} {number}"))
        });
        assert_eq!(ours.collect::<Vec<_>>(), rows);
    }

    #[test]
    fn control_requests_are_sent_in_the_version_of_their_step() {
        // Since which step, LeaderAndIsr, UpdateMetadata, StopReplica.
        let table = [
            ("0.8.0", 0, 0, 0),
            ("0.9.0", 0, 1, 0),
            ("0.10.0-IV1", 0, 2, 0),
            ("0.10.2-IV0", 0, 3, 0),
            ("1.0-IV0", 1, 4, 0),
            ("2.2-IV0", 2, 5, 1),
            ("2.4-IV0", 3, 5, 1),
            ("2.4-IV1", 4, 6, 2),
            ("2.6-IV0", 4, 6, 3),
            ("2.8-IV1", 5, 7, 3),
            ("3.2-IV0", 6, 7, 3),
            ("3.4-IV0", 7, 8, 4),
        ];
        for version in V::all() {
            let (_, leader_and_isr, update_metadata, stop_replica) =
                table.iter().rfind(|(since, ..)| version >= v(since)).unwrap();
            assert_eq!(version.leader_and_isr_version(), *leader_and_isr, "{version}");
            assert_eq!(version.update_metadata_version(), *update_metadata, "{version}");
            assert_eq!(version.stop_replica_version(), *stop_replica, "{version}");
        }
    }

    #[test]
    fn releases_that_join_a_cluster_send_what_their_line_says() {
        // LeaderAndIsr, UpdateMetadata, StopReplica, Fetch, OffsetsForLeaderEpoch, ListOffsets, WriteTxnMarkers,
        // ControlledShutdown.
        for (release, expected) in [
            ("2.0", [1, 4, 0, 8, 1, 3, 0, 1]),
            ("2.2", [2, 5, 1, 10, 2, 5, 0, 2]),
            ("2.4", [4, 6, 2, 11, 3, 5, 0, 3]),
            ("2.7", [4, 6, 3, 12, 3, 5, 0, 3]),
            ("2.8", [5, 7, 3, 12, 4, 6, 1, 3]),
            ("3.0", [5, 7, 3, 12, 4, 7, 1, 3]),
            ("3.1", [5, 7, 3, 13, 4, 7, 1, 3]),
            ("3.2", [6, 7, 3, 13, 4, 7, 1, 3]),
            ("3.3", [6, 7, 3, 13, 4, 7, 1, 3]),
            ("3.4", [7, 8, 4, 13, 4, 7, 1, 3]),
            ("3.5", [7, 8, 4, 15, 4, 8, 1, 3]),
            ("3.6", [7, 8, 4, 15, 4, 8, 1, 3]),
            ("3.7", [7, 8, 4, 16, 4, 8, 1, 3]),
            ("3.8", [7, 8, 4, 16, 4, 8, 1, 3]),
            ("3.9", [7, 8, 4, 17, 4, 9, 1, 3]),
        ] {
            let version = v(release);
            let sent = [
                version.leader_and_isr_version(),
                version.update_metadata_version(),
                version.stop_replica_version(),
                version.fetch_version(true),
                version.offset_for_leader_epoch_version(),
                version.list_offsets_version(),
                version.write_txn_markers_version(),
                version.controlled_shutdown_version(),
            ];
            assert_eq!(sent, expected, "{release}");
        }
    }

    #[test]
    fn a_topic_without_an_id_holds_a_request_at_the_last_version_that_names_topics() {
        assert_eq!(v("3.9").fetch_version(false), 12);
        assert_eq!(v("2.3").fetch_version(false), 11);
        assert_eq!(v("3.9").alter_partition_ceiling(false), 1);
        assert_eq!(v("3.9").alter_partition_ceiling(true), 3);
        assert_eq!(v("2.7").alter_partition_ceiling(true), 1, "topics have no ids yet");
    }

    #[test]
    fn what_a_broker_may_do_begins_with_the_step_that_brought_it() {
        let since = |allowed: fn(V) -> bool| V::all().find(|version| allowed(*version)).unwrap().name();
        assert_eq!(since(V::survives_log_dir_failure), "1.0-IV0");
        assert_eq!(since(V::zstd_supported), "2.1-IV0");
        assert_eq!(since(V::leader_epoch_fencing_supported), "2.1-IV1");
        assert_eq!(since(V::stop_replica_leader_epoch_supported), "2.6-IV0");
        assert_eq!(since(V::message_format_ignored), "3.0-IV1");
        assert_eq!(since(|version| version.feature_node_version() == 2), "3.3-IV0");
    }
}

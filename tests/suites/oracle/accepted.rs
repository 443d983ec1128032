//! The differences that stay, each with the heading under which `docs/compatibility.md` gives its reason.

use wire::api::ApiKey;

use crate::lab::Difference;

/// The keys that Blumfeld serves.
pub const SERVED: [ApiKey; 29] = [
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::DescribeConfigs,
    ApiKey::AlterConfigs,
    ApiKey::DescribeLogDirs,
    ApiKey::CreatePartitions,
    ApiKey::ElectLeaders,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::DescribeCluster,
    ApiKey::DescribeProducers,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::FindCoordinator,
    ApiKey::JoinGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::SyncGroup,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::DeleteGroups,
    ApiKey::OffsetDelete,
];

/// One kind of difference.
pub struct Entry {
    /// The heading in `docs/compatibility.md`.
    pub title: &'static str,
    matches: fn(&Difference, &[Difference]) -> bool,
}

/// All of them.
pub const ACCEPTED: &[Entry] = &[
    Entry {
        title: "Requests that are not served yet",
        matches: |d, _| is(d, ApiKey::ApiVersions) && d.path.starts_with("api_keys"),
    },
    Entry {
        title: "Fetch below version 4",
        matches: |d, _| is(d, ApiKey::Fetch) && d.version < 4 && d.path.contains(".partitions["),
    },
    Entry {
        title: "Transactions",
        matches: |d, _| is(d, ApiKey::Produce) && changed(d, "error_code", "53", "48"),
    },
    Entry {
        title: "Offsets in the metadata store, for groups whose names can be no part of a path",
        matches: |d, _| {
            (is(d, ApiKey::OffsetCommit) && changed(d, "error_code", "-1", "24")
                || is(d, ApiKey::OffsetFetch) && changed(d, "error_code", "-1", "3"))
                && d.version == 0
                && d.case.contains("\"\"")
        },
    },
    Entry {
        title: "Faults of a real Kafka",
        matches: |d, siblings| siblings.iter().any(is_fault) || is_fault(d),
    },
    Entry {
        title: "Messages of errors",
        matches: |d, _| {
            d.path.ends_with("error_message")
                && (d.kafka == "null" || d.kafka == "\"\"")
                && d.blumfeld == "<text>"
        },
    },
    Entry {
        title: "Things named twice, topics without partitions",
        matches: |d, _| {
            (is(d, ApiKey::Produce) || is(d, ApiKey::Fetch) || is(d, ApiKey::DeleteRecords))
                && [
                    "a partition twice",
                    "a topic twice",
                    "no partitions",
                    "delete nothing",
                    "delete a partition twice",
                ]
                .contains(&d.case.as_str())
        },
    },
    Entry {
        title: "Negative lengths",
        matches: |d, _| {
            (d.case.starts_with("a length that lies") || d.case == "a client id of -2")
                && changed(d, "answer", "a response", "connection closed")
        },
    },
    Entry {
        title: "Metadata by topic id before version 12",
        matches: |d, siblings| {
            is(d, ApiKey::Metadata)
                && (10..12).contains(&d.version)
                && siblings.iter().any(|s| s.path == "cluster_id" && s.kafka == "null")
        },
    },
    Entry {
        title: "Offsets by time after records were deleted",
        matches: |d, siblings| {
            is(d, ApiKey::ListOffsets)
                && d.case.starts_with("time ")
                && siblings.iter().all(|s| s.kafka == "-1" && s.path.contains(".partitions["))
        },
    },
    Entry {
        title: "Descriptions of configs",
        matches: |d, _| {
            is(d, ApiKey::DescribeConfigs)
                && ((d.version == 0 && changed(d, "is_default", "false", "true"))
                    || (d.path.ends_with(".documentation") && d.blumfeld == "null")
                    || ["blumfeld.http.address", "zookeeper.connect", "listeners", "log.dirs"]
                        .iter()
                        .any(|key| d.path.contains(&format!("configs[\"{key}\"]")))
                    || (d.path.ends_with(".configs.len") && d.case.contains("broker"))
                    || (d.path.ends_with(".configs.len") && d.case == "describe 4 0"))
        },
    },
];

fn is(difference: &Difference, key: ApiKey) -> bool {
    difference.key == key.code()
}

/// Whether the field of this name changed from the one value to the other.
fn changed(difference: &Difference, field: &str, kafka: &str, blumfeld: &str) -> bool {
    difference.path.ends_with(field) && difference.kafka == kafka && difference.blumfeld == blumfeld
}

/// A real Kafka fails in its own code, or goes silent, where Blumfeld answers. No failure of offsets is accepted as such.
fn is_fault(difference: &Difference) -> bool {
    let of_groups = [ApiKey::OffsetCommit, ApiKey::OffsetFetch].map(ApiKey::code).contains(&difference.key);
    (difference.path.ends_with("error_code") && difference.kafka == "-1" && !of_groups)
        || (difference.path == "answer" && difference.kafka == "silence")
}

/// The heading that explains a difference, if any does; `siblings` are all differences of the same answer.
pub fn reason(difference: &Difference, siblings: &[Difference]) -> Option<&'static str> {
    ACCEPTED.iter().find(|entry| (entry.matches)(difference, siblings)).map(|entry| entry.title)
}

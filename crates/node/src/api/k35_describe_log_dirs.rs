//! DescribeLogDirs (key 35): what lies in each log directory (KIP-113, KIP-827).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use storage::log_dirs::LogDirReport;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use wire::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};

use crate::broker::Broker;
use crate::call::Call;

/// Answers a DescribeLogDirs request.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    _call: &Call,
    request: DescribeLogDirsRequest,
) -> DescribeLogDirsResponse {
    let asked: Option<BTreeSet<(Str, i32)>> = request.topics.map(|topics| {
        topics.into_iter().flat_map(|t| t.partitions.into_iter().map(move |p| (t.topic.clone(), p))).collect()
    });
    let results = broker.log_dirs().describe().into_iter().map(|dir| describe(dir, asked.as_ref()));
    DescribeLogDirsResponse { results: results.collect(), ..DescribeLogDirsResponse::default() }
}

fn describe(dir: LogDirReport, asked: Option<&BTreeSet<(Str, i32)>>) -> DescribeLogDirsResult {
    let mut result = DescribeLogDirsResult {
        log_dir: Str::from(dir.path.to_string_lossy().into_owned()),
        total_bytes: -1,
        usable_bytes: -1,
        ..DescribeLogDirsResult::default()
    };
    if !dir.is_online {
        result.error_code = ErrorCode::KafkaStorageError.code();
        return result;
    }
    if let Some((total, usable)) = dir.space {
        // A file store may be larger than the protocol can tell.
        result.total_bytes = i64::try_from(total).unwrap_or(i64::MAX);
        result.usable_bytes = i64::try_from(usable).unwrap_or(i64::MAX);
    }
    let mut topics: BTreeMap<Str, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
    for log in dir.logs {
        let topic = Str::from(log.partition.topic.as_str());
        if asked.is_some_and(|asked| !asked.contains(&(topic.clone(), log.partition.partition))) {
            continue;
        }
        topics.entry(topic).or_default().push(DescribeLogDirsPartition {
            partition_index: log.partition.partition,
            partition_size: i64::try_from(log.size_bytes).unwrap_or(i64::MAX),
            offset_lag: log.offset_lag,
            is_future_key: false,
        });
    }
    let topic = |(name, partitions)| DescribeLogDirsTopic { name, partitions };
    result.topics = topics.into_iter().map(topic).collect();
    result
}

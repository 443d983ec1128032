//! OffsetCommit (key 8): a group keeps how far it has come (KIP-211, KIP-320, KIP-345).
//!
//! Partitions that do not exist are refused here; the rest is for the group to judge. Version 0 keeps offsets in the
//! metadata store, where nobody judges.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::group::gate::Api;
use kernel::group::{self, CommitRequest, Event, OffsetToCommit};
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use wire::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use wire::messages::{OffsetCommitRequest, OffsetCommitResponse};
use wire::types::{LeaderEpoch, Millis, Now, Offset, TopicPartition};

use super::Answer;
use super::k11_join_group::lacks_static_members;
use crate::broker::Broker;
use crate::drive::{groups, old_offsets};

/// The code of each partition that is not answered with the group's.
type Codes = BTreeMap<TopicPartition, ErrorCode>;

/// Handles an OffsetCommit request.
pub(crate) fn handle(broker: &Arc<Broker>, mut answer: Answer, request: OffsetCommitRequest) {
    answer.unpin();
    let names = Names::of(&request.topics);
    if lacks_static_members(broker, request.group_instance_id.as_ref()) {
        return answer.send(&names.response(&Codes::new(), ErrorCode::UnsupportedVersion));
    }
    let image = broker.image();
    let mut unknown = Codes::new();
    let mut offsets = BTreeMap::new();
    for topic in &request.topics {
        for it in &topic.partitions {
            let partition = TopicPartition::new(topic.name.as_str(), it.partition_index);
            if image.partition(&topic.name, it.partition_index).is_some() {
                let offset = offset(answer.call().received, request.retention_time_ms, it);
                offsets.insert(partition, offset);
            } else {
                unknown.insert(partition, ErrorCode::UnknownTopicOrPartition);
            }
        }
    }
    if offsets.is_empty() {
        return answer.send(&names.response(&unknown, ErrorCode::None));
    }
    if answer.call().version() == 0 {
        return commit_to_store(broker, answer, &request.group_id, names, unknown, offsets);
    }
    let commit = CommitRequest {
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        generation: request.generation_id_or_member_epoch,
        producer: None,
        offsets,
    };
    groups::ask(
        broker,
        Api::Commit,
        &request.group_id,
        |id| Event::Commit(id, commit),
        move |outcome| {
            let mut codes = unknown;
            let rest = match outcome {
                Ok(group::Answer::Commit(of_group)) => {
                    codes.extend(of_group);
                    ErrorCode::UnknownServerError
                }
                Ok(_) => ErrorCode::UnknownServerError,
                Err(error) => error,
            };
            answer.send(&names.response(&codes, rest));
        },
    );
}

fn offset(now: Now, retention_ms: i64, it: &OffsetCommitRequestPartition) -> OffsetToCommit {
    let given = Some(it.commit_timestamp).filter(|time| *time != -1);
    let retention = Some(retention_ms).filter(|time| *time != -1);
    OffsetToCommit {
        offset: Offset(it.committed_offset),
        leader_epoch: LeaderEpoch(it.committed_leader_epoch),
        metadata: it.committed_metadata.clone().unwrap_or_default(),
        commit_timestamp: Millis(given.unwrap_or(now.wall_ms)),
        expire_timestamp: retention.map(|time| Millis(now.wall_ms.saturating_add(time))),
    }
}

fn commit_to_store(
    broker: &Arc<Broker>,
    answer: Answer,
    group_id: &str,
    names: Names,
    mut codes: Codes,
    offsets: BTreeMap<TopicPartition, OffsetToCommit>,
) {
    let most = usize::try_from(broker.config().offset_metadata_max_bytes).unwrap_or(0);
    let (too_long, kept): (Vec<_>, Vec<_>) =
        offsets.into_iter().partition(|(_, it)| it.metadata.encode_utf16().count() > most);
    codes.extend(too_long.into_iter().map(|(partition, _)| (partition, ErrorCode::OffsetMetadataTooLarge)));
    let kept: Vec<_> = kept.into_iter().map(|(partition, it)| (partition, it.offset)).collect();
    let written: Vec<_> = kept.iter().map(|(partition, _)| partition.clone()).collect();
    old_offsets::commit(broker, group_id, &kept, move |results| {
        codes.extend(written.into_iter().zip(results));
        answer.send(&names.response(&codes, ErrorCode::UnknownServerError));
    });
}

/// The partitions of a request, in its order, copied out of its frame: a commit may wait.
struct Names(Vec<(Str, Vec<i32>)>);

impl Names {
    fn of(topics: &[OffsetCommitRequestTopic]) -> Self {
        let topics = topics.iter().map(|topic| {
            let indexes = topic.partitions.iter().map(|it| it.partition_index);
            (Str::from(topic.name.as_str()), indexes.collect())
        });
        Self(topics.collect())
    }

    /// The answer with these codes, and `rest` for all others.
    fn response(&self, codes: &Codes, rest: ErrorCode) -> OffsetCommitResponse {
        let topics = self.0.iter().map(|(name, indexes)| {
            let partitions = indexes.iter().map(|index| {
                let code = codes.get(&TopicPartition::new(name.as_str(), *index)).copied();
                let error_code = code.unwrap_or(rest).code();
                OffsetCommitResponsePartition { partition_index: *index, error_code }
            });
            OffsetCommitResponseTopic { name: name.clone(), partitions: partitions.collect() }
        });
        OffsetCommitResponse { topics: topics.collect(), ..OffsetCommitResponse::default() }
    }
}

//! Turns what was read into an answer: records stay where they are, as ranges of files.

use std::sync::{Arc, PoisonError};

use kernel::fetch::session::{Answer as Sent, NO_SESSION, Session, TopicRef};
use wire::Str;
use wire::error_code::ErrorCode;
use wire::fetch_body;
use wire::messages::FetchResponse;
use wire::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, PartitionData,
};
use wire::response::Part;
use wire::types::TopicId;

use super::plan::{Plan, SessionPlan, TOPIC_ID_VERSION, Target};
use super::read::{Found, PartitionAnswer};
use crate::api::{Answer, node_endpoints};
use crate::broker::Broker;
use crate::call::Outcome;
use storage::disk::FileRange;

/// Fails the whole request.
pub(super) fn refuse(answer: Answer, error: ErrorCode) {
    answer.send(&FetchResponse { error_code: error.code(), ..FetchResponse::default() });
}

/// Answers the request with what was found.
pub(super) fn respond(broker: &Arc<Broker>, answer: Answer, plan: &Plan, found: Found) {
    let (session_id, told) = remember(broker, plan, &found);
    let mut response = FetchResponse { session_id, ..FetchResponse::default() };
    let mut records = Vec::with_capacity(plan.targets.len());
    let mut last: Option<&TopicRef> = None;
    for ((target, partition), told) in plan.targets.iter().zip(found.answers).zip(told) {
        if !told {
            continue;
        }
        count(broker, plan, target, &partition);
        if last != Some(&target.key.topic) {
            response.responses.push(topic(target));
            last = Some(&target.key.topic);
        }
        if plan.version >= 16 && partition.current_leader.is_some() {
            response.node_endpoints = node_endpoints(broker, &answer.call().connection.listener);
        }
        let Some(topic) = response.responses.last_mut() else { continue };
        let (data, range) = partition_data(plan, target, partition);
        topic.partitions.push(data);
        records.push(range);
    }
    let call = answer.call();
    let encoded =
        fetch_body::encode(&response, plan.version, call.header.correlation_id, records, |range| range.len);
    answer.end(match encoded {
        Ok(parts) => Outcome::Respond(parts),
        Err(error) => Outcome::Close(format!("the answer cannot be encoded: {error}")),
    });
}

/// Notes in the fetcher's session what it is told; returns the session's id and which partitions to name.
fn remember(broker: &Broker, plan: &Plan, found: &Found) -> (i32, Vec<bool>) {
    let all = || vec![true; plan.targets.len()];
    let answers = plan.targets.iter().zip(&found.answers);
    match &plan.session {
        SessionPlan::None => (NO_SESSION, all()),
        SessionPlan::Open => {
            let partitions = answers.map(|(target, it)| (target.key.clone(), target.asked, sent(it)));
            let session = Session::new(plan.version >= TOPIC_ID_VERSION, partitions);
            let privileged = plan.is_from_follower();
            let id = broker.fetch_sessions().open(session, privileged, broker.now().mono_ms);
            (id.unwrap_or(NO_SESSION), all())
        }
        SessionPlan::Known(id, session) => {
            let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
            (*id, answers.map(|(target, it)| session.answered(&target.key, sent(it))).collect())
        }
    }
}

fn sent(it: &PartitionAnswer) -> Sent {
    Sent {
        has_records: it.records.is_some(),
        has_error: it.error != ErrorCode::None,
        is_diverging: it.diverging.is_some(),
        has_preferred_replica: it.preferred.is_some(),
        high_watermark: it.high_watermark,
        log_start: it.log_start,
    }
}

fn topic(target: &Target) -> FetchableTopicResponse {
    let (name, id) = match &target.key.topic {
        TopicRef::Name(name) => (name.as_str(), TopicId::ZERO),
        TopicRef::Id(id) => ("", *id),
    };
    FetchableTopicResponse { topic: Str::from(name), topic_id: id, ..FetchableTopicResponse::default() }
}

fn partition_data(plan: &Plan, target: &Target, it: PartitionAnswer) -> (PartitionData, Part<FileRange>) {
    let mut data = PartitionData {
        partition_index: target.key.partition,
        error_code: it.error.code(),
        high_watermark: it.high_watermark.0,
        last_stable_offset: it.last_stable.0,
        log_start_offset: it.log_start.0,
        aborted_transactions: it.aborted.map(|list| {
            let aborted = list.iter().map(|txn| AbortedTransaction {
                producer_id: txn.producer_id,
                first_offset: txn.first_offset.0,
            });
            aborted.collect()
        }),
        ..PartitionData::default()
    };
    if let Some(preferred) = it.preferred {
        data.preferred_read_replica = preferred.0;
    }
    if let Some(end) = it.diverging {
        data.diverging_epoch = EpochEndOffset { epoch: end.epoch.0, end_offset: end.end.0 };
    }
    if let (true, Some((leader, epoch))) = (plan.version >= 16, it.current_leader) {
        data.current_leader = LeaderIdAndEpoch { leader_id: leader.0, leader_epoch: epoch.0 };
    }
    (data, it.records.map_or(Part::EMPTY, Part::Range))
}

fn count(broker: &Broker, plan: &Plan, target: &Target, it: &PartitionAnswer) {
    if target.topic.is_none() {
        return;
    }
    let bytes = u64::try_from(it.bytes()).unwrap_or(u64::MAX);
    if plan.is_from_follower() {
        broker.metrics().replication.bytes_out.add(bytes);
    }
    let own = it.partition.as_ref().map(|partition| &**partition.meters());
    for meters in own.into_iter().chain([&*broker.metrics().all_topics]) {
        meters.total_fetch_requests.inc();
        if it.error != ErrorCode::None {
            meters.failed_fetch_requests.inc();
        } else if !plan.is_from_follower() {
            meters.bytes_out.add(bytes);
        }
    }
}

//! Requests to the broker that coordinates a group: it is looked for, and looked for again when it has moved.

use std::collections::BTreeMap;
use std::time::Duration;

use net::client::ClientError;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use wire::messages::{
    FindCoordinatorRequest, FindCoordinatorResponse, OffsetCommitRequest, OffsetCommitResponse,
    OffsetFetchRequest, OffsetFetchResponse, Request,
};
use wire::types::{Offset, TopicPartition};

use crate::cluster::leaders::by_topic;
use crate::cluster::{Cluster, ClusterError, is_retriable, is_transient};

/// The version of FindCoordinator that asks for several groups at once (KIP-699).
const BATCHED_FIND: i16 = 4;
/// The version of OffsetFetch that asks for several groups at once (KIP-709).
const BATCHED_FETCH: i16 = 8;

/// What a group has committed for a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    /// The next offset to be read.
    pub(crate) offset: Offset,
    /// The leader epoch of the record before it; -1 if unknown.
    pub(crate) leader_epoch: i32,
}

/// Who commits offsets: a member of a generation, or a tool.
#[derive(Clone, Debug)]
pub(crate) struct Committer {
    /// The id of the member; empty for a tool.
    pub(crate) member: String,
    /// Its instance.
    pub(crate) instance: Option<String>,
    /// Its generation; -1 for a tool.
    pub(crate) generation: i32,
}

impl Committer {
    /// A tool, whose commit a group with members refuses.
    pub(crate) fn tool() -> Self {
        Self { member: String::new(), instance: None, generation: -1 }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Coordinator {
    cluster: Cluster,
    group: String,
    /// Its id and address, once it was found.
    found: Option<(i32, String)>,
}

impl Coordinator {
    /// The coordinator of `group`, to be found.
    pub(crate) fn new(cluster: Cluster, group: &str) -> Self {
        Self { cluster, group: group.to_owned(), found: None }
    }

    /// The group.
    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    /// The cluster.
    pub(crate) fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    /// Gives the cluster back.
    pub(crate) fn into_cluster(self) -> Cluster {
        self.cluster
    }

    /// Forgets where the coordinator is.
    pub(super) fn forget(&mut self) {
        self.found = None;
    }

    /// The id and the address of the broker that coordinates the group.
    ///
    /// # Errors
    /// If it is not found in time.
    pub(crate) async fn find(&mut self) -> Result<(i32, String), ClusterError> {
        let attempts = self.cluster.attempts();
        loop {
            if let Some(found) = &self.found {
                return Ok(found.clone());
            }
            let response = self.ask_for_coordinator().await?;
            let told = match response.coordinators.first() {
                Some(told) => (told.error_code, told.node_id, told.host.clone(), told.port),
                None => (response.error_code, response.node_id, response.host.clone(), response.port),
            };
            let (code, id, host, port) = told;
            if code == 0 {
                self.found = Some((id, Cluster::address(&host, port)));
                continue;
            }
            let refused = ClusterError::refused(format!("coordinator of group {}", self.group), code, None);
            if !is_retriable(code) {
                return Err(refused);
            }
            if !attempts.again().await {
                let what = format!("no coordinator of group {} was found", self.group);
                return Err(self.cluster.timed_out(what, refused.to_string()));
            }
        }
    }

    async fn ask_for_coordinator(&mut self) -> Result<FindCoordinatorResponse, ClusterError> {
        let group = Str::from(self.group.as_str());
        let request = |version: i16| match version >= BATCHED_FIND {
            true => FindCoordinatorRequest { coordinator_keys: vec![group.clone()], ..Default::default() },
            false => FindCoordinatorRequest { key: group.clone(), ..Default::default() },
        };
        self.cluster.call_any_version(request).await
    }

    /// Sends a request to the coordinator, again over a new connection or to another coordinator while `code_of`
    /// says that this one is none, or is loading. `request` makes the request of a version; `patience` is added to
    /// the time that a request may take.
    ///
    /// # Errors
    /// If no answer comes in time. Other codes are left to the caller.
    pub(crate) async fn call<R: Request>(
        &mut self,
        request: impl Fn(i16) -> R,
        patience: Duration,
        code_of: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response, ClusterError> {
        let attempts = self.cluster.attempts();
        loop {
            let (_, address) = self.find().await?;
            let last = match self.send(&address, &request, patience).await {
                Ok(response) => {
                    let code = code_of(&response);
                    let error = ErrorCode::from_code(code).unwrap_or(ErrorCode::UnknownServerError);
                    match error {
                        ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable => self.forget(),
                        ErrorCode::CoordinatorLoadInProgress => {}
                        _ => return Ok(response),
                    }
                    error.name().to_owned()
                }
                Err(error) if is_transient(&error) => {
                    self.forget();
                    error.to_string()
                }
                Err(error) => return Err(ClusterError::Client { address, error }),
            };
            if !attempts.again().await {
                let what = format!("the coordinator of group {} did not answer", self.group);
                return Err(self.cluster.timed_out(what, last));
            }
        }
    }

    async fn send<R: Request>(
        &mut self,
        address: &str,
        request: &impl Fn(i16) -> R,
        patience: Duration,
    ) -> Result<R::Response, ClientError> {
        let mut client = self.cluster.take_connection(address).await?;
        let version = client.common_version::<R>()?;
        let timeout = self.cluster.settings().request_timeout;
        client.set_timeout(timeout + patience);
        let answer = client.send_version(&request(version), version).await;
        client.set_timeout(timeout);
        if answer.is_ok() {
            self.cluster.give_connection(address, client);
        }
        answer
    }

    /// What the group has committed: for `partitions`, or for all if there are none.
    ///
    /// # Errors
    /// If the coordinator refuses, or is not found in time.
    pub(crate) async fn committed(
        &mut self,
        partitions: Option<&[TopicPartition]>,
    ) -> Result<BTreeMap<TopicPartition, Committed>, ClusterError> {
        let group = self.group.clone();
        let attempts = self.cluster.attempts();
        loop {
            let request = |version: i16| fetch_request(&group, partitions, version);
            let code = |response: &OffsetFetchResponse| {
                response.groups.first().map_or(response.error_code, |group| group.error_code)
            };
            let response = self.call(request, Duration::ZERO, code).await?;
            let mut last = code(&response);
            let mut committed = BTreeMap::new();
            for (at, answer) in answers(response) {
                match answer {
                    Ok(found) if found.offset.0 >= 0 => {
                        committed.insert(at, found);
                    }
                    Ok(_) => {}
                    Err(code) => last = code,
                }
            }
            if last == 0 {
                return Ok(committed);
            }
            if !is_retriable(last) || !attempts.again().await {
                return Err(ClusterError::refused(format!("offsets of group {group}"), last, None));
            }
        }
    }

    /// Commits offsets. The answer holds an error code for each partition.
    ///
    /// # Errors
    /// If the coordinator is not found in time.
    pub(crate) async fn commit(
        &mut self,
        by: &Committer,
        offsets: &BTreeMap<TopicPartition, Offset>,
    ) -> Result<BTreeMap<TopicPartition, i16>, ClusterError> {
        let group = self.group.clone();
        let request = |_: i16| OffsetCommitRequest {
            group_id: Str::from(group.as_str()),
            generation_id_or_member_epoch: by.generation,
            member_id: Str::from(by.member.as_str()),
            group_instance_id: by.instance.as_deref().map(Str::from),
            topics: commit_topics(offsets),
            ..Default::default()
        };
        let code = |response: &OffsetCommitResponse| {
            let mut partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
            partitions.find(|it| it.error_code != 0).map_or(0, |it| it.error_code)
        };
        let response = self.call(request, Duration::ZERO, code).await?;
        let topics = response.topics.into_iter();
        let codes = topics.flat_map(|topic| {
            let name = topic.name;
            let of = move |index| TopicPartition::new(name.as_str(), index);
            topic.partitions.into_iter().map(move |it| (of(it.partition_index), it.error_code))
        });
        Ok(codes.collect())
    }
}

fn commit_topics(offsets: &BTreeMap<TopicPartition, Offset>) -> Vec<OffsetCommitRequestTopic> {
    let partitions: Vec<TopicPartition> = offsets.keys().cloned().collect();
    let topic = |(name, indexes): (&str, Vec<i32>)| {
        let partition = |index: i32| OffsetCommitRequestPartition {
            partition_index: index,
            committed_offset: offsets.get(&TopicPartition::new(name, index)).map_or(-1, |offset| offset.0),
            committed_metadata: Some(Str::EMPTY),
            ..Default::default()
        };
        OffsetCommitRequestTopic {
            name: Str::from(name),
            partitions: indexes.into_iter().map(partition).collect(),
        }
    };
    by_topic(&partitions).into_iter().map(topic).collect()
}

fn fetch_request(group: &str, partitions: Option<&[TopicPartition]>, version: i16) -> OffsetFetchRequest {
    use wire::messages::offset_fetch_request::{OffsetFetchRequestTopic, OffsetFetchRequestTopics};
    let group_id = Str::from(group);
    if version >= BATCHED_FETCH {
        let topic =
            |(name, partition_indexes)| OffsetFetchRequestTopics { name: Str::from(name), partition_indexes };
        let topics = partitions.map(|all| by_topic(all).into_iter().map(topic).collect());
        let group = OffsetFetchRequestGroup { group_id, topics, ..Default::default() };
        return OffsetFetchRequest { groups: vec![group], ..Default::default() };
    }
    let topic =
        |(name, partition_indexes)| OffsetFetchRequestTopic { name: Str::from(name), partition_indexes };
    let topics = partitions.map(|all| by_topic(all).into_iter().map(topic).collect());
    OffsetFetchRequest { group_id, topics, ..Default::default() }
}

/// What a response says of each partition, in whichever form the version has it.
fn answers(response: OffsetFetchResponse) -> Vec<(TopicPartition, Result<Committed, i16>)> {
    let mut answers = Vec::new();
    let mut push = |topic: &Str, index: i32, code: i16, offset: i64, leader_epoch: i32| {
        let at = TopicPartition::new(topic.as_str(), index);
        let committed = Committed { offset: Offset(offset), leader_epoch };
        answers.push((at, if code == 0 { Ok(committed) } else { Err(code) }));
    };
    for topic in response.topics {
        for it in topic.partitions {
            push(
                &topic.name,
                it.partition_index,
                it.error_code,
                it.committed_offset,
                it.committed_leader_epoch,
            );
        }
    }
    for topic in response.groups.into_iter().flat_map(|group| group.topics) {
        for it in topic.partitions {
            push(
                &topic.name,
                it.partition_index,
                it.error_code,
                it.committed_offset,
                it.committed_leader_epoch,
            );
        }
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_asked_for_in_the_form_of_the_version() {
        let at = [TopicPartition::new("t", 1)];
        let old = fetch_request("g", Some(&at), 7);
        assert_eq!((old.group_id.as_str(), old.groups.len()), ("g", 0));
        let new = fetch_request("g", None, 8);
        assert_eq!((new.group_id.as_str(), new.groups.first().unwrap().topics.is_none()), ("", true));
        for version in 0..=9 {
            let mut out = wire::Encoder::new();
            // Below version 2 all partitions cannot be asked for.
            fetch_request("g", (version < 2).then_some(&at[..]), version).encode(&mut out, version).unwrap();
        }
    }

    #[test]
    fn a_commit_names_each_topic_once() {
        let offsets = [("a", 0, 5), ("a", 1, 6), ("b", 0, 7)]
            .map(|(topic, index, offset)| (TopicPartition::new(topic, index), Offset(offset)));
        let topics = commit_topics(&BTreeMap::from(offsets));
        let told: Vec<(&str, Vec<i64>)> = topics
            .iter()
            .map(|topic| {
                (topic.name.as_str(), topic.partitions.iter().map(|it| it.committed_offset).collect())
            })
            .collect();
        assert_eq!(told, [("a", vec![5, 6]), ("b", vec![7])]);
    }
}

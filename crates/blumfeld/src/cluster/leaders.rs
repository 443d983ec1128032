//! One question about many partitions, asked of their leaders: grouped by leader, again where a leader has moved.
//!
//! Each partition gets an answer of its own, so that one without a leader does not hide the others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use net::client::ClientError;
use wire::error_code::ErrorCode;
use wire::messages::Request;
use wire::types::TopicPartition;

use super::{Attempts, Cluster, ClusterError, Topics, is_retriable, is_transient};

/// How long a partition that nobody knows may take to appear: its topic may have been created just now.
const MISSING_PATIENCE: Duration = Duration::from_secs(3);

/// What a leader says of one partition: an error code, and what it tells if that is 0.
#[derive(Debug)]
pub(crate) struct OfLeader<T> {
    /// The partition.
    pub(crate) partition: TopicPartition,
    /// The code of the protocol.
    pub(crate) code: i16,
    /// What is told.
    pub(crate) told: T,
}

/// A question that leaders answer.
pub(crate) trait LeaderQuestion {
    /// The request.
    type Request: Request;
    /// What is told of a partition.
    type Told;

    /// The lowest version that can carry the question.
    fn least_version(&self) -> i16;
    /// What is asked for, such as `offsets`, for messages.
    fn subject(&self) -> &'static str;
    /// The request about these partitions, which are ascending.
    fn request(&self, partitions: &[TopicPartition]) -> Self::Request;
    /// The answers of a response.
    fn answers(&self, response: <Self::Request as Request>::Response) -> Vec<OfLeader<Self::Told>>;
}

/// What became of the question about each partition.
pub(crate) type ByPartition<T> = BTreeMap<TopicPartition, Result<T, ClusterError>>;

/// The partitions, grouped by topic; for requests, whose arrays are built so.
pub(crate) fn by_topic(partitions: &[TopicPartition]) -> BTreeMap<&str, Vec<i32>> {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for partition in partitions {
        topics.entry(partition.topic.as_str()).or_default().push(partition.partition);
    }
    topics
}

impl Cluster {
    /// Asks the leaders of `partitions`.
    ///
    /// # Errors
    /// If no broker answers at all, or one does not know the request. What is wrong with one partition stands in
    /// its place.
    pub(crate) async fn ask_leaders<Q: LeaderQuestion>(
        &mut self,
        question: &Q,
        partitions: impl IntoIterator<Item = TopicPartition>,
    ) -> Result<ByPartition<Q::Told>, ClusterError> {
        let mut open: BTreeSet<TopicPartition> = partitions.into_iter().collect();
        let mut settled = ByPartition::new();
        let attempts = self.attempts();
        let patience = self.settings.api_timeout.min(MISSING_PATIENCE);
        let missing_attempts = Attempts::new(patience, self.settings.retry_backoff);
        while !open.is_empty() {
            let mut last = BTreeMap::new();
            for (leader, partitions) in self.leaders_of(&open, &mut last).await? {
                let Some(address) = self.brokers.get(&leader).cloned() else { continue };
                let request = question.request(&partitions);
                match self.send_at_least(&address, &request, question.least_version()).await {
                    Ok(response) => {
                        for answer in question.answers(response) {
                            take(question.subject(), answer, &mut open, &mut settled, &mut last);
                        }
                    }
                    Err(error) if is_transient(&error) => {
                        let text = error.to_string();
                        let code = ErrorCode::NetworkException.code();
                        last.extend(partitions.into_iter().map(|it| (it, (code, text.clone()))));
                    }
                    Err(error) => return Err(ClusterError::Client { address, error }),
                }
            }
            let unknown = |code| code == ErrorCode::UnknownTopicOrPartition.code() || !is_retriable(code);
            let all_unknown = open.iter().all(|it| last.get(it).is_some_and(|(code, _)| unknown(*code)));
            let again = if all_unknown { &missing_attempts } else { &attempts };
            if open.is_empty() || again.again().await {
                continue;
            }
            for partition in std::mem::take(&mut open) {
                let error = match last.remove(&partition) {
                    Some((code, _)) if unknown(code) => {
                        ClusterError::refused(partition.to_string(), code, None)
                    }
                    Some((_, text)) => self.timed_out(format!("no answer about {partition}"), text),
                    None => {
                        self.timed_out(format!("no leader of {partition}"), String::from("none is known"))
                    }
                };
                settled.insert(partition, Err(error));
            }
        }
        Ok(settled)
    }

    /// The open partitions by leader; why others have none goes into `last`.
    async fn leaders_of(
        &mut self,
        open: &BTreeSet<TopicPartition>,
        last: &mut BTreeMap<TopicPartition, (i16, String)>,
    ) -> Result<BTreeMap<i32, Vec<TopicPartition>>, ClusterError> {
        let names: BTreeSet<&str> = open.iter().map(|partition| partition.topic.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let metadata = self.metadata(Topics::Several(&names)).await?;
        let mut leaders = BTreeMap::new();
        let mut codes = BTreeMap::new();
        for topic in &metadata.topics {
            let name = topic.name.as_deref().unwrap_or_default();
            codes.insert(name, topic.error_code);
            for partition in &topic.partitions {
                leaders.insert(TopicPartition::new(name, partition.partition_index), partition.leader_id);
            }
        }
        let mut grouped: BTreeMap<i32, Vec<TopicPartition>> = BTreeMap::new();
        for partition in open {
            match leaders.get(partition) {
                Some(leader) if *leader >= 0 => grouped.entry(*leader).or_default().push(partition.clone()),
                Some(_) => {
                    let code = ErrorCode::LeaderNotAvailable;
                    last.insert(partition.clone(), (code.code(), code.message().to_owned()));
                }
                None => {
                    let code = codes.get(partition.topic.as_str()).copied().filter(|code| *code != 0);
                    let code = code.unwrap_or(ErrorCode::UnknownTopicOrPartition.code());
                    let text = ClusterError::refused(partition.to_string(), code, None).to_string();
                    last.insert(partition.clone(), (code, text));
                }
            }
        }
        Ok(grouped)
    }

    /// Sends a request in the highest common version, which must be `least` or higher.
    async fn send_at_least<R: Request>(
        &mut self,
        address: &str,
        request: &R,
        least: i16,
    ) -> Result<R::Response, ClientError> {
        let client = self.take_connection(address).await?;
        let known = client.common_version::<R>().is_ok_and(|version| version >= least);
        let theirs = wire::api::ApiKey::from_code(R::API_KEY).and_then(|key| client.versions(key));
        self.give_connection(address, client);
        if !known {
            return Err(ClientError::Unsupported { name: R::NAME, ours: least..=*R::VERSIONS.end(), theirs });
        }
        self.send(address, request).await
    }
}

/// Settles what an answer says, or notes why it is to be asked again.
fn take<T>(
    subject: &str,
    answer: OfLeader<T>,
    open: &mut BTreeSet<TopicPartition>,
    settled: &mut ByPartition<T>,
    last: &mut BTreeMap<TopicPartition, (i16, String)>,
) {
    let OfLeader { partition, code, told } = answer;
    if code == 0 {
        if open.remove(&partition) {
            settled.insert(partition, Ok(told));
        }
        return;
    }
    let refused = ClusterError::refused(format!("{subject} of {partition}"), code, None);
    let fenced = code == ErrorCode::FencedLeaderEpoch.code();
    if is_retriable(code) || fenced {
        last.insert(partition, (code, refused.to_string()));
    } else if open.remove(&partition) {
        settled.insert(partition, Err(refused));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_good_settles_and_one_for_now_does_not() {
        let partition = |index| TopicPartition::new("t", index);
        let mut open: BTreeSet<TopicPartition> = (0..3).map(partition).collect();
        let (mut settled, mut last) = (ByPartition::new(), BTreeMap::new());
        for (index, code) in [(0, 0), (1, 1), (2, 6)] {
            let answer = OfLeader { partition: partition(index), code, told: index };
            take("offsets", answer, &mut open, &mut settled, &mut last);
        }
        assert_eq!(open.into_iter().collect::<Vec<_>>(), [partition(2)]);
        assert_eq!(last.get(&partition(2)).unwrap().0, 6);
        assert!(matches!(settled.get(&partition(0)), Some(Ok(0))));
        let refused = settled.get(&partition(1)).unwrap().as_ref().unwrap_err();
        assert!(refused.is(ErrorCode::OffsetOutOfRange) && refused.to_string().contains("offsets of t-1"));
    }

    #[test]
    fn an_answer_to_no_question_is_left_aside() {
        let (mut settled, mut last) = (ByPartition::new(), BTreeMap::new());
        let answer = OfLeader { partition: TopicPartition::new("t", 9), code: 0, told: () };
        take("offsets", answer, &mut BTreeSet::new(), &mut settled, &mut last);
        assert!(settled.is_empty() && last.is_empty());
    }
}

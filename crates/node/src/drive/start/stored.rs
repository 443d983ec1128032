//! What the store holds of topics when a broker starts.

use std::collections::BTreeMap;

use bytes::Bytes;
use metadata::store::{Blocking, Request, Response, Store, StoreError};
use metadata::znode::config::{self, ConfigEntity};
use metadata::znode::topic::{self, TopicAssignment};
use wire::types::TopicName;

use super::StartError;

/// Data and version of a znode, if there is one.
pub(super) type Node = Option<(Option<Bytes>, i32)>;

/// Data and version of each of `paths`, asked for at once; none where there is no such znode.
pub(super) fn read_nodes(store: &dyn Store, paths: Vec<String>) -> Result<Vec<Node>, StoreError> {
    let answers = Blocking::new(store).pipeline(paths.into_iter().map(Request::get).collect());
    let node = |answer: Result<Response, StoreError>| match answer {
        Ok(Response::Data { data, stat }) => Ok(Some((data, stat.version))),
        Ok(_) => Err(StoreError::Unexpected("an answer of another kind")),
        Err(error) if error.is_no_node() => Ok(None),
        Err(error) => Err(error),
    };
    answers.into_iter().map(node).collect()
}

/// A topic.
pub(super) struct StoredTopic {
    /// Its id and the replicas of its partitions.
    pub(super) assignment: TopicAssignment,
    /// The configs set on it.
    pub(super) configs: BTreeMap<String, String>,
}

/// All topics.
pub(super) fn read_topics(store: &dyn Store) -> Result<BTreeMap<TopicName, StoredTopic>, StartError> {
    let names: Vec<_> =
        Blocking::new(store).children(topic::ROOT)?.iter().map(|n| TopicName::from(n.as_str())).collect();
    let assignments = read_nodes(store, names.iter().map(topic::path).collect())?;
    let config_path = |name: &TopicName| ConfigEntity::Topic(name.clone()).path();
    let configs = read_nodes(store, names.iter().map(config_path).collect())?;
    let mut topics = BTreeMap::new();
    for ((name, assignment), configs) in names.into_iter().zip(assignments).zip(configs) {
        let Some((data, _)) = assignment else { continue };
        let assignment = TopicAssignment::decode(data.as_deref())?;
        // A topic without a config node is one whose node was removed by hand: it has no overrides.
        let configs = match configs {
            Some((data, _)) => config::decode(data.as_deref())?,
            None => BTreeMap::new(),
        };
        topics.insert(name, StoredTopic { assignment, configs });
    }
    Ok(topics)
}

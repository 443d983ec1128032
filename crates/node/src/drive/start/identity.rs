//! Who the broker is: the id of its cluster and its own. Both are compared with what the log directories tell, so that a
//! broker never serves the data of another broker or cluster.

use metadata::store::{Blocking, CreateMode, OpResult, Request, Response, Store, StoreError};
use metadata::znode::{broker_seqid, cluster_id};
use wire::types::{BrokerId, TopicId};

use super::{Membership, StartError};
use crate::config::KafkaConfig;

/// The cluster's id: the store's; else a new one. A broker that is alone founds its cluster from the directories, which
/// may come from a Kafka; in a ZooKeeper they cannot be the first to tell it: there it is another cluster's, or empty.
pub(super) fn find_cluster_id(
    store: &dyn Store,
    membership: &Membership,
    of_dirs: Option<&str>,
    seed: u64,
) -> Result<String, StartError> {
    let calls = Blocking::new(store);
    if let Some((data, _)) = calls.find(cluster_id::PATH)? {
        return Ok(cluster_id::decode(data.as_deref())?);
    }
    let id = match (of_dirs, membership) {
        (Some(id), Membership::Member { .. }) => return Err(StartError::NoSuchCluster(id.to_owned())),
        (Some(id), Membership::Alone) => id.to_owned(),
        (None, _) => {
            let mut random = fastrand::Rng::with_seed(seed.rotate_left(17));
            TopicId(random.u128(..).to_be_bytes()).to_string()
        }
    };
    calls.ensure_path("/cluster")?;
    match calls.create(cluster_id::PATH, cluster_id::encode(&id), CreateMode::Persistent) {
        // Brokers that start together may race; the first one's id is everyone's.
        Err(error) if error.is_node_exists() => {
            let (data, _) = calls.get(cluster_id::PATH)?;
            Ok(cluster_id::decode(data.as_deref())?)
        }
        Err(error) => Err(error.into()),
        Ok(_) => Ok(id),
    }
}

/// The broker's id: the configured one, else that of the directories, else one that is drawn. A draw whose answer was
/// lost only uses a number up.
pub(super) fn find_broker_id(
    store: &dyn Store,
    config: &KafkaConfig,
    of_dirs: Option<BrokerId>,
) -> Result<BrokerId, StartError> {
    if config.broker_id >= 0 {
        return Ok(BrokerId(config.broker_id));
    }
    if let Some(id) = of_dirs {
        return Ok(id);
    }
    match store.call(Request::Write(broker_seqid::draw()))? {
        Response::Written(OpResult::Set { stat }) => {
            broker_seqid::broker_id(&stat, config.reserved_broker_max_id).ok_or(StartError::NoBrokerId)
        }
        _ => Err(StoreError::Unexpected("an answer of another kind").into()),
    }
}

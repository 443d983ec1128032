//! What the store holds when a broker loads its logs: the dynamic configs of brokers, the rates of connections from IPs,
//! the configs that are set on topics, and the topic of offsets.

use std::collections::BTreeMap;

use kernel::topic_name::CONSUMER_OFFSETS;
use metadata::store::{Blocking, Request, Response, Store};
use metadata::znode::config::{self, ConfigEntity, Configs};
use metadata::znode::topic::{self, TopicAssignment};
use wire::types::{BrokerId, TopicName};

use super::StartError;
use crate::config::dynamic::Level;
use crate::config::{CurrentConfig, KafkaConfig};
use crate::drive::groups::Seen;

/// The broker's configuration with what the store adds to it. What cannot be in force is told, and stops nothing.
pub(super) fn with_dynamic(
    store: &dyn Store,
    config: &KafkaConfig,
    id: BrokerId,
) -> Result<CurrentConfig, StartError> {
    let calls = Blocking::new(store);
    let mut current = CurrentConfig::new(config.clone());
    let levels =
        [(Level::AllBrokers, ConfigEntity::DefaultBroker), (Level::OneBroker, ConfigEntity::Broker(id))];
    for (level, entity) in levels {
        let stored = match calls.pipeline(vec![Request::get(entity.path())]).pop() {
            Some(Ok(Response::Data { data, .. })) => config::decode(data.as_deref())?,
            Some(Err(error)) if !error.is_no_node() => return Err(error.into()),
            _ => continue,
        };
        let (with, problems) = current.with(level, &stored);
        for problem in problems {
            tracing::error!(entity = %entity.entity_path(), problem, "a stored dynamic config has no effect");
        }
        current = with;
    }
    with_connection_rates(&calls, current)
}

/// The configuration with the rates of connections from IPs.
fn with_connection_rates(
    calls: &Blocking<'_>,
    mut current: CurrentConfig,
) -> Result<CurrentConfig, StartError> {
    let names = calls.children(config::IPS)?;
    let entity = |name: &String| match ConfigEntity::parse(&format!("ips/{name}")) {
        Some(ConfigEntity::Ip(ip)) => Some(ip),
        _ => None,
    };
    let ips: Vec<_> = names.iter().filter_map(entity).collect();
    let reads = ips.iter().map(|ip| Request::get(ConfigEntity::Ip(ip.clone()).path())).collect();
    for (ip, answer) in ips.iter().zip(calls.pipeline(reads)) {
        let stored = match answer {
            Ok(Response::Data { data, .. }) => config::decode(data.as_deref())?,
            Err(error) if !error.is_no_node() => return Err(error.into()),
            _ => continue,
        };
        let (with, problems) = current.with_connection_rate(ip.named(), &stored);
        for problem in problems {
            tracing::error!(problem, "a stored rate of connections has no effect");
        }
        current = with;
    }
    Ok(current)
}

/// The topic of offsets, if there is one that can be read.
pub(super) fn offsets_topic(store: &dyn Store) -> Result<Option<Seen>, StartError> {
    let path = topic::path(&TopicName::from(CONSUMER_OFFSETS));
    let Some((data, _)) = Blocking::new(store).find(&path)? else { return Ok(None) };
    Ok(TopicAssignment::decode(data.as_deref()).ok().and_then(|it| Seen::of(&it)))
}

/// The configs of all topics. A topic without a config node is one whose node was removed by hand: it has no overrides.
pub(super) fn read_configs(store: &dyn Store) -> Result<BTreeMap<TopicName, Configs>, StartError> {
    let calls = Blocking::new(store);
    let names: Vec<_> = calls.children(topic::ROOT)?.iter().map(|n| TopicName::from(n.as_str())).collect();
    let paths = names.iter().map(|name| ConfigEntity::Topic(name.clone()).path());
    let answers = calls.pipeline(paths.map(Request::get).collect());
    let mut read = BTreeMap::new();
    for (name, answer) in names.into_iter().zip(answers) {
        match answer {
            Ok(Response::Data { data, .. }) => {
                read.insert(name, config::decode(data.as_deref())?);
            }
            Ok(_) => {}
            Err(error) if error.is_no_node() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(read)
}

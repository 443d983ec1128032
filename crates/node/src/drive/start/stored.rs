//! What the store holds of topics when a broker loads its logs: the configs that are set on them.

use std::collections::BTreeMap;

use metadata::store::{Blocking, Request, Response, Store};
use metadata::znode::config::{self, ConfigEntity, Configs};
use metadata::znode::topic;
use wire::types::TopicName;

use super::StartError;

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

//! Configs that were changed elsewhere: follows the notifications below `/config/changes`.
//!
//! Whoever changes the configs of an entity leaves a numbered notification that names it. Every broker reads those that it
//! has not seen, takes the entity's whole configs from the store, and removes notifications of more than a quarter of an
//! hour. One scan runs at a time; a change that is told meanwhile leads to one more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::controller::event::{Change, Event};
use metadata::store::{Request, Response, StoreError};
use metadata::znode::config::{self, ConfigEntity, Configs, EntityName};
use metadata::znode::config_change;
use wire::types::TopicName;

use super::pipeline::{Answers, one, pipeline};
use super::topic_configs::{self, TopicConfigs};
use super::{broker_configs, controller};
use crate::broker::Broker;
use crate::config::dynamic::Level;

/// How far the notifications are followed.
#[derive(Debug, Default)]
pub(crate) struct ConfigChanges(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The number of the last notification that was followed.
    last: i64,
    is_scanning: bool,
    is_due: bool,
    /// What has come in force since logs are being made; `None` while none are.
    meanwhile: Option<Meanwhile>,
}

/// What has come in force while logs are being made: they may have been made with what was before (KAFKA-8813).
#[derive(Debug, Default)]
pub(crate) struct Meanwhile {
    /// The configs of topics.
    pub(crate) topics: TopicConfigs,
    /// Whether the defaults of all topics have changed.
    pub(crate) defaults: bool,
}

impl Default for State {
    fn default() -> Self {
        Self { last: -1, is_scanning: false, is_due: false, meanwhile: None }
    }
}

impl ConfigChanges {
    /// The configs of topics are read for logs that are being made: what comes in force from now on is remembered.
    pub(crate) fn logs_are_being_made(&self) {
        self.lock().meanwhile = Some(Meanwhile::default());
    }

    /// The logs are there. Gives what has come in force meanwhile.
    pub(crate) fn logs_are_made(&self) -> Meanwhile {
        self.lock().meanwhile.take().unwrap_or_default()
    }

    /// The configs of a topic come in force.
    pub(super) fn in_force(&self, topic: &TopicName, configs: &config::Configs) {
        if let Some(meanwhile) = &mut self.lock().meanwhile {
            meanwhile.topics.insert(topic.clone(), configs.clone());
        }
    }

    /// Other defaults of topics come in force.
    pub(super) fn defaults_in_force(&self) {
        if let Some(meanwhile) = &mut self.lock().meanwhile {
            meanwhile.defaults = true;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watched znode changed.
pub(super) fn node_changed(broker: &Arc<Broker>, path: &str) {
    if path == config_change::ROOT {
        rescan(broker);
    }
}

/// Looks for notifications that were not followed yet, and watches for more.
pub(super) fn rescan(broker: &Arc<Broker>) {
    {
        let mut state = broker.config_changes().lock();
        state.is_due = true;
        if std::mem::replace(&mut state.is_scanning, true) {
            return;
        }
    }
    scan(broker);
}

fn scan(broker: &Arc<Broker>) {
    {
        let mut state = broker.config_changes().lock();
        if !std::mem::take(&mut state.is_due) {
            state.is_scanning = false;
            return;
        }
    }
    let then = broker.clone();
    one(broker.store(), Request::children(config_change::ROOT).watched(), move |answer| match answer {
        Ok(Response::Children { names, .. }) => read_notifications(&then, &names),
        Ok(_) => scan(&then),
        Err(error) => {
            // The scan after the next session finds what this one misses.
            tracing::warn!(%error, "the changes of configs cannot be listed");
            scan(&then);
        }
    });
}

/// The number at the end of a notification's name.
fn sequence(name: &str) -> Option<i64> {
    name.rsplit_once('_')?.1.parse().ok()
}

fn read_notifications(broker: &Arc<Broker>, names: &[String]) {
    let last = broker.config_changes().lock().last;
    let mut numbered: Vec<_> =
        names.iter().filter_map(|name| Some((sequence(name)?, name.clone()))).collect();
    numbered.sort();
    let reads = numbered.iter().map(|(_, name)| Request::get(path(name))).collect();
    let then = broker.clone();
    pipeline(broker.store(), reads, move |answers| {
        let now_ms = then.now().wall_ms;
        let (mut entities, mut expired) = (Vec::new(), Vec::new());
        for ((number, name), answer) in numbered.iter().zip(answers) {
            let Ok(Response::Data { data, stat }) = answer else { continue };
            if now_ms.saturating_sub(stat.ctime_ms) > config_change::EXPIRY_MS {
                expired.push(Request::delete(path(name), None));
            }
            if *number > last {
                match config_change::decode(data.as_deref()) {
                    Ok(entity) if !entities.contains(&entity) => entities.push(entity),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::error!(notification = %name, %error, "a change of configs is skipped")
                    }
                }
            }
        }
        if let Some((number, _)) = numbered.last() {
            let mut state = then.config_changes().lock();
            state.last = state.last.max(*number);
        }
        // Another broker may have removed one of them already.
        pipeline(then.store(), expired, |_| {});
        read_entities(&then, entities);
    });
}

fn path(name: &str) -> String {
    format!("{}/{name}", config_change::ROOT)
}

fn read_entities(broker: &Arc<Broker>, entities: Vec<ConfigEntity>) {
    let reads = entities.iter().map(|entity| Request::get(entity.path())).collect();
    let then = broker.clone();
    pipeline(broker.store(), reads, move |answers| {
        apply(&then, entities, answers);
        scan(&then);
    });
}

fn apply(broker: &Arc<Broker>, entities: Vec<ConfigEntity>, answers: Answers) {
    for (entity, answer) in entities.into_iter().zip(answers) {
        let configs = match answer {
            Ok(Response::Data { data, .. }) => config::decode(data.as_deref()),
            Err(error) if error.is_no_node() => Ok(Configs::new()),
            Ok(_) => continue,
            Err(error) => {
                unread(&entity, &error);
                continue;
            }
        };
        match (entity, configs) {
            (ConfigEntity::Topic(topic), Ok(configs)) => {
                topic_configs::apply(broker, &topic, &configs);
                allow_unclean_election(broker, topic, &configs);
            }
            (ConfigEntity::Broker(id), Ok(configs)) if id == broker.id() => {
                broker_configs::apply(broker, Level::OneBroker, &configs, || {});
            }
            (ConfigEntity::DefaultBroker, Ok(configs)) => {
                broker_configs::apply(broker, Level::AllBrokers, &configs, || {});
            }
            (ConfigEntity::Broker(_), Ok(_)) => {}
            (ConfigEntity::Ip(ip), Ok(configs)) => limit_connections(broker, &ip, &configs),
            (entity, Ok(_)) => {
                tracing::debug!(entity = %entity.entity_path(), "configs of an entity that is not followed yet");
            }
            (entity, Err(error)) => {
                tracing::error!(entity = %entity.entity_path(), %error, "configs that cannot be understood are left alone");
            }
        }
    }
}

/// A topic that may lose records from now on may have a leader that it had to wait for before (KAFKA-6526).
fn allow_unclean_election(broker: &Arc<Broker>, topic: TopicName, configs: &Configs) {
    if topic_configs::allows_unclean_election(configs) == Some(true) {
        controller::tell(broker, Event::Changed(Change::UncleanElection(Some(topic))));
    }
}

/// Connections from an address may come this fast from now on (KIP-612).
fn limit_connections(broker: &Arc<Broker>, ip: &EntityName, configs: &Configs) {
    let (.., problems) = broker.reconfigure(|now| now.with_connection_rate(ip.named(), configs));
    for problem in problems {
        tracing::error!(problem, "a stored rate of connections has no effect");
    }
    broker.tell_reconfigured();
}

fn unread(entity: &ConfigEntity, error: &StoreError) {
    tracing::error!(entity = %entity.entity_path(), %error, "changed configs cannot be read");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_notification_is_what_follows_its_last_underscore() {
        assert_eq!(sequence("config_change_0000000012"), Some(12));
        assert_eq!(sequence("config_change_x"), None);
        assert_eq!(sequence("stray"), None);
    }
}

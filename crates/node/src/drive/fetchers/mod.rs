//! The replica fetchers: what this broker follows is copied from its leaders. There is one fetcher for each leader and
//! number below `num.replica.fetchers`; which partition belongs to which is the kernel's to say.
//!
//! A fetcher decides nothing itself: it runs a [machine](kernel::replica::fetcher), one step at a time, wherever a job
//! may block. Here is who has which partition, and which partitions nobody fetches any more.

mod answers;
mod logs;
mod replica_fetcher;
mod requests;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::replica::fetcher::fetcher_of;
use wire::types::{BrokerId, Now, TopicId, TopicPartition};

use self::replica_fetcher::{Input, ReplicaFetcher};
use crate::broker::Broker;
use crate::partition::{Partition, Role};
use crate::peers::PeerAddress;

/// How long a fetcher without partitions keeps its connection, in milliseconds: leaders often change back and forth.
const IDLE_MS: i64 = 5_000;

/// Which fetcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    leader: BrokerId,
    number: u32,
}

/// All fetchers of a broker.
#[derive(Debug, Default)]
pub(crate) struct Fetchers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    fetchers: BTreeMap<Key, Arc<ReplicaFetcher>>,
    places: BTreeMap<TopicPartition, Key>,
    failed: BTreeSet<TopicPartition>,
    stopped: bool,
}

/// What a fetcher has done, for those who look.
#[derive(Debug)]
pub(crate) struct FetcherReport {
    /// Its name in Kafka.
    pub(crate) name: String,
    /// Where its leader listens, if that is known.
    pub(crate) address: Option<PeerAddress>,
    /// The requests that it has sent.
    pub(crate) requests: u64,
    /// The bytes of records that it has taken.
    pub(crate) bytes: u64,
    /// The requests that it sends in a second, over about a minute.
    pub(crate) requests_per_second: f64,
    /// How many records each of its partitions is behind, `None` while that is not known.
    pub(crate) lags: Vec<(TopicPartition, Option<i64>)>,
}

/// Takes up partitions that follow from now on; each tells by its role whom and in which epoch.
pub(crate) fn add(broker: &Arc<Broker>, partitions: Vec<Arc<Partition>>) {
    take_up(broker, partitions, |_| true);
}

/// `num.replica.fetchers` has changed: partitions go to the fetchers that they belong to now. Each is added to the new one
/// when the old one has let go of it, so that never two of them write into one log.
pub(crate) fn resize(broker: &Arc<Broker>) {
    let all = broker.partitions().all().into_iter();
    let followed: Vec<_> =
        all.filter_map(|partition| Some((key_of(broker, &partition)?, partition))).collect();
    let mut woken = Vec::new();
    {
        let state = broker.fetchers().lock();
        let mut moving: BTreeMap<Key, Vec<Arc<Partition>>> = BTreeMap::new();
        for (key, partition) in followed {
            if let Some(place) = state.places.get(partition.name()).filter(|place| **place != key) {
                moving.entry(*place).or_default().push(partition);
            }
        }
        for (key, partitions) in moving {
            woken.extend(state.fetchers.get(&key).and_then(|it| it.put(Input::Pass(partitions))));
        }
    }
    serve(broker, woken);
}

/// Fetcher `from` has let go of partitions, which go to others, unless something else was decided on them meanwhile.
fn pass_on(broker: &Arc<Broker>, from: Key, partitions: Vec<Arc<Partition>>) {
    take_up(broker, partitions, |place| place == Some(&from));
}

/// Takes up those partitions whose present place `may` come here.
fn take_up(broker: &Arc<Broker>, partitions: Vec<Arc<Partition>>, may: impl Fn(Option<&Key>) -> bool) {
    let mut wanted: BTreeMap<Key, Vec<Arc<Partition>>> = BTreeMap::new();
    for partition in partitions {
        if let Some(key) = key_of(broker, &partition) {
            wanted.entry(key).or_default().push(partition);
        }
    }
    let mut woken = Vec::new();
    {
        let mut state = broker.fetchers().lock();
        if state.stopped {
            return;
        }
        for (key, mut partitions) in wanted {
            partitions.retain(|partition| may(state.places.get(partition.name())));
            for partition in &partitions {
                let name = partition.name().clone();
                let before = state.places.insert(name.clone(), key).filter(|before| *before != key);
                let before = before.and_then(|before| state.fetchers.get(&before));
                woken.extend(before.and_then(|it| it.put(Input::Remove(vec![name]))));
            }
            let fetcher = state.fetchers.entry(key).or_insert_with(|| ReplicaFetcher::new(broker, key));
            woken.extend(fetcher.put(Input::Add(partitions)));
        }
    }
    serve(broker, woken);
}

/// Lets go of partitions; those that nobody fetches are no error. What a fetcher still has in its hands it can no longer
/// write once the role has changed ([`Partition::while_following`]).
pub(crate) fn remove(broker: &Arc<Broker>, partitions: &[TopicPartition]) {
    let mut woken = Vec::new();
    {
        let mut state = broker.fetchers().lock();
        let mut leaving: BTreeMap<Key, Vec<TopicPartition>> = BTreeMap::new();
        for name in partitions {
            state.failed.remove(name);
            if let Some(key) = state.places.remove(name) {
                leaving.entry(key).or_default().push(name.clone());
            }
        }
        for (key, names) in leaving {
            woken.extend(state.fetchers.get(&key).and_then(|it| it.put(Input::Remove(names))));
        }
    }
    serve(broker, woken);
}

/// The id of a partition's topic has become known, or is no longer to be used; the epoch is the same (KAFKA-13132,
/// KAFKA-13394).
pub(crate) fn topic_id_changed(broker: &Arc<Broker>, partition: &TopicPartition, id: Option<TopicId>) {
    let woken = {
        let state = broker.fetchers().lock();
        let fetcher = state.places.get(partition).and_then(|key| state.fetchers.get(key));
        fetcher.and_then(|it| it.put(Input::TopicId(partition.clone(), id)))
    };
    serve(broker, woken);
}

/// The fetcher that a partition belongs to; `None` if it does not follow anybody.
fn key_of(broker: &Broker, partition: &Partition) -> Option<Key> {
    let Role::Follower(following) = partition.role() else { return None };
    if following.leader == BrokerId::NONE || following.leader == broker.id() {
        return None;
    }
    let fetchers = u32::try_from(broker.config().num_replica_fetchers).unwrap_or(u32::MAX);
    Some(Key { leader: following.leader, number: fetcher_of(partition.name(), fetchers) })
}

/// Lets fetchers that were idle do what has come for them.
fn serve(broker: &Arc<Broker>, fetchers: impl IntoIterator<Item = Arc<ReplicaFetcher>>) {
    for fetcher in fetchers {
        let then = broker.clone();
        let work = move || fetcher.serve(&then);
        match broker.lanes() {
            // A fetcher that a stalled disk has caught must not hold up the other work of the broker.
            Some(lanes) => lanes.run_apart(Box::new(work)),
            None => broker.run_job(work),
        }
    }
}

impl Fetchers {
    /// The broker stops: nothing is fetched or written any more.
    pub(crate) fn stop(&self, broker: &Broker) {
        let fetchers = {
            let mut state = self.lock();
            state.stopped = true;
            state.places.clear();
            std::mem::take(&mut state.fetchers)
        };
        for fetcher in fetchers.into_values() {
            fetcher.close(broker);
        }
    }

    /// Panics if an invariant does not hold ([`Broker::check`]).
    pub(crate) fn check(&self) {
        self.lock().fetchers.values().for_each(|fetcher| fetcher.check());
    }

    /// How many partitions nobody fetches any more, because they failed.
    pub(crate) fn failed_count(&self) -> usize {
        self.lock().failed.len()
    }

    /// What each fetcher has done.
    pub(crate) fn report(&self, now: Now) -> Vec<FetcherReport> {
        let fetchers: Vec<_> = self.lock().fetchers.values().cloned().collect();
        fetchers.iter().map(|fetcher| fetcher.report(now)).collect()
    }

    /// Fetcher `key` has given up a partition. Returns whether it still was its own.
    fn partition_failed(&self, key: Key, name: &TopicPartition) -> bool {
        let mut state = self.lock();
        let own = state.places.get(name) == Some(&key);
        if own {
            state.failed.insert(name.clone());
        }
        own
    }

    /// A partition that may have failed is fetched again.
    fn partition_taken_up(&self, name: &TopicPartition) {
        self.lock().failed.remove(name);
    }

    /// Closes fetcher `key` if it has had nothing to do.
    fn close_if_idle(&self, broker: &Broker, key: Key) {
        let idle = {
            let mut state = self.lock();
            let idle = state.fetchers.get(&key).is_some_and(|it| it.is_idle());
            if idle { state.fetchers.remove(&key) } else { None }
        };
        if let Some(fetcher) = idle {
            fetcher.close(broker);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

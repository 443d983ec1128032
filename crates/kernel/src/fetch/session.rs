//! Incremental fetch sessions (KIP-227): what a fetcher asked for last time is remembered, so that it names
//! only what changes, and is answered only with what changed.
//!
//! [`Session`] is one fetcher's memory; [`SessionCache`] decides who may have one. The cache knows sessions
//! only by an opaque handle, so that the broker can lock each session apart from the cache.

use std::collections::BTreeMap;

use wire::types::{LeaderEpoch, Offset, TopicId, TopicName};

/// A session unused, or alive, for longer than this may be evicted by anybody, in milliseconds.
pub const EVICTION_MS: i64 = 120_000;

/// The session id of a request that has no session.
pub const NO_SESSION: i32 = 0;
/// The epoch of the first request of a session.
pub const INITIAL_EPOCH: i32 = 0;
/// The epoch of a request that wants no session.
pub const FINAL_EPOCH: i32 = -1;

/// How a request names a topic: by id from version 13, by name before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopicRef {
    /// By id.
    Id(TopicId),
    /// By name.
    Name(TopicName),
}

/// A partition as a request names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionKey {
    /// The topic.
    pub topic: TopicRef,
    /// The index of the partition.
    pub partition: i32,
}

/// What is asked of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FetchPartition {
    /// The most bytes wanted, though at least one batch if it is the first with data.
    pub max_bytes: i32,
    /// The first offset wanted.
    pub fetch_offset: Offset,
    /// The leader epoch that the fetcher believes in, or -1.
    pub current_leader_epoch: LeaderEpoch,
    /// The fetcher's own log start, -1 for a consumer.
    pub log_start: Offset,
    /// The epoch of the fetcher's last record, or -1.
    pub last_fetched_epoch: LeaderEpoch,
}

/// What one partition is about to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Answer {
    /// Whether records go along.
    pub has_records: bool,
    /// Whether the partition failed.
    pub has_error: bool,
    /// Whether a diverging epoch is told: the fetcher takes no offsets from such an answer (KAFKA-14704).
    pub is_diverging: bool,
    /// Whether a preferred replica is told.
    pub has_preferred_replica: bool,
    /// The high watermark told.
    pub high_watermark: Offset,
    /// The log start told.
    pub log_start: Offset,
}

impl Answer {
    /// The high watermark that the fetcher knows afterwards. After an error or a diverging epoch it counts as unsent,
    /// so that it is told when things are well again.
    fn high_watermark_taken(&self) -> Offset {
        if self.has_error || self.is_diverging { Offset::UNKNOWN } else { self.high_watermark }
    }
}

/// Why a request does not fit its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// The epoch is not the expected one.
    Epoch,
    /// The session names topics by id and the request by name, or the reverse.
    TopicIds,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Remembered {
    asked: FetchPartition,
    sent_high_watermark: Offset,
    sent_log_start: Offset,
}

/// The memory of one fetcher.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    epoch: i32,
    uses_topic_ids: bool,
    // Partitions are served in this order; one that had records goes to the end, so that none starves.
    order: BTreeMap<u64, PartitionKey>,
    partitions: BTreeMap<PartitionKey, (u64, Remembered)>,
    next_place: u64,
}

impl Session {
    /// A session of the partitions of a full fetch, each with what it was answered.
    pub fn new(
        uses_topic_ids: bool,
        partitions: impl IntoIterator<Item = (PartitionKey, FetchPartition, Answer)>,
    ) -> Self {
        let mut session = Self {
            epoch: 1,
            uses_topic_ids,
            order: BTreeMap::new(),
            partitions: BTreeMap::new(),
            next_place: 0,
        };
        for (key, asked, answer) in partitions {
            let sent_high_watermark = answer.high_watermark_taken();
            session.put(key, Remembered { asked, sent_high_watermark, sent_log_start: answer.log_start });
        }
        session
    }

    /// How many partitions are remembered.
    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Whether no partition is remembered: such a session is closed.
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// Whether topics are named by id.
    pub fn uses_topic_ids(&self) -> bool {
        self.uses_topic_ids
    }

    /// Takes in an incremental request: changed partitions, then forgotten ones; moves the epoch on.
    ///
    /// # Errors
    /// When the request does not fit; nothing has changed then.
    pub fn begin(
        &mut self,
        epoch: i32,
        uses_topic_ids: bool,
        changed: impl IntoIterator<Item = (PartitionKey, FetchPartition)>,
        forgotten: impl IntoIterator<Item = PartitionKey>,
    ) -> Result<(), SessionError> {
        if epoch != self.epoch {
            return Err(SessionError::Epoch);
        }
        if uses_topic_ids != self.uses_topic_ids {
            return Err(SessionError::TopicIds);
        }
        for (key, asked) in changed {
            if let Some((_, remembered)) = self.partitions.get_mut(&key) {
                remembered.asked = asked;
            } else {
                let unsent = Offset::UNKNOWN;
                self.put(key, Remembered { asked, sent_high_watermark: unsent, sent_log_start: unsent });
            }
        }
        for key in forgotten {
            if let Some((place, _)) = self.partitions.remove(&key) {
                self.order.remove(&place);
            }
        }
        self.epoch = next_epoch(self.epoch);
        Ok(())
    }

    /// The remembered partitions in the order in which they are served.
    pub fn partitions(&self) -> impl Iterator<Item = (&PartitionKey, FetchPartition)> {
        self.order.values().filter_map(|key| self.partitions.get(key).map(|(_, it)| (key, it.asked)))
    }

    /// Notes what `key` is answered and tells whether the answer names it at all.
    pub fn answered(&mut self, key: &PartitionKey, answer: Answer) -> bool {
        let Some((place, remembered)) = self.partitions.get_mut(key) else {
            return true;
        };
        let changed = remembered.sent_high_watermark != answer.high_watermark
            || remembered.sent_log_start != answer.log_start;
        remembered.sent_high_watermark = answer.high_watermark_taken();
        remembered.sent_log_start = answer.log_start;
        if answer.has_records {
            self.order.remove(place);
            *place = self.next_place;
            self.order.insert(self.next_place, key.clone());
            self.next_place += 1;
        }
        let must_tell = answer.has_error || answer.is_diverging || answer.has_preferred_replica;
        changed || answer.has_records || must_tell
    }

    fn put(&mut self, key: PartitionKey, remembered: Remembered) {
        let place = self.next_place;
        if let Some((old, _)) = self.partitions.insert(key.clone(), (place, remembered)) {
            self.order.remove(&old);
        }
        self.order.insert(place, key);
        self.next_place += 1;
    }
}

/// The epoch after `epoch`: 1 follows the largest one.
pub fn next_epoch(epoch: i32) -> i32 {
    epoch.checked_add(1).unwrap_or(1)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Slot<H> {
    handle: H,
    // A follower's session; consumers cannot push it out.
    privileged: bool,
    size: usize,
    created_ms: i64,
    used_ms: i64,
}

/// Who has a session. At most `slots` sessions are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionCache<H> {
    slots: usize,
    sessions: BTreeMap<i32, Slot<H>>,
    evictions: u64,
}

impl<H> SessionCache<H> {
    /// An empty cache of `slots` places (`max.incremental.fetch.session.cache.slots`).
    pub fn new(slots: usize) -> Self {
        Self { slots, sessions: BTreeMap::new(), evictions: 0 }
    }

    /// The session `id`, marked as used at `now_ms`.
    pub fn get(&mut self, id: i32, now_ms: i64) -> Option<&H> {
        let slot = self.sessions.get_mut(&id)?;
        slot.used_ms = now_ms;
        Some(&slot.handle)
    }

    /// Notes how many partitions session `id` holds now.
    pub fn resized(&mut self, id: i32, size: usize) {
        if let Some(slot) = self.sessions.get_mut(&id) {
            slot.size = size;
        }
    }

    /// Closes a session; an unknown one is no error.
    pub fn remove(&mut self, id: i32) {
        self.sessions.remove(&id);
    }

    /// Gives a session of `size` partitions a place, if need be by evicting another one.
    ///
    /// `draw` yields candidates for the id; those that are taken or not positive are passed over. `None`: the
    /// fetcher goes on without a session.
    pub fn create(
        &mut self,
        now_ms: i64,
        privileged: bool,
        size: usize,
        mut draw: impl FnMut() -> i32,
        handle: H,
    ) -> Option<i32> {
        if self.sessions.len() >= self.slots && !self.evict(now_ms, privileged, size) {
            return None;
        }
        let id = loop {
            let id = draw();
            if id > NO_SESSION && !self.sessions.contains_key(&id) {
                break id;
            }
        };
        self.sessions.insert(id, Slot { handle, privileged, size, created_ms: now_ms, used_ms: now_ms });
        Some(id)
    }

    /// How many sessions are open.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether no session is open.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// How many partitions all sessions hold.
    pub fn partitions(&self) -> usize {
        self.sessions.values().map(|slot| slot.size).sum()
    }

    /// How many sessions were evicted so far.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    fn evict(&mut self, now_ms: i64, privileged: bool, size: usize) -> bool {
        let stale = |since: i64| now_ms.saturating_sub(since) > EVICTION_MS;
        let oldest = self.sessions.iter().min_by_key(|(id, slot)| (slot.used_ms, **id));
        let victim = match oldest {
            Some((id, slot)) if stale(slot.used_ms) => Some(*id),
            _ => self
                .sessions
                .iter()
                .filter(|(_, slot)| stale(slot.created_ms) || (privileged && !slot.privileged))
                .min_by_key(|(id, slot)| (slot.privileged, slot.size, **id))
                .filter(|(_, slot)| (slot.privileged, slot.size) <= (privileged, size))
                .map(|(id, _)| *id),
        };
        let Some(id) = victim else {
            return false;
        };
        self.evictions += 1;
        self.sessions.remove(&id).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(partition: i32) -> PartitionKey {
        PartitionKey { topic: TopicRef::Name("t".into()), partition }
    }

    fn asked(offset: i64) -> FetchPartition {
        FetchPartition {
            max_bytes: 1,
            fetch_offset: Offset(offset),
            current_leader_epoch: LeaderEpoch(3),
            log_start: Offset(-1),
            last_fetched_epoch: LeaderEpoch(-1),
        }
    }

    fn quiet(high_watermark: i64) -> Answer {
        Answer {
            has_records: false,
            has_error: false,
            is_diverging: false,
            has_preferred_replica: false,
            high_watermark: Offset(high_watermark),
            log_start: Offset(0),
        }
    }

    fn session() -> Session {
        Session::new(false, (0..3).map(|p| (key(p), asked(0), quiet(0))))
    }

    fn order(session: &Session) -> Vec<i32> {
        session.partitions().map(|(key, _)| key.partition).collect()
    }

    #[test]
    fn an_unchanged_partition_is_left_out_and_a_changed_one_is_told() {
        let mut session = session();
        session.begin(1, false, [], []).unwrap();
        assert!(!session.answered(&key(0), quiet(0)));
        assert!(session.answered(&key(1), quiet(1)));
        assert!(session.answered(&key(2), Answer { log_start: Offset(1), ..quiet(0) }));
        assert!(session.answered(&key(0), Answer { has_preferred_replica: true, ..quiet(0) }));
        assert!(!session.answered(&key(0), quiet(0)));
    }

    #[test]
    fn after_an_error_the_same_watermark_is_told_again() {
        let mut session = session();
        assert!(session.answered(&key(0), Answer { has_error: true, ..quiet(0) }));
        assert!(session.answered(&key(0), quiet(0)));
        assert!(!session.answered(&key(0), quiet(0)));
    }

    #[test]
    fn after_a_diverging_epoch_the_same_watermark_is_told_again() {
        let mut session = session();
        assert!(session.answered(&key(0), Answer { is_diverging: true, ..quiet(0) }));
        assert!(session.answered(&key(0), quiet(0)));
        assert!(!session.answered(&key(0), quiet(0)));
    }

    #[test]
    fn a_partition_with_records_goes_to_the_end_and_one_with_a_new_watermark_does_not() {
        let mut session = session();
        assert!(session.answered(&key(0), Answer { has_records: true, ..quiet(5) }));
        assert_eq!(order(&session), [1, 2, 0]);
        assert!(session.answered(&key(1), quiet(7)));
        assert_eq!(order(&session), [1, 2, 0]);
    }

    #[test]
    fn an_incremental_request_changes_adds_and_forgets_partitions() {
        let mut session = session();
        session.begin(1, false, [(key(1), asked(9)), (key(4), asked(2))], [key(0)]).unwrap();
        let offsets: Vec<_> =
            session.partitions().map(|(key, it)| (key.partition, it.fetch_offset.0)).collect();
        assert_eq!(offsets, [(1, 9), (2, 0), (4, 2)]);
        // The remembered leader epoch is used when the partition is not named again (KAFKA-9338).
        assert!(session.partitions().all(|(_, it)| it.current_leader_epoch == LeaderEpoch(3)));
    }

    #[test]
    fn a_wrong_epoch_or_way_of_naming_changes_nothing() {
        let mut session = session();
        let before = session.clone();
        assert_eq!(session.begin(2, false, [(key(9), asked(0))], []), Err(SessionError::Epoch));
        assert_eq!(session.begin(1, true, [(key(9), asked(0))], []), Err(SessionError::TopicIds));
        assert_eq!(session, before);
    }

    #[test]
    fn the_epoch_wraps_to_one() {
        assert_eq!(next_epoch(1), 2);
        assert_eq!(next_epoch(i32::MAX), 1);
    }

    fn numbers() -> impl FnMut() -> i32 {
        let mut last = -2;
        move || {
            last += 1;
            last
        }
    }

    #[test]
    fn a_consumer_evicts_only_what_is_stale_or_old_and_not_larger() {
        let mut cache = SessionCache::new(1);
        let first = cache.create(0, false, 10, numbers(), ()).unwrap();
        assert_eq!(cache.create(1, false, 100, numbers(), ()), None);
        // Used all the time, but created long ago: a larger session may take its place, a smaller one not.
        let later = EVICTION_MS + 1;
        assert!(cache.get(first, later).is_some());
        assert_eq!(cache.create(later, false, 9, numbers(), ()), None);
        assert!(cache.create(later, false, 10, || 77, ()).is_some());
        assert!(cache.get(first, later).is_none());
        assert_eq!(cache.evictions(), 1);
    }

    #[test]
    fn a_follower_evicts_a_consumer_but_a_consumer_never_a_follower_in_use() {
        let mut cache = SessionCache::new(1);
        cache.create(0, false, 1, numbers(), ()).unwrap();
        let follower = cache.create(1, true, 1, || 5, ()).unwrap();
        assert_eq!(follower, 5);
        assert!(cache.get(5, EVICTION_MS).is_some());
        assert_eq!(cache.create(EVICTION_MS + 5, false, 50, numbers(), ()), None);
    }

    #[test]
    fn a_session_that_is_used_is_not_stale() {
        let mut cache = SessionCache::new(1);
        let id = cache.create(0, false, 10, numbers(), ()).unwrap();
        assert!(cache.get(id, EVICTION_MS).is_some());
        assert_eq!(cache.create(EVICTION_MS + 1, false, 1, numbers(), ()), None);
        assert!(cache.create(2 * EVICTION_MS + 1, false, 1, || 9, ()).is_some());
    }

    #[test]
    fn ids_are_positive_and_unique() {
        let mut cache = SessionCache::new(2);
        assert_eq!(cache.create(0, false, 1, numbers(), ()), Some(1));
        assert_eq!(cache.create(0, false, 1, numbers(), ()), Some(2));
        assert_eq!((cache.len(), cache.partitions()), (2, 2));
        cache.remove(1);
        assert_eq!(cache.len(), 1);
    }
}

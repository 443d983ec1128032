//! The partitions of a fetcher, what each is about, and the order in which they are asked for.

use std::collections::{BTreeMap, BTreeSet};

use wire::types::{LeaderEpoch, Offset, TopicId, TopicPartition};

use super::event::{PartitionReply, Target, WorkId};

/// What a partition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    /// It must find out where to cut its log.
    Truncating,
    /// It fetches.
    Fetching,
    /// Its offset is out of the leader's range, or not known.
    OutOfRange(Lookup),
}

/// Which of the leader's offsets is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lookup {
    Latest,
    Earliest { leader_end: Offset },
}

impl Lookup {
    pub(super) fn target(self) -> Target {
        match self {
            Self::Latest => Target::Latest,
            Self::Earliest { .. } => Target::Earliest,
        }
    }
}

/// What is being done to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Work {
    /// It is cut by the epochs or by the high watermark.
    Truncate { done: bool },
    /// It is cut, or begun anew, because the offset was out of range.
    Resolve { lag: i64 },
    /// Records are appended.
    Append { told: Told, room_made: bool },
    /// It is cut to the base of the first batch, which is appended then.
    MakeRoom { told: Told },
    /// It is emptied, since all of it lies below the leader's log start; records are appended then.
    StartAnew { told: Told },
}

/// The leader's offsets that came with records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Told {
    pub(super) high_watermark: Offset,
    pub(super) log_start: Offset,
}

impl Told {
    pub(super) fn of(reply: &PartitionReply) -> Self {
        Self { high_watermark: reply.high_watermark, log_start: reply.log_start }
    }
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Partition {
    pub(super) topic_id: Option<TopicId>,
    pub(super) leader_epoch: LeaderEpoch,
    pub(super) fetch_offset: Offset,
    /// The epoch of the last record; `None` if the next fetch is not to be checked for divergence.
    pub(super) last_fetched_epoch: Option<LeaderEpoch>,
    /// How far the log end is behind the leader's high watermark; `None` before the first answer.
    pub(super) lag: Option<i64>,
    /// The log start that the leader told; the log follows.
    pub(super) leader_log_start: Offset,
    /// Until when nothing is asked, on the monotonic clock.
    pub(super) delayed_until_ms: Option<i64>,
    state: State,
    work: Option<(WorkId, Work)>,
    place: u64,
}

impl Partition {
    pub(super) fn new(
        topic_id: Option<TopicId>,
        leader_epoch: LeaderEpoch,
        fetch_offset: Offset,
        state: State,
    ) -> Self {
        Self {
            topic_id,
            leader_epoch,
            fetch_offset,
            last_fetched_epoch: None,
            lag: None,
            leader_log_start: Offset::UNKNOWN,
            delayed_until_ms: None,
            state,
            work: None,
            place: 0,
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    pub(super) fn is_delayed(&self, mono_ms: i64) -> bool {
        self.delayed_until_ms.is_some_and(|until| until > mono_ms)
    }

    pub(super) fn is_ready(&self, mono_ms: i64) -> bool {
        self.state == State::Fetching && self.work.is_none() && !self.is_delayed(mono_ms)
    }

    /// The log was cut, and ends here now.
    pub(super) fn moved(&mut self, log_end: Offset, latest_epoch: Option<LeaderEpoch>) {
        self.fetch_offset = log_end;
        self.last_fetched_epoch = latest_epoch;
        self.leader_log_start = Offset::UNKNOWN;
    }

    pub(super) fn has_work(&self) -> bool {
        self.work.is_some()
    }

    /// Pauses until `until_ms`; a pause that still lasts at `mono_ms` is not made longer.
    pub(super) fn delay(&mut self, mono_ms: i64, until_ms: i64) {
        if !self.is_delayed(mono_ms) {
            self.delayed_until_ms = Some(until_ms);
        }
    }
}

/// The partitions by name, and their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Partitions {
    map: BTreeMap<TopicPartition, Partition>,
    order: BTreeMap<u64, TopicPartition>,
    next_place: u64,
    // How many logs are being worked on.
    busy: usize,
    // How many partitions do not fetch yet.
    unsettled: usize,
    // Those that may be asked for otherwise than in the last fetch.
    touched: BTreeSet<TopicPartition>,
}

impl Partitions {
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether a log is being worked on.
    pub(super) fn any_work(&self) -> bool {
        self.busy > 0
    }

    pub(super) fn get(&self, name: &TopicPartition) -> Option<&Partition> {
        self.map.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &TopicPartition) -> Option<&mut Partition> {
        let partition = self.map.get_mut(name)?;
        self.touched.insert(name.clone());
        Some(partition)
    }

    pub(super) fn set_state(&mut self, name: &TopicPartition, state: State) {
        let Some(partition) = self.map.get_mut(name) else { return };
        let before = std::mem::replace(&mut partition.state, state);
        self.unsettled -= usize::from(before != State::Fetching);
        self.unsettled += usize::from(state != State::Fetching);
        self.touched.insert(name.clone());
    }

    /// Whether all fetch, or would if nothing else were in the way.
    pub(super) fn all_settled(&self) -> bool {
        self.unsettled == 0
    }

    /// Those that were touched or removed since this was asked last, in the order in which they are asked for.
    pub(super) fn take_touched(&mut self) -> Vec<TopicPartition> {
        let mut touched: Vec<_> = std::mem::take(&mut self.touched).into_iter().collect();
        touched.sort_by_key(|name| self.map.get(name).map_or(0, |it| it.place));
        touched
    }

    /// All, in order of name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&TopicPartition, &Partition)> {
        self.map.iter()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Partition> {
        self.map.values_mut()
    }

    /// All, in the order in which they are asked for.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (&TopicPartition, &Partition)> {
        self.order.values().filter_map(|name| self.map.get_key_value(name))
    }

    /// Adds a partition at the end, or puts it in place of the one of that name.
    pub(super) fn insert(&mut self, name: TopicPartition, partition: Partition) {
        self.remove(&name);
        let place = self.take_place();
        self.order.insert(place, name.clone());
        self.touched.insert(name.clone());
        self.unsettled += usize::from(partition.state != State::Fetching);
        self.map.insert(name, Partition { place, ..partition });
    }

    pub(super) fn remove(&mut self, name: &TopicPartition) -> Option<Partition> {
        let removed = self.map.remove(name)?;
        self.order.remove(&removed.place);
        self.touched.insert(name.clone());
        self.busy -= usize::from(removed.work.is_some());
        self.unsettled -= usize::from(removed.state != State::Fetching);
        Some(removed)
    }

    pub(super) fn move_to_end(&mut self, name: &TopicPartition) {
        let place = self.take_place();
        let Some(partition) = self.map.get_mut(name) else { return };
        self.order.remove(&partition.place);
        partition.place = place;
        self.order.insert(place, name.clone());
    }

    /// Notes that work on the log of a partition begins. A partition that is not here is no error.
    pub(super) fn begin_work(&mut self, name: &TopicPartition, id: WorkId, work: Work) {
        let Some(partition) = self.map.get_mut(name) else { return };
        if partition.work.replace((id, work)).is_none() {
            self.busy += 1;
        }
    }

    /// Ends the work `id`; `None` if it is not what is being done.
    pub(super) fn end_work(&mut self, name: &TopicPartition, id: WorkId) -> Option<Work> {
        let partition = self.map.get_mut(name)?;
        let (_, work) = partition.work.take_if(|(current, _)| *current == id)?;
        self.busy -= 1;
        Some(work)
    }

    /// Panics if the order does not hold each partition once, or the count of busy ones is wrong.
    pub(super) fn check(&self) {
        assert_eq!(self.order.len(), self.map.len(), "each partition has one place");
        for (place, name) in &self.order {
            assert_eq!(self.map.get(name).map(|it| it.place), Some(*place), "{name} is at its place");
        }
        let busy = self.map.values().filter(|it| it.has_work()).count();
        assert_eq!(self.busy, busy, "logs that are worked on");
        let unsettled = self.map.values().filter(|it| it.state != State::Fetching).count();
        assert_eq!(self.unsettled, unsettled, "partitions that do not fetch yet");
        for (name, it) in &self.map {
            let known = it.fetch_offset.0 >= 0 || it.state == State::OutOfRange(Lookup::Latest);
            let known = known || matches!(it.state, State::OutOfRange(Lookup::Earliest { .. }));
            assert!(known, "{name} fetches from an offset");
        }
    }

    fn take_place(&mut self) -> u64 {
        let place = self.next_place;
        self.next_place += 1;
        place
    }
}

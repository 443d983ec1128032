//! Reading the groups of a partition from its log, when this broker begins to lead it.
//!
//! One partition is read at a time, in the order of the elections, on a thread of its own; requests of its groups are told
//! meanwhile that it is loading, and nobody else waits. What is read goes up to the log end of the
//! moment: whatever the log holds then will be committed in this leadership or is so already, and nobody but this
//! coordinator appends behind it. A partition that cannot be read wholly is not served.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use kernel::group::load::{LoadError, Loader};
use kernel::group::{Event, State};
use kernel::topic_name::CONSUMER_OFFSETS;
use storage::partition_log::{PartitionLog, ReadBound, ReadError};
use wire::batch::control::{EndTxnMarker, MarkerType};
use wire::batch::{Batch, BatchError, Limits, batches};
use wire::types::{Offset, TopicPartition};

use super::is_inactive;
use super::registry::{Groups, Load, NotServed};
use super::slot::{Home, Slot};
use crate::broker::Broker;

/// How often the progress of a long load is told, in milliseconds.
const TELL_INTERVAL_MS: i64 = 5_000;

/// The pause after which a load is done again whose disk has failed, in milliseconds; it doubles each time.
const FIRST_RETRY_PAUSE_MS: i64 = 1_000;
/// The longest such pause, in milliseconds.
const MOST_RETRY_PAUSE_MS: i64 = 60_000;

/// The partitions that are to be loaded.
#[derive(Default)]
pub(super) struct Loads(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Load>,
    busy: bool,
}

impl Loads {
    /// Adds a partition. Whether the caller must see to it that somebody loads.
    fn add(&self, load: Load) -> bool {
        let mut queue = self.lock();
        // Of one partition only the last leadership is wanted, so there are never more than partitions.
        queue.waiting.retain(|other| other.index != load.index);
        queue.waiting.push_back(load);
        !std::mem::replace(&mut queue.busy, true)
    }

    fn next(&self) -> Option<Load> {
        let mut queue = self.lock();
        let next = queue.waiting.pop_front();
        queue.busy = next.is_some();
        next
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever loads. A panic ends that one; the next partition that is to be loaded makes another one begin.
struct Loading<'a>(&'a Loads);

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().busy = false;
        }
    }
}

/// Why a partition is not loaded.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// It was let go meanwhile.
    #[error("it is not led any more")]
    NotLed,
    #[error("the log cannot be read: {0}")]
    Read(#[from] ReadError),
    #[error("the log cannot be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("a batch cannot be read: {0}")]
    Batch(#[from] BatchError),
    #[error("the log ends at offset {0}, before its end")]
    Torn(Offset),
    #[error("the batch at offset {0} holds a record that cannot be read: {1:?}")]
    Record(Offset, LoadError),
}

impl Failure {
    /// Whether another try may do better: it is the system that has failed, not what lies on the disk, nor the directory,
    /// which is offline from then on.
    fn is_passing(&self) -> bool {
        matches!(self, Self::Io(_))
    }
}

/// How long to wait after so many failures and another one.
fn retry_pause_ms(failures: u32) -> i64 {
    let doubled = 1_i64.checked_shl(failures.min(32)).unwrap_or(i64::MAX);
    FIRST_RETRY_PAUSE_MS.saturating_mul(doubled).min(MOST_RETRY_PAUSE_MS)
}

/// Loads a partition when those before it are loaded.
pub(super) fn begin(broker: &Arc<Broker>, load: Load) {
    if broker.groups().loads.add(load) {
        let then = broker.clone();
        broker.run_group_load(move || {
            let _guard = Loading(&then.groups().loads);
            while let Some(load) = then.groups().loads.next() {
                read_and_serve(&then, load);
            }
        });
    }
}

fn read_and_serve(broker: &Arc<Broker>, load: Load) {
    let name = TopicPartition::new(CONSUMER_OFFSETS, load.index);
    let begin_ms = broker.now().mono_ms;
    let outcome = broker.hosted(&name).ok_or(Failure::NotLed).and_then(|partition| {
        let home = Home { partition: Arc::downgrade(&partition), led_since: load.epoch };
        let mut reader =
            Reader { broker, load, home, loader: Loader::default(), records: 0, told_ms: begin_ms };
        reader.read(partition.log())?;
        Ok(reader)
    });
    let groups = broker.groups();
    match outcome {
        Ok(reader) => {
            let records = reader.records;
            let count = take_over(broker, reader);
            let now_ms = broker.now().mono_ms;
            let took_ms = now_ms.saturating_sub(begin_ms);
            groups.meters.load_times.add(now_ms, took_ms);
            if records > 0 {
                tracing::info!(
                    partition = %name, epoch = %load.epoch, records, groups = count, took_ms,
                    "groups are loaded"
                );
            }
        }
        Err(Failure::NotLed) => {
            groups.registry.given_up(load);
            tracing::debug!(partition = %name, "groups are not loaded: the partition was let go");
        }
        Err(error) if error.is_passing() => {
            groups.registry.failed(load);
            let pause_ms = retry_pause_ms(load.failures);
            tracing::error!(
                partition = %name, %error, pause_ms,
                "the groups of this partition cannot be loaded and are not served; it is tried again"
            );
            let again_ms = broker.now().mono_ms.saturating_add(pause_ms);
            broker.timers().add_task(again_ms, move |broker| {
                if let Some(again) = broker.groups().registry.retried(load) {
                    begin(broker, again);
                }
            });
        }
        Err(error) => {
            groups.registry.failed(load);
            tracing::error!(
                partition = %name, %error,
                "the groups of this partition cannot be loaded and are not served; let another replica lead it, \
                 or mend the log and restart this broker"
            );
        }
    }
}

/// The groups are here from now on. Returns how many.
fn take_over(broker: &Arc<Broker>, reader: Reader<'_>) -> usize {
    let Reader { load, home, loader, .. } = reader;
    let registry = &broker.groups().registry;
    let loaded = loader.finish(&broker.groups().settings, broker.now());
    for (version, records) in &loaded.unknown {
        tracing::warn!(
            partition = load.index,
            version,
            records,
            "records of a later version of Kafka are passed over"
        );
    }
    let mut groups = Groups::new();
    for (group, commands) in loaded.groups {
        let slot = Slot::new(group, load.index, home.clone());
        slot.begin(broker, commands);
        groups.insert(slot.group_id().clone(), slot);
    }
    loop {
        let count = groups.len();
        let (back, why) = match registry.loaded(load, home.clone(), groups) {
            Ok(()) => return count,
            Err(back) => back,
        };
        groups = back;
        match why {
            NotServed::Overtaken => {
                groups.values().for_each(|slot| slot.unload(broker));
                return 0;
            }
            NotServed::Deleted(partitions) => {
                let partitions = Arc::new(partitions);
                groups.values().for_each(|slot| {
                    slot.tell(broker, Event::PartitionsDeleted(partitions.clone()));
                });
                groups.retain(|_, slot| slot.look(|group| group.state() != State::Dead));
            }
        }
    }
}

/// A load under way.
struct Reader<'a> {
    broker: &'a Arc<Broker>,
    load: Load,
    home: Home,
    loader: Loader,
    records: u64,
    told_ms: i64,
}

impl Reader<'_> {
    /// Reads the log in pieces of the load buffer, or of one batch if that is larger.
    fn read(&mut self, log: &PartitionLog) -> Result<(), Failure> {
        let positions = log.positions();
        let mut next = positions.log_start;
        while next < positions.log_end {
            if is_inactive(self.broker) || !self.broker.groups().registry.is_loading(self.load) {
                return Err(Failure::NotLed);
            }
            let buffer = self.broker.groups().load_buffer_bytes;
            let read = log.read(next, buffer, true, ReadBound::LogEnd)?;
            // Nothing is left: compaction has taken the last records (KAFKA-9065).
            let Some(range) = read.range else { break };
            let before = next;
            for batch in batches(Bytes::from(range.to_vec()?)) {
                let batch = batch?;
                self.batch(&batch)?;
                next = batch.header.last_offset().plus(1);
            }
            if next == before {
                return Err(Failure::Torn(next));
            }
            self.tell(next, positions.log_end);
        }
        Ok(())
    }

    fn batch(&mut self, batch: &Batch) -> Result<(), Failure> {
        batch.verify_crc()?;
        let header = &batch.header;
        if header.is_control() {
            if let Some(marker) = EndTxnMarker::read(batch)? {
                self.loader.transaction_ended(header.producer_id, marker.marker_type == MarkerType::Commit);
            }
            return Ok(());
        }
        let producer = header.is_transactional().then_some(header.producer_id);
        for record in batch.records(Limits::default()) {
            let record = record?;
            let taken = self.loader.record(header.base_offset, producer, record.key, record.value);
            taken.map_err(|error| Failure::Record(header.base_offset, error))?;
            self.records = self.records.saturating_add(1);
        }
        Ok(())
    }

    fn tell(&mut self, next: Offset, end: Offset) {
        let now_ms = self.broker.now().mono_ms;
        if now_ms.saturating_sub(self.told_ms) >= TELL_INTERVAL_MS {
            self.told_ms = now_ms;
            tracing::info!(partition = self.load.index, %next, %end, records = self.records, "groups are being loaded");
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::types::LeaderEpoch;

    use super::super::registry::Registry;
    use super::*;

    #[test]
    fn a_disk_that_fails_is_asked_again_ever_less_often() {
        let pauses = [0, 1, 2, 5, 6, u32::MAX].map(retry_pause_ms);
        assert_eq!(pauses, [1_000, 2_000, 4_000, 32_000, 60_000, 60_000]);
    }

    #[test]
    fn what_lies_broken_on_the_disk_is_not_read_again() {
        assert!(Failure::Io(std::io::ErrorKind::OutOfMemory.into()).is_passing());
        assert!(!Failure::Torn(Offset(5)).is_passing());
        assert!(!Failure::Record(Offset(5), LoadError::NullKey).is_passing());
    }

    #[test]
    fn of_one_partition_only_the_last_leadership_is_loaded() {
        let registry = Registry::default();
        let load = |index, epoch| {
            registry.deleted(index);
            registry.elected(index, LeaderEpoch(epoch)).unwrap()
        };
        let loads = Loads::default();
        assert!(loads.add(load(1, 1)));
        let (second, third, fourth) = (load(2, 1), load(1, 3), load(1, 4));
        assert!(!loads.add(second));
        assert!(!loads.add(third));
        assert_eq!(loads.next(), Some(second));
        assert_eq!(loads.next(), Some(third));
        assert_eq!(loads.next(), None);
        assert!(loads.add(fourth), "the next one begins anew");
    }
}

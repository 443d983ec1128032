//! Expiry of offsets that nobody has needed for long enough (KIP-211), and the end of groups that nothing is left of.

use wire::error_code::ErrorCode;
use wire::types::{Now, TopicPartition};

use super::Committed;
use crate::group::{CONSUMER, Command, Group, Note, State};

impl Group {
    /// Removes what has expired. Offsets that are being committed stay; so does everything in a rebalance
    /// (KAFKA-13636).
    pub(in crate::group) fn expire_offsets(&mut self, now: Now, out: &mut Vec<Command>) {
        let is_expired =
            |(partition, it): &(&TopicPartition, &Committed)| self.is_expired(now, partition, it);
        let expired: Vec<_> = self
            .offsets
            .committed
            .iter()
            .filter(is_expired)
            .map(|(partition, _)| partition.clone())
            .collect();
        for partition in &expired {
            self.offsets.committed.remove(partition);
        }
        if !expired.is_empty() {
            out.push(Command::Note(Note::OffsetsExpired { offsets: expired.len() }));
        }
        self.entomb_and_maybe_die(now, expired, out);
    }

    fn is_expired(&self, now: Now, partition: &TopicPartition, committed: &Committed) -> bool {
        let is_consumer = |it: &wire::Str| *it == *CONSUMER;
        let since = match (&self.protocol_type, self.state) {
            (Some(_), State::Empty) => self.state_timestamp.unwrap_or(committed.commit_timestamp),
            (Some(kind), State::Stable) if is_consumer(kind) => {
                let Some(subscribed) = &self.subscribed_topics else { return false };
                if subscribed.contains(&partition.topic) {
                    return false;
                }
                committed.commit_timestamp
            }
            (None, _) => committed.commit_timestamp,
            (Some(_), _) => return false,
        };
        if self.offsets.pending.contains_key(partition) {
            return false;
        }
        match committed.expire_timestamp {
            Some(expire) => now.wall_ms >= expire.0,
            None => now.wall_ms.saturating_sub(since.0) >= self.settings.offsets_retention.0,
        }
    }

    /// Writes tombstones for offsets that were removed. A group without members, without any offset and with nobody
    /// about to join ends with them (KAFKA-19163).
    pub(in crate::group) fn entomb_and_maybe_die(
        &mut self,
        now: Now,
        mut removed: Vec<TopicPartition>,
        out: &mut Vec<Command>,
    ) {
        let ends = self.holds_nothing();
        if ends {
            removed.extend(std::mem::take(&mut self.offsets.uncertain));
        }
        self.entomb(now, removed, ends, out);
        if ends {
            self.die(ErrorCode::CoordinatorNotAvailable, out);
        }
    }
}

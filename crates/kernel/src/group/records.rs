//! The records that a group writes.

use bytes::Bytes;
use wire::internal::{GroupMetadataValue, OffsetsKey};
use wire::types::{Millis, Now, TopicPartition};
use wire::{EncodeError, Str};

use super::in_flight::InFlight;
use super::member::Member;
use super::{AppendId, Batch, Command, Group};
use wire::error_code::ErrorCode;

/// Tombstones are appended in batches of no more than about so many bytes, well below any `max.message.bytes`.
pub(super) const MAX_TOMBSTONE_BATCH_BYTES: usize = 256 << 10;

/// Key and value.
pub(super) type Record = (Bytes, Option<Bytes>);

impl Group {
    /// Stores the group, each member with the assignment that `assignment` gives it.
    pub(super) fn store_group(
        &mut self,
        now: Now,
        assignment: impl Fn(&Str) -> Bytes,
        in_flight: InFlight,
        out: &mut Vec<Command>,
    ) {
        match self.group_record(assignment) {
            Ok(record) => {
                let batch = Batch { timestamp: Millis(now.wall_ms), producer: None, records: vec![record] };
                self.append(batch, in_flight, out);
            }
            Err(_) => self.ended(now, AppendId(0), in_flight, Err(ErrorCode::UnknownServerError), out),
        }
    }

    fn group_record(&self, assignment: impl Fn(&Str) -> Bytes) -> Result<Record, EncodeError> {
        let protocol = self.protocol_name.clone().unwrap_or_default();
        let value = |member: &Member| member.to_value(&protocol, assignment(&member.member_id));
        let value = GroupMetadataValue {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol_name.clone(),
            leader: self.leader.clone(),
            current_state_timestamp: self.state_timestamp,
            members: self.members.values().map(value).collect(),
        };
        let key = OffsetsKey::GroupMetadata { group: self.group_id.clone() }.encode()?;
        Ok((key, Some(value.encode(self.settings.group_metadata_version())?)))
    }

    /// The key of an offset of this group.
    pub(super) fn offset_key(&self, partition: &TopicPartition) -> Result<Bytes, EncodeError> {
        let key = OffsetsKey::OffsetCommit {
            group: self.group_id.clone(),
            topic: Str::from(&partition.topic),
            partition: partition.partition,
        };
        key.encode()
    }

    /// Writes tombstones for offsets, and for the group if it is gone and has ever been stored.
    pub(super) fn entomb(
        &self,
        now: Now,
        offsets: impl IntoIterator<Item = TopicPartition>,
        with_group: bool,
        out: &mut Vec<Command>,
    ) {
        let offsets = offsets.into_iter().filter_map(|partition| self.offset_key(&partition).ok());
        let group = OffsetsKey::GroupMetadata { group: self.group_id.clone() }.encode().ok();
        let group = group.filter(|_| with_group && self.generation > 0);
        let (mut records, mut bytes) = (Vec::new(), 0_usize);
        let mut send = |records: Vec<Record>| {
            if !records.is_empty() {
                let timestamp = Millis(now.wall_ms);
                out.push(Command::AppendTombstones(Batch { timestamp, producer: None, records }));
            }
        };
        for key in offsets.chain(group) {
            if bytes.saturating_add(key.len()) > MAX_TOMBSTONE_BATCH_BYTES {
                send(std::mem::take(&mut records));
                bytes = 0;
            }
            bytes = bytes.saturating_add(key.len());
            records.push((key, None));
        }
        send(records);
    }
}

//! Building the groups of a partition from its records, in the order of the log.
//!
//! The loader is fed batch by batch and keeps only what counts at that point: the last value of each key, and the
//! offsets of transactions whose marker has not come yet. Nothing of a batch is pinned; the groups take over what the
//! loader holds, so nothing exists twice. After an error there is no result: a partition that cannot be read wholly is
//! not served.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use wire::internal::{GroupMetadataValue, OffsetCommitValue, OffsetsKey};
use wire::types::{Now, Offset, TopicName, TopicPartition};
use wire::{DecodeError, Str};

use super::member::{Member, owned};
use super::offsets::Offsets;
use super::{Command, Committed, Group, Reason, Settings, State};

/// Why a record cannot be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// A record has no key.
    NullKey,
    /// A key that cannot be read.
    Key(DecodeError),
    /// A value that cannot be read, or is of a later version.
    Value(DecodeError),
}

/// What is known of a group so far.
#[derive(Debug, Default)]
struct Loading {
    metadata: Option<GroupMetadataValue>,
    committed: BTreeMap<TopicPartition, Committed>,
    open: BTreeMap<i64, BTreeMap<TopicPartition, Committed>>,
}

/// Takes the records of a partition; see the module's text.
#[derive(Debug, Default)]
pub struct Loader {
    groups: BTreeMap<Str, Loading>,
    /// The groups that a transaction has pending offsets in, by producer id.
    open: BTreeMap<i64, std::collections::BTreeSet<Str>>,
    /// The key versions that were passed over, with how many records.
    unknown: BTreeMap<i16, u64>,
    topics: std::collections::BTreeSet<TopicName>,
}

/// The groups of a partition, and what they want done at once.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The groups, each with its first commands.
    pub groups: Vec<(Group, Vec<Command>)>,
    /// How many records of each unknown key version were passed over (KIP-915).
    pub unknown: BTreeMap<i16, u64>,
}

impl Loader {
    /// Takes a record of a data batch. `batch_offset`: the base offset of its batch; `producer_id`: if the batch is
    /// part of a transaction.
    ///
    /// # Errors
    /// See [`LoadError`]; the load has failed then.
    pub fn record(
        &mut self,
        batch_offset: Offset,
        producer_id: Option<i64>,
        key: Option<Bytes>,
        value: Option<Bytes>,
    ) -> Result<(), LoadError> {
        let key = OffsetsKey::decode(key.ok_or(LoadError::NullKey)?).map_err(LoadError::Key)?;
        match key {
            OffsetsKey::OffsetCommit { group, topic, partition } => {
                let value = value.map(OffsetCommitValue::decode).transpose().map_err(LoadError::Value)?;
                let committed = value.map(|value| Committed::from_value(&value, batch_offset));
                let partition = TopicPartition { topic: self.topic(&topic), partition };
                self.offset(&group, partition, committed, producer_id);
            }
            OffsetsKey::GroupMetadata { group } => {
                let value = value.map(GroupMetadataValue::decode).transpose().map_err(LoadError::Value)?;
                self.group(&group).metadata = value.map(copied);
            }
            OffsetsKey::Unknown(version) => {
                let count = self.unknown.entry(version).or_default();
                *count = count.saturating_add(1);
            }
        }
        Ok(())
    }

    /// Takes the marker of a transaction. An emptied control batch is none (KAFKA-7467).
    pub fn transaction_ended(&mut self, producer_id: i64, committed: bool) {
        for group in self.open.remove(&producer_id).unwrap_or_default() {
            let Some(loading) = self.groups.get_mut(&group) else { continue };
            let open = loading.open.remove(&producer_id).unwrap_or_default();
            for (partition, offset) in open.into_iter().filter(|_| committed) {
                let before = loading.committed.get(&partition);
                if before.is_none_or(|before| before.batch_offset < offset.batch_offset) {
                    loading.committed.insert(partition, offset);
                }
            }
        }
    }

    /// The groups. Rebalances that had not ended are forgotten: a group with members is Stable in the last generation
    /// that was stored. Members have their whole session timeout from now.
    #[must_use]
    pub fn finish(self, settings: &Arc<Settings>, now: Now) -> Loaded {
        let mut groups = Vec::new();
        for (id, loading) in self.groups {
            let Loading { metadata, committed, open } = loading;
            let offsets = Offsets::loaded(committed, open);
            if metadata.is_none() && offsets.is_empty() {
                continue;
            }
            let mut group = Group::new(&id, Arc::clone(settings), now);
            group.offsets = offsets;
            group.state_timestamp = None;
            if let Some(metadata) = &metadata {
                group.restore_members(metadata);
            }
            let mut commands = Vec::new();
            group.begin_loaded(now, &mut commands);
            groups.push((group, commands));
        }
        Loaded { groups, unknown: self.unknown }
    }

    fn offset(
        &mut self,
        group: &Str,
        partition: TopicPartition,
        committed: Option<Committed>,
        producer_id: Option<i64>,
    ) {
        let loading = self.group(group);
        let offsets = match producer_id {
            Some(producer_id) => loading.open.entry(producer_id).or_default(),
            None => &mut loading.committed,
        };
        match committed {
            Some(committed) => offsets.insert(partition, committed),
            None => offsets.remove(&partition),
        };
        let Some(producer_id) = producer_id else { return };
        loading.open.retain(|_, offsets| !offsets.is_empty());
        self.open.entry(producer_id).or_default().insert(owned(group));
    }

    fn group(&mut self, id: &Str) -> &mut Loading {
        if !self.groups.contains_key(id) {
            self.groups.insert(owned(id), Loading::default());
        }
        self.groups.entry(id.clone()).or_default()
    }

    /// One copy of a topic's name for all groups.
    fn topic(&mut self, name: &Str) -> TopicName {
        if let Some(known) = self.topics.get(name.as_str()) {
            return known.clone();
        }
        let topic = TopicName::from(name);
        self.topics.insert(topic.clone());
        topic
    }
}

impl Group {
    fn restore_members(&mut self, metadata: &GroupMetadataValue) {
        self.generation = metadata.generation;
        self.state_timestamp = metadata.current_state_timestamp;
        self.protocol_name = metadata.protocol.clone();
        let protocol = metadata.protocol.clone().unwrap_or_default();
        for member in &metadata.members {
            if !self.members.contains_key(&member.member_id) {
                self.add(Member::from_value(member, &protocol), &metadata.protocol_type);
            }
        }
        self.protocol_type = Some(metadata.protocol_type.clone()).filter(|it| !it.is_empty());
        if let Some(leader) = metadata.leader.as_ref().filter(|it| self.members.contains_key(*it)) {
            self.leader = Some(leader.clone());
        }
        if !self.members.is_empty() {
            self.state = State::Stable;
        }
        self.subscribed_topics = self.read_subscriptions();
    }

    /// What a loaded group does first.
    fn begin_loaded(&mut self, now: Now, out: &mut Vec<Command>) {
        let ids: Vec<_> = self.members.keys().cloned().collect();
        for id in ids {
            self.restart_session(now, &id);
        }
        if i32::try_from(self.members.len()).is_ok_and(|len| len > self.settings.max_size) {
            self.begin_rebalance(now, Reason::OverCapacity, out);
        }
    }
}

/// A copy that does not pin its batch.
fn copied(value: GroupMetadataValue) -> GroupMetadataValue {
    GroupMetadataValue {
        protocol_type: owned(&value.protocol_type),
        protocol: value.protocol.as_ref().map(owned),
        leader: value.leader.as_ref().map(owned),
        members: value.members.into_iter().map(copied_member).collect(),
        ..value
    }
}

fn copied_member(member: wire::internal::MemberValue) -> wire::internal::MemberValue {
    wire::internal::MemberValue {
        member_id: owned(&member.member_id),
        group_instance_id: member.group_instance_id.as_ref().map(owned),
        client_id: owned(&member.client_id),
        client_host: owned(&member.client_host),
        subscription: Bytes::copy_from_slice(&member.subscription),
        assignment: Bytes::copy_from_slice(&member.assignment),
        ..member
    }
}

//! The id of a log's topic and the file that keeps it (KIP-516). Like the other small files it is written
//! without a sync, and a flush syncs it before the recovery point moves.

use std::io;
use std::path::PathBuf;

use wire::types::TopicId;

use super::{LogError, PartitionLog};
use crate::disk::atomic::{Durability, write_new};
use crate::names::PARTITION_METADATA;
use crate::partition_metadata::{format_topic_id, write_topic_id};
use crate::segment::SegmentDir;
use crate::sync::lock;

/// The id, and whether its file waits for a sync.
#[derive(Debug, Default)]
pub(super) struct TopicIdFile {
    id: Option<TopicId>,
    unsynced: bool,
}

pub(super) fn path(dir: &SegmentDir) -> PathBuf {
    dir.path.get().join(PARTITION_METADATA)
}

impl TopicIdFile {
    /// The id as the file has it, which may not be durable yet.
    pub(super) fn loaded(id: Option<TopicId>, unsynced: bool) -> Self {
        Self { id, unsynced: unsynced && id.is_some() }
    }

    pub(super) fn get(&self) -> Option<TopicId> {
        self.id
    }

    pub(super) fn write(&mut self, dir: &SegmentDir, id: TopicId) -> io::Result<()> {
        self.id = Some(id);
        self.unsynced = true;
        write_topic_id(&**dir.files.disk(), &path(dir), id, Durability::Deferred)
    }

    /// Notes the id of a log that was just created.
    pub(super) fn write_first(&mut self, dir: &SegmentDir, id: TopicId) -> io::Result<()> {
        self.id = Some(id);
        self.unsynced = true;
        write_new(&**dir.files.disk(), &path(dir), format_topic_id(id).as_bytes())
    }

    /// Whether the file waits for a sync; the caller does it next.
    pub(super) fn take_unsynced(&mut self) -> bool {
        std::mem::take(&mut self.unsynced)
    }
}

impl PartitionLog {
    /// The log's topic has the id `id`. The zero id changes nothing.
    ///
    /// # Errors
    /// [`LogError::InconsistentTopicId`] if another id is known already.
    pub fn set_topic_id(&self, id: TopicId) -> Result<(), LogError> {
        if id.is_zero() {
            return Ok(());
        }
        self.check()?;
        let mut writer = lock(&self.writer);
        match writer.topic_id.get() {
            Some(known) if known == id => Ok(()),
            Some(known) => Err(LogError::InconsistentTopicId { known, given: id }),
            None => {
                let written = writer.topic_id.write(&self.dir, id);
                Ok(self.guard_io("write partition.metadata of", written)?)
            }
        }
    }
}

//! Whose directories these are: broker id and cluster id must agree in all of them, and with the broker.

use std::path::Path;

use wire::types::{BrokerId, Millis, Now};

use super::{LogDir, LogDirs, LogDirsError};
use crate::disk::Disk;
use crate::meta_properties::{MetaProperties, MetaPropertiesError};
use crate::names::META_PROPERTIES;
use crate::sync::lock;

impl LogDir {
    /// Reads `meta.properties`. An IO error takes the directory offline.
    pub(super) fn read_meta(&self, disk: &dyn Disk) -> Result<(), LogDirsError> {
        if !self.health.is_online() {
            return Ok(());
        }
        match MetaProperties::read(disk, &self.path().join(META_PROPERTIES)) {
            Ok(meta) => *lock(&self.meta) = meta,
            Err(MetaPropertiesError::Io(error)) => drop(self.health.fail("read meta.properties", &error)),
            Err(error) => {
                return Err(LogDirsError::MetaProperties { dir: self.path().to_path_buf(), error });
            }
        }
        Ok(())
    }
}

impl LogDirs {
    /// All directories that say whose they are must say the same.
    pub(super) fn check_agreement(&self) -> Result<(), LogDirsError> {
        self.check_identity(self.cluster_id().as_deref(), self.broker_id())
    }

    fn check_identity(&self, cluster: Option<&str>, broker: Option<BrokerId>) -> Result<(), LogDirsError> {
        for dir in self.online_dirs() {
            let meta = lock(&dir.meta).clone().unwrap_or_default();
            if let (Some(found), Some(expected)) = (&meta.cluster_id, cluster)
                && found != expected
            {
                return Err(foreign(dir.path(), "cluster", found, expected));
            }
            if let (Some(found), Some(expected)) = (meta.broker_id, broker)
                && found != expected
            {
                return Err(foreign(dir.path(), "broker", &found.to_string(), &expected.to_string()));
            }
        }
        Ok(())
    }

    /// The directories belong to broker `broker_id` of the cluster `cluster_id` from now on; those that do not
    /// say so yet are marked.
    ///
    /// # Errors
    /// [`LogDirsError::Foreign`] if one belongs to another; [`LogDirsError::AllOffline`].
    pub fn claim(&self, cluster_id: &str, broker_id: BrokerId, now: Now) -> Result<(), LogDirsError> {
        self.check_identity(Some(cluster_id), Some(broker_id))?;
        for dir in self.online_dirs() {
            let mut meta = lock(&dir.meta);
            let known = meta.clone().unwrap_or_default();
            let claimed = MetaProperties {
                cluster_id: Some(cluster_id.to_owned()),
                broker_id: Some(broker_id),
                ..known.clone()
            };
            if meta.is_some() && claimed == known {
                continue;
            }
            let written = claimed.write(&*self.disk, &dir.path().join(META_PROPERTIES), Millis(now.wall_ms));
            if dir.health.guard("write meta.properties", written).is_ok() {
                *meta = Some(claimed);
            }
        }
        self.check_some_online()
    }
}

fn foreign(dir: &Path, kind: &str, found: &str, expected: &str) -> LogDirsError {
    LogDirsError::Foreign {
        dir: dir.to_path_buf(),
        found: format!("{kind} {found}"),
        expected: format!("{kind} {expected}"),
    }
}

//! The settings of the group coordinator.

use wire::types::Millis;

use crate::metadata_version::MetadataVersion;

/// The settings that matter to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// `group.min.session.timeout.ms` (inclusive).
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms` (inclusive).
    pub max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`.
    pub initial_rebalance_delay_ms: i32,
    /// `group.max.size`: so many members a group may have.
    pub max_size: i32,
    /// `offset.metadata.max.bytes`, which Kafka counts in UTF-16 code units.
    pub offset_metadata_max: i32,
    /// `offsets.retention.minutes`.
    pub offsets_retention: Millis,
    /// `inter.broker.protocol.version`, by which the versions of records go.
    pub inter_broker_protocol: MetadataVersion,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            initial_rebalance_delay_ms: 3_000,
            max_size: i32::MAX,
            offset_metadata_max: 4_096,
            offsets_retention: Millis(10_080 * 60_000),
            inter_broker_protocol: MetadataVersion::LATEST_PRODUCTION,
        }
    }
}

impl Settings {
    /// Whether a session timeout lies within the bounds.
    #[must_use]
    pub fn allows_session_timeout(&self, session_timeout_ms: i32) -> bool {
        (self.min_session_timeout_ms..=self.max_session_timeout_ms).contains(&session_timeout_ms)
    }

    /// The version that committed offsets are written in.
    #[must_use]
    pub fn offset_commit_version(&self) -> i16 {
        let protocol = self.inter_broker_protocol;
        let steps = [MetadataVersion::IBP_2_1_IV0, MetadataVersion::IBP_2_1_IV1];
        1 + reached(protocol, &steps)
    }

    /// The version that groups are written in.
    #[must_use]
    pub fn group_metadata_version(&self) -> i16 {
        let protocol = self.inter_broker_protocol;
        let steps =
            [MetadataVersion::IBP_0_10_1_IV0, MetadataVersion::IBP_2_1_IV0, MetadataVersion::IBP_2_3_IV0];
        reached(protocol, &steps)
    }
}

/// How many of `steps` a version has reached.
fn reached(version: MetadataVersion, steps: &[MetadataVersion]) -> i16 {
    steps.iter().map(|step| i16::from(version >= *step)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inter_broker_protocol_decides_the_versions_that_are_written() {
        for (version, offsets, groups) in [
            ("0.10.0", 1, 0),
            ("0.10.1-IV0", 1, 1),
            ("2.0", 1, 1),
            ("2.1-IV0", 2, 2),
            ("2.1-IV1", 3, 2),
            ("2.2", 3, 2),
            ("2.3-IV0", 3, 3),
            ("3.9", 3, 3),
        ] {
            let inter_broker_protocol = MetadataVersion::parse(version).unwrap();
            let settings = Settings { inter_broker_protocol, ..Settings::default() };
            assert_eq!(settings.offset_commit_version(), offsets, "{version}");
            assert_eq!(settings.group_metadata_version(), groups, "{version}");
        }
    }
}

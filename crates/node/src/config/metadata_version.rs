//! The releases that `inter.broker.protocol.version` and `log.message.format.version` name. Every release
//! of the list may be written with its step (`2.7-IV1`) or short (`2.7`, the last step of that release);
//! patch numbers are cut (`3.9.1`). Versions are ordered as they were released.

use std::fmt;

#[rustfmt::skip]
const NAMES: [&str; 57] = [
    "0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.0-IV0", "0.10.0-IV1", "0.10.1-IV0", "0.10.1-IV1", "0.10.1-IV2",
    "0.10.2-IV0", "0.11.0-IV0", "0.11.0-IV1", "0.11.0-IV2", "1.0-IV0", "1.1-IV0", "2.0-IV0", "2.0-IV1", "2.1-IV0",
    "2.1-IV1", "2.1-IV2", "2.2-IV0", "2.2-IV1", "2.3-IV0", "2.3-IV1", "2.4-IV0", "2.4-IV1", "2.5-IV0", "2.6-IV0",
    "2.7-IV0", "2.7-IV1", "2.7-IV2", "2.8-IV0", "2.8-IV1", "3.0-IV0", "3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0",
    "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2",
    "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1",
];

/// One step of the inter-broker protocol, ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetadataVersion(u8);

impl MetadataVersion {
    /// The first release of record batches (magic 2).
    pub const IBP_0_11_0_IV0: Self = Self(10);
    /// The first that knows zstd.
    pub const IBP_2_1_IV0: Self = Self(17);
    /// From this one on `log.message.format.version` is ignored.
    pub const IBP_3_0_IV1: Self = Self(34);
    /// The newest that a 3.9 broker takes for finished.
    pub const LATEST_PRODUCTION: Self = Self(54);

    /// Reads a version as configs write it; `None` if there is no such version.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parts = if text.starts_with("0.") { 3 } else { 2 };
        let wanted = match text.match_indices('.').nth(parts - 1) {
            Some((end, _)) => text.get(..end)?,
            None => text,
        };
        // The patch number is cut with all that follows it, the step `-IVn` of "3.9.1-IV0" too.
        let exact = NAMES.iter().position(|name| *name == wanted);
        let last_of_release = || {
            let released = NAMES.iter().take(usize::from(Self::LATEST_PRODUCTION.0) + 1);
            let same = |name: &&str| name.split_once("-IV").is_some_and(|(release, _)| release == wanted);
            released.into_iter().rposition(same)
        };
        let index = exact.or_else(last_of_release)?;
        u8::try_from(index).ok().map(Self)
    }

    /// The full name, such as `3.9-IV0`.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.get(usize::from(self.0)).copied().unwrap_or_default()
    }
}

impl fmt::Display for MetadataVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_constants_stand_where_they_say() {
        assert_eq!(MetadataVersion::IBP_0_11_0_IV0.name(), "0.11.0-IV0");
        assert_eq!(MetadataVersion::IBP_2_1_IV0.name(), "2.1-IV0");
        assert_eq!(MetadataVersion::IBP_3_0_IV1.name(), "3.0-IV1");
        assert_eq!(MetadataVersion::LATEST_PRODUCTION.name(), "3.9-IV0");
    }

    #[test]
    fn short_and_patch_forms_mean_the_last_step_of_a_release() {
        let name = |text| MetadataVersion::parse(text).map(MetadataVersion::name);
        for (text, expected) in [
            ("3.9", "3.9-IV0"),
            ("3.9.1", "3.9-IV0"),
            ("3.9-IV0", "3.9-IV0"),
            ("3.9.1-IV0", "3.9-IV0"),
            ("2.7", "2.7-IV2"),
            ("2.7-IV0", "2.7-IV0"),
            ("0.8.0", "0.8.0"),
            ("0.10.0", "0.10.0-IV1"),
            ("0.10.2.1", "0.10.2-IV0"),
            ("1.0.0", "1.0-IV0"),
            ("4.0-IV0", "4.0-IV0"),
        ] {
            assert_eq!(name(text), Some(expected), "{text}");
        }
        for text in ["", "3", "0.8", "0.10", "3.10", "4.0", "x", "3.9-IV1"] {
            assert_eq!(name(text), None, "{text}");
        }
    }

    #[test]
    fn versions_are_ordered_by_age() {
        let v = |text| MetadataVersion::parse(text).unwrap();
        assert!(v("0.11.0") < v("1.0") && v("2.7-IV0") < v("2.7-IV2") && v("2.8") < v("3.0"));
    }
}

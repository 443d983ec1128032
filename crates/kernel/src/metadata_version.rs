//! The releases that `inter.broker.protocol.version` and `log.message.format.version` name. Every release
//! of the list may be written with its step (`2.7-IV1`) or short (`2.7`, the last step of that release);
//! patch numbers are cut (`3.9.1`). Versions are ordered as they were released.
//!
//! What a version means for the requests between brokers stands in `inter_broker`.

mod inter_broker;

use std::fmt;

/// One step of the inter-broker protocol, ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetadataVersion(u8);

macro_rules! versions {
    ($($name:ident $text:literal)*) => {
        /// The places of the names in [`NAMES`], counted by the compiler.
        #[allow(non_camel_case_types, reason = "Kafka's names, which the constants carry")]
        enum Place { $($name,)* Count }

        /// All versions, oldest first.
        const NAMES: [&str; Place::Count as usize] = [$($text),*];

        impl MetadataVersion {
            $(#[doc = concat!("`", $text, "`")]
            pub const $name: Self = Self(Place::$name as u8);)*
        }
    };
}

#[rustfmt::skip]
versions! {
    IBP_0_8_0 "0.8.0" IBP_0_8_1 "0.8.1" IBP_0_8_2 "0.8.2" IBP_0_9_0 "0.9.0"
    IBP_0_10_0_IV0 "0.10.0-IV0" IBP_0_10_0_IV1 "0.10.0-IV1"
    IBP_0_10_1_IV0 "0.10.1-IV0" IBP_0_10_1_IV1 "0.10.1-IV1" IBP_0_10_1_IV2 "0.10.1-IV2"
    IBP_0_10_2_IV0 "0.10.2-IV0"
    IBP_0_11_0_IV0 "0.11.0-IV0" IBP_0_11_0_IV1 "0.11.0-IV1" IBP_0_11_0_IV2 "0.11.0-IV2"
    IBP_1_0_IV0 "1.0-IV0" IBP_1_1_IV0 "1.1-IV0"
    IBP_2_0_IV0 "2.0-IV0" IBP_2_0_IV1 "2.0-IV1"
    IBP_2_1_IV0 "2.1-IV0" IBP_2_1_IV1 "2.1-IV1" IBP_2_1_IV2 "2.1-IV2"
    IBP_2_2_IV0 "2.2-IV0" IBP_2_2_IV1 "2.2-IV1" IBP_2_3_IV0 "2.3-IV0" IBP_2_3_IV1 "2.3-IV1"
    IBP_2_4_IV0 "2.4-IV0" IBP_2_4_IV1 "2.4-IV1" IBP_2_5_IV0 "2.5-IV0" IBP_2_6_IV0 "2.6-IV0"
    IBP_2_7_IV0 "2.7-IV0" IBP_2_7_IV1 "2.7-IV1" IBP_2_7_IV2 "2.7-IV2"
    IBP_2_8_IV0 "2.8-IV0" IBP_2_8_IV1 "2.8-IV1"
    IBP_3_0_IV0 "3.0-IV0" IBP_3_0_IV1 "3.0-IV1" IBP_3_1_IV0 "3.1-IV0" IBP_3_2_IV0 "3.2-IV0"
    IBP_3_3_IV0 "3.3-IV0" IBP_3_3_IV1 "3.3-IV1" IBP_3_3_IV2 "3.3-IV2" IBP_3_3_IV3 "3.3-IV3"
    IBP_3_4_IV0 "3.4-IV0" IBP_3_5_IV0 "3.5-IV0" IBP_3_5_IV1 "3.5-IV1" IBP_3_5_IV2 "3.5-IV2"
    IBP_3_6_IV0 "3.6-IV0" IBP_3_6_IV1 "3.6-IV1" IBP_3_6_IV2 "3.6-IV2"
    IBP_3_7_IV0 "3.7-IV0" IBP_3_7_IV1 "3.7-IV1" IBP_3_7_IV2 "3.7-IV2" IBP_3_7_IV3 "3.7-IV3" IBP_3_7_IV4 "3.7-IV4"
    IBP_3_8_IV0 "3.8-IV0" IBP_3_9_IV0 "3.9-IV0" IBP_4_0_IV0 "4.0-IV0" IBP_4_0_IV1 "4.0-IV1"
}

impl MetadataVersion {
    /// The newest that a 3.9 broker takes for finished.
    pub const LATEST_PRODUCTION: Self = Self::IBP_3_9_IV0;

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

    /// All versions, oldest first, those that are not finished too.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Place::Count as u8).map(Self)
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
        assert!(MetadataVersion::all().is_sorted());
    }

    #[test]
    fn every_version_is_read_by_its_own_name() {
        for version in MetadataVersion::all() {
            assert_eq!(MetadataVersion::parse(version.name()), Some(version));
        }
        assert_eq!(MetadataVersion::IBP_2_7_IV1.to_string(), "2.7-IV1");
    }
}

//! Which names a topic may have. A name is 1 to 249 characters of `[a-zA-Z0-9._-]`, neither `.` nor `..`.
//! Two names collide when they are equal once `.` is written `_`, since metric names cannot tell them apart.

use std::fmt;

/// The longest legal name, in characters: a directory name with partition and suffix still fits 255.
pub const MAX_NAME_LENGTH: usize = 249;

/// The topic that holds committed offsets.
pub const CONSUMER_OFFSETS: &str = "__consumer_offsets";
/// The topic that holds the states of transactions.
pub const TRANSACTION_STATE: &str = "__transaction_state";
/// The log of a cluster without ZooKeeper; its name is refused here.
pub const CLUSTER_METADATA: &str = "__cluster_metadata";

/// Why a name is illegal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IllegalName {
    /// The name has no character.
    Empty,
    /// The name is `.` or `..`.
    Dots,
    /// The name has more than [`MAX_NAME_LENGTH`] characters.
    TooLong,
    /// The name has a character outside `[a-zA-Z0-9._-]`.
    Character,
}

impl fmt::Display for IllegalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the empty string is not allowed",
            Self::Dots => "'.' and '..' are not allowed",
            Self::TooLong => "it is longer than 249 characters",
            Self::Character => "it contains a character other than ASCII alphanumerics, '.', '_' and '-'",
        })
    }
}

/// Checks a name against the rules of this module.
///
/// # Errors
/// The first rule that the name breaks.
pub fn check(name: &str) -> Result<(), IllegalName> {
    if name.is_empty() {
        Err(IllegalName::Empty)
    } else if name == "." || name == ".." {
        Err(IllegalName::Dots)
    } else if name.chars().count() > MAX_NAME_LENGTH {
        Err(IllegalName::TooLong)
    } else if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
        Err(IllegalName::Character)
    } else {
        Ok(())
    }
}

/// Whether two different topics would share their metric names.
pub fn collide(one: &str, other: &str) -> bool {
    one != other && one.len() == other.len() && unified(one).eq(unified(other))
}

/// Whether clients may not write to this topic.
pub fn is_internal(name: &str) -> bool {
    name == CONSUMER_OFFSETS || name == TRANSACTION_STATE
}

fn unified(name: &str) -> impl Iterator<Item = u8> + '_ {
    name.bytes().map(|b| if b == b'.' { b'_' } else { b })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_letters_digits_dot_underscore_and_dash_is_legal() {
        for name in ["a", "A-z_0.9", "...", &"x".repeat(249)] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn each_rule_is_named_when_it_is_broken() {
        assert_eq!(check(""), Err(IllegalName::Empty));
        assert_eq!(check("."), Err(IllegalName::Dots));
        assert_eq!(check(".."), Err(IllegalName::Dots));
        assert_eq!(check(&"x".repeat(250)), Err(IllegalName::TooLong));
        for name in ["a b", "ä", "a/b", "a,b", "a\0", "a:b"] {
            assert_eq!(check(name), Err(IllegalName::Character), "{name}");
        }
    }

    #[test]
    fn names_collide_when_only_dots_and_underscores_differ() {
        assert!(collide("a.b", "a_b"));
        assert!(collide("a.b_c", "a_b.c"));
        assert!(!collide("a.b", "a.b"));
        assert!(!collide("a.b", "a-b"));
        assert!(!collide("a.b", "a_bc"));
    }

    #[test]
    fn only_the_two_topics_of_the_coordinators_are_internal() {
        assert!(is_internal(CONSUMER_OFFSETS) && is_internal(TRANSACTION_STATE));
        assert!(!is_internal("__other"));
    }
}

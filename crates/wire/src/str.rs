//! [`Str`]: text that is a slice of the frame it was read from.
//!
//! A slice keeps its whole frame alive, so what outlives a request is copied out (`TopicName`, `String`).
//! Bytes that are not UTF-8 are read as Java reads them: each ill-formed part becomes U+FFFD.

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use bytes::Bytes;

/// Immutable text, cheap to clone, which may share its memory with a frame.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Str {
    /// Always well-formed UTF-8: every constructor makes sure of it.
    text: Bytes,
}

impl Str {
    /// The empty text.
    pub const EMPTY: Self = Self { text: Bytes::new() };

    /// Text that lives as long as the program; no allocation.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self { text: Bytes::from_static(text.as_bytes()) }
    }

    /// Reads `bytes` as UTF-8 without copying; ill-formed parts become U+FFFD, which does copy.
    #[must_use]
    pub fn from_utf8_lossy(bytes: Bytes) -> Self {
        match String::from_utf8_lossy(&bytes) {
            Cow::Borrowed(_) => Self { text: bytes },
            Cow::Owned(text) => Self::from(text),
        }
    }

    /// The text.
    #[must_use]
    #[expect(unsafe_code, reason = "the text was checked when it was made; not again at each use")]
    pub fn as_str(&self) -> &str {
        // SAFETY: `text` is private and immutable, and each constructor takes it from a `str` or checks it.
        unsafe { str::from_utf8_unchecked(&self.text) }
    }
}

impl Deref for Str {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Str {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Str {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self { text: Bytes::copy_from_slice(text.as_bytes()) }
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self { text: Bytes::from(text) }
    }
}

impl From<&String> for Str {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&crate::types::TopicName> for Str {
    fn from(name: &crate::types::TopicName) -> Self {
        Self::from(name.as_str())
    }
}

impl From<&Str> for crate::types::TopicName {
    fn from(text: &Str) -> Self {
        Self::from(text.as_str())
    }
}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialOrd for Str {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Str {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn well_formed_text_shares_the_memory_of_its_frame() {
        let frame = Bytes::from(vec![b'x', 0xc3, 0xa9, b'y']);
        let text = Str::from_utf8_lossy(frame.slice(1..3));
        assert_eq!(text, "é");
        assert_eq!(text.as_ptr(), frame.get(1..).unwrap().as_ptr());
    }

    #[test]
    fn ill_formed_parts_become_replacement_characters() {
        for (bytes, text) in [
            (&b"a\xffb"[..], "a\u{fffd}b"),
            (b"\xe2\x82", "\u{fffd}"),
            (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xc3\xa9\xc3", "é\u{fffd}"),
        ] {
            let read = Str::from_utf8_lossy(Bytes::from_static(bytes));
            assert_eq!(read.as_str(), text);
            assert!(str::from_utf8(read.as_bytes()).is_ok());
        }
    }

    #[test]
    fn a_map_keyed_by_it_is_searched_by_str() {
        let map = HashMap::from([(Str::from("a"), 1), (Str::from_static("b"), 2)]);
        assert_eq!(map.get("b"), Some(&2));
        let (low, high) = (Str::from("a"), Str::from(String::from("b")));
        assert!(low < high);
    }
}

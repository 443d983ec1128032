//! What a definition says: apis, messages, structures, fields.

use std::collections::BTreeMap;
use std::fmt;

/// A range of versions, both ends included. `last` is `i16::MAX` where it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    /// The lowest version.
    pub(crate) first: i16,
    /// The highest version.
    pub(crate) last: i16,
}

/// How a range of versions looks from within another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// All versions of the other are within.
    Always,
    /// None is.
    Never,
    /// Some are; the expression over `version` tells which.
    If(String),
}

impl Versions {
    /// Every version.
    pub(crate) const ALL: Self = Self { first: 0, last: i16::MAX };

    /// The versions in both.
    pub(crate) fn intersect(self, other: Self) -> Self {
        Self { first: self.first.max(other.first), last: self.last.min(other.last) }
    }

    /// The smallest range that holds both.
    pub(crate) fn hull(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// Whether there is no version in it.
    pub(crate) fn is_empty(self) -> bool {
        self.first > self.last
    }

    /// Whether `version` is in it.
    pub(crate) fn contains(self, version: i16) -> bool {
        (self.first..=self.last).contains(&version)
    }

    /// The test of this range, where the version is known to be in `outer`.
    pub(crate) fn within(self, outer: Self) -> Condition {
        let inner = self.intersect(outer);
        if inner == outer {
            Condition::Always
        } else if inner.is_empty() {
            Condition::Never
        } else if inner.first == inner.last {
            Condition::If(format!("version == {}", inner.first))
        } else if inner.last == outer.last {
            Condition::If(format!("version >= {}", inner.first))
        } else if inner.first == outer.first {
            Condition::If(format!("version <= {}", inner.last))
        } else {
            Condition::If(format!("({}..={}).contains(&version)", inner.first, inner.last))
        }
    }
}

/// The opposite of a test that [`Versions::within`] gives.
pub(crate) fn negated(test: &str) -> String {
    for (operator, opposite) in [(" >= ", " < "), (" <= ", " > "), (" == ", " != ")] {
        if test.contains(operator) {
            return test.replace(operator, opposite);
        }
    }
    format!("!{test}")
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.last == i16::MAX {
            write!(f, "{}+", self.first)
        } else if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// The type of a value, or of an array's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// `bool`
    Bool,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `uint16`
    Uint16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `float64`
    Float64,
    /// `uuid`
    Uuid,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `records`
    Records,
    /// A structure of the same message, by name.
    Struct(String),
}

/// One field of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Its name in Kafka.
    pub(crate) name: String,
    /// The type of its value, or of its elements.
    pub(crate) element: Element,
    /// Whether it is an array.
    pub(crate) array: bool,
    /// The versions that have it.
    pub(crate) versions: Versions,
    /// The versions in which it may be null.
    pub(crate) nullable: Option<Versions>,
    /// Its tag, if it is a tagged field.
    pub(crate) tag: Option<u32>,
    /// Its default, if that is not zero, false or empty.
    pub(crate) default: Option<String>,
    /// Whether a value that the version written cannot carry is dropped without an error.
    pub(crate) ignorable: bool,
}

/// A structure of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Structure {
    /// Its name in Kafka.
    pub(crate) name: String,
    /// Its fields, in the order of the wire.
    pub(crate) fields: Vec<Field>,
}

/// A request or a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Its fields; the name ends in `Request` or `Response`.
    pub(crate) root: Structure,
    /// The structures below it.
    pub(crate) nested: Vec<Structure>,
}

/// An api: one request and its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Api {
    /// The key.
    pub(crate) key: i16,
    /// The name in Kafka, without `Request`.
    pub(crate) name: String,
    /// The versions defined.
    pub(crate) versions: Versions,
    /// The flexible ones among them (KIP-482).
    pub(crate) flexible: Option<Versions>,
    /// The request.
    pub(crate) request: Message,
    /// The response.
    pub(crate) response: Message,
}

/// A structure with all that is needed to write code for it.
pub(crate) struct Scope<'a> {
    /// The structure.
    pub(crate) structure: &'a Structure,
    /// The versions in which it occurs.
    pub(crate) versions: Versions,
    /// Which of these are flexible.
    pub(crate) flexible: Condition,
    /// The api it belongs to.
    pub(crate) api: &'a Api,
    /// The message it belongs to.
    pub(crate) message: &'a Message,
}

impl Scope<'_> {
    /// The structures of a message, the message itself first.
    pub(crate) fn of<'a>(api: &'a Api, message: &'a Message) -> Vec<Scope<'a>> {
        let mut used = BTreeMap::from([(message.root.name.as_str(), api.versions)]);
        spread(message, &message.root, api.versions, &mut used);
        let flexible = api.flexible.unwrap_or(Versions { first: 1, last: 0 });
        std::iter::once(&message.root)
            .chain(&message.nested)
            .filter_map(|structure| {
                let versions = *used.get(structure.name.as_str())?;
                Some(Scope { structure, versions, flexible: flexible.within(versions), api, message })
            })
            .collect()
    }

    /// The smallest number of bytes that `element` takes on the wire in `version`.
    pub(crate) fn min_size(&self, element: &Element, version: i16) -> usize {
        let flexible = self.api.flexible.is_some_and(|flexible| flexible.contains(version));
        match element {
            Element::Bool | Element::Int8 => 1,
            Element::Int16 | Element::Uint16 => 2,
            Element::Int32 => 4,
            Element::Int64 | Element::Float64 => 8,
            Element::Uuid => 16,
            Element::String => {
                if flexible {
                    1
                } else {
                    2
                }
            }
            Element::Bytes | Element::Records => {
                if flexible {
                    1
                } else {
                    4
                }
            }
            Element::Struct(name) => {
                let Some(structure) = self.message.structure(name) else { return 1 };
                let fields =
                    structure.fields.iter().filter(|f| f.tag.is_none() && f.versions.contains(version));
                let size = |field: &Field| match field {
                    Field { array: true, .. } => {
                        if flexible {
                            1
                        } else {
                            4
                        }
                    }
                    Field { nullable: Some(_), element: Element::Struct(_), .. } => 1,
                    field => self.min_size(&field.element, version),
                };
                fields.map(size).sum::<usize>() + usize::from(flexible)
            }
        }
    }
}

impl Message {
    /// The structure called `name`.
    pub(crate) fn structure(&self, name: &str) -> Option<&Structure> {
        self.nested.iter().find(|structure| structure.name == name)
    }
}

/// Notes for each structure below `structure` in which versions it occurs.
fn spread<'a>(
    message: &'a Message,
    structure: &'a Structure,
    versions: Versions,
    used: &mut BTreeMap<&'a str, Versions>,
) {
    for field in &structure.fields {
        let Element::Struct(name) = &field.element else { continue };
        let Some(inner) = message.structure(name) else { continue };
        let here = field.versions.intersect(versions);
        let all = used.get(name.as_str()).map_or(here, |other| other.hull(here));
        used.insert(&inner.name, all);
        spread(message, inner, all, used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(first: i16, last: i16) -> Versions {
        Versions { first, last }
    }

    #[test]
    fn a_test_of_a_range_is_true_exactly_within_it() {
        let outer = versions(2, 9);
        for first in 0..12 {
            for last in first..12 {
                let range = versions(first, last);
                let expected: Vec<_> = (2..=9).map(|version| range.contains(version)).collect();
                let tested: Vec<_> = match range.within(outer) {
                    Condition::Always => vec![true; 8],
                    Condition::Never => vec![false; 8],
                    Condition::If(test) => {
                        assert_eq!(run(&negated(&test)), run(&test).iter().map(|is| !is).collect::<Vec<_>>());
                        run(&test)
                    }
                };
                assert_eq!(tested, expected, "{range}");
            }
        }
    }

    /// The outcome of a generated test for each version from 2 to 9.
    fn run(test: &str) -> Vec<bool> {
        let numbers: Vec<i16> =
            test.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        let at = numbers[0];
        (2..=9)
            .map(|version| match test.trim_start_matches(|c: char| c.is_alphabetic()).split(' ').nth(1) {
                Some(">=") => version >= at,
                Some("<=") => version <= at,
                Some("==") => version == at,
                Some("!=") => version != at,
                Some("<") => version < at,
                Some(">") => version > at,
                _ => (at..=numbers[1]).contains(&version) != test.starts_with('!'),
            })
            .collect()
    }
}

//! Files of offsets: lines of `topic,partition,offset`, or of `group,topic,partition,offset`, as `--export` writes them.

use std::collections::BTreeMap;

use wire::types::{Offset, TopicPartition};

/// The offsets of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Offsets {
    /// For whatever group.
    for_any: BTreeMap<TopicPartition, Offset>,
    /// For a group.
    by_group: BTreeMap<String, BTreeMap<TopicPartition, Offset>>,
}

impl Offsets {
    /// Reads the lines of a file; empty ones are passed over.
    ///
    /// # Errors
    /// The first line that cannot be read, and why.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut offsets = Self::default();
        for (line, number) in text.lines().zip(1..) {
            if line.trim().is_empty() {
                continue;
            }
            let fields: Vec<&str> = line.split(',').map(|field| field.trim().trim_matches('"')).collect();
            let wrong = || {
                format!(
                    "line {number}, {line}: topic,partition,offset or group,topic,partition,offset is expected"
                )
            };
            let (group, [topic, partition, offset]) = match fields[..] {
                [topic, partition, offset] => (None, [topic, partition, offset]),
                [group, topic, partition, offset] => (Some(group), [topic, partition, offset]),
                _ => return Err(wrong()),
            };
            let partition = partition.parse().map_err(|_| wrong())?;
            let offset: i64 = offset.parse().map_err(|_| wrong())?;
            let plan = match group {
                None => &mut offsets.for_any,
                Some(group) => offsets.by_group.entry(group.to_owned()).or_default(),
            };
            plan.insert(TopicPartition::new(topic, partition), Offset(offset));
        }
        Ok(offsets)
    }

    /// What the file says for a group; empty if nothing.
    pub(super) fn of_group(&self, group: &str) -> &BTreeMap<TopicPartition, Offset> {
        self.by_group.get(group).unwrap_or(&self.for_any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(offsets: &Offsets, group: &str) -> Vec<String> {
        offsets.of_group(group).iter().map(|(at, offset)| format!("{at}={offset}")).collect()
    }

    #[test]
    fn lines_are_for_one_group_or_for_any() {
        let offsets = Offsets::parse("t,0,5\n\"u\",1,6\r\n\n").unwrap();
        assert_eq!(told(&offsets, "g"), ["t-0=5", "u-1=6"]);
        let offsets = Offsets::parse("g,t,0,5\nh,t,0,6\n").unwrap();
        assert_eq!((told(&offsets, "g"), told(&offsets, "h")), (vec!["t-0=5".into()], vec!["t-0=6".into()]));
        assert!(offsets.of_group("other").is_empty());
    }

    #[test]
    fn the_line_that_is_wrong_is_named() {
        for text in ["t,0,5\nt,0", "t,0,5\nt,x,5", "t,0,5\nt,0,x", "t,0,5\na,b,c,d,e"] {
            assert!(Offsets::parse(text).unwrap_err().starts_with("line 2, "), "{text}");
        }
    }
}

//! Who gets which partitions: the assignors `range` and `roundrobin` of Kafka's clients, so that members of different
//! make agree. Pure: the same members and partitions give the same assignment on every leader.

use std::collections::BTreeMap;

use wire::types::TopicPartition;

use crate::error::VerbError;

/// A way to share partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Assignor {
    /// Topic by topic, each member a run of neighbouring partitions.
    #[default]
    Range,
    /// All partitions in turn.
    RoundRobin,
}

/// A member as an assignor sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reader {
    /// Its id.
    pub(super) member: String,
    /// Its `group.instance.id`.
    pub(super) instance: Option<String>,
    /// The topics it wants.
    pub(super) topics: Vec<String>,
}

impl Assignor {
    /// The name in the protocol.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::RoundRobin => "roundrobin",
        }
    }

    /// The assignor of a protocol's name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        [Self::Range, Self::RoundRobin].into_iter().find(|assignor| assignor.name() == name)
    }

    /// The assignors that `partition.assignment.strategy` names by their classes in Java, or by name.
    ///
    /// # Errors
    /// If none is named, or one that is not supported.
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Self>, VerbError> {
        let mut assignors = Vec::new();
        for class in text.split(',').map(str::trim).filter(|class| !class.is_empty()) {
            assignors.push(match class.rsplit('.').next().unwrap_or(class) {
                "RangeAssignor" | "range" => Self::Range,
                "RoundRobinAssignor" | "roundrobin" => Self::RoundRobin,
                // The default of Java's clients names it beside `range`; a group needs only one in common.
                "CooperativeStickyAssignor" if text.contains("RangeAssignor") => continue,
                _ => {
                    return Err(VerbError::Usage(format!(
                        "assignor {class}: RangeAssignor and RoundRobinAssignor are supported"
                    )));
                }
            });
        }
        if assignors.is_empty() {
            return Err(VerbError::Usage("partition.assignment.strategy names no assignor".to_owned()));
        }
        Ok(assignors)
    }

    /// Shares the partitions of `counts` (topic and number of partitions) among `readers`. Every reader is in the
    /// answer, and each partition of a topic that anybody wants goes to exactly one of those who want it.
    pub(super) fn assign(
        self,
        readers: &[Reader],
        counts: &BTreeMap<String, i32>,
    ) -> BTreeMap<String, Vec<TopicPartition>> {
        let mut readers: Vec<&Reader> = readers.iter().collect();
        // Static members first, by their instance; so they keep their partitions over restarts.
        readers.sort_by(|a, b| {
            match (&a.instance, &b.instance) {
                (Some(a), Some(b)) => a.cmp(b),
                (a, b) => b.is_some().cmp(&a.is_some()),
            }
            .then_with(|| a.member.cmp(&b.member))
        });
        let mut assignment: BTreeMap<String, Vec<TopicPartition>> =
            readers.iter().map(|reader| (reader.member.clone(), Vec::new())).collect();
        match self {
            Self::Range => range(&readers, counts, &mut assignment),
            Self::RoundRobin => round_robin(&readers, counts, &mut assignment),
        }
        assignment
    }
}

fn wants(reader: &Reader, topic: &str) -> bool {
    reader.topics.iter().any(|wanted| wanted == topic)
}

fn range(
    readers: &[&Reader],
    counts: &BTreeMap<String, i32>,
    assignment: &mut BTreeMap<String, Vec<TopicPartition>>,
) {
    for (topic, count) in counts {
        let of_topic: Vec<&&Reader> = readers.iter().filter(|reader| wants(reader, topic)).collect();
        let Ok(among) = i32::try_from(of_topic.len()) else { continue };
        let (each, more) = (count.checked_div(among).unwrap_or(0), count.checked_rem(among).unwrap_or(0));
        let mut next = 0;
        for (reader, at) in of_topic.into_iter().zip(0..) {
            let end = next + each + i32::from(at < more);
            let partitions = (next..end).map(|index| TopicPartition::new(topic.as_str(), index));
            assignment.entry(reader.member.clone()).or_default().extend(partitions);
            next = end;
        }
    }
}

fn round_robin(
    readers: &[&Reader],
    counts: &BTreeMap<String, i32>,
    assignment: &mut BTreeMap<String, Vec<TopicPartition>>,
) {
    let mut turn = 0;
    for (topic, count) in counts {
        for index in 0..*count {
            let from = (0..readers.len()).map(|step| (turn + step) % readers.len().max(1));
            let found = from.filter_map(|at| Some((at, *readers.get(at)?))).find(|(_, it)| wants(it, topic));
            let Some((at, reader)) = found else { break };
            turn = at + 1;
            let partition = TopicPartition::new(topic.as_str(), index);
            assignment.entry(reader.member.clone()).or_default().push(partition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(member: &str, topics: &[&str]) -> Reader {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        Reader { member: member.to_owned(), instance: None, topics }
    }

    fn told(assignor: Assignor, readers: &[Reader], counts: &[(&str, i32)]) -> Vec<String> {
        let counts = counts.iter().map(|(topic, count)| ((*topic).to_owned(), *count)).collect();
        let assignment = assignor.assign(readers, &counts).into_iter();
        assignment
            .map(|(member, partitions)| {
                let partitions: Vec<String> = partitions.iter().map(ToString::to_string).collect();
                format!("{member}: {}", partitions.join(" "))
            })
            .collect()
    }

    #[test]
    fn range_gives_the_first_members_the_odd_partitions_of_each_topic() {
        let readers = [reader("c1", &["t", "u"]), reader("c0", &["t", "u"])];
        let expected = ["c0: t-0 t-1 u-0 u-1", "c1: t-2 u-2"];
        assert_eq!(told(Assignor::Range, &readers, &[("t", 3), ("u", 3)]), expected);
    }

    #[test]
    fn round_robin_goes_on_over_the_topics_and_passes_over_who_does_not_want_them() {
        let readers = [reader("c0", &["t", "u"]), reader("c1", &["t", "u"])];
        let expected = ["c0: t-0 t-2 u-1", "c1: t-1 u-0 u-2"];
        assert_eq!(told(Assignor::RoundRobin, &readers, &[("t", 3), ("u", 3)]), expected);
        let readers = [reader("a", &["t"]), reader("b", &["t", "u"]), reader("c", &["t", "u", "v"])];
        let expected = ["a: t-0", "b: u-0", "c: u-1 v-0 v-1 v-2"];
        assert_eq!(told(Assignor::RoundRobin, &readers, &[("t", 1), ("u", 2), ("v", 3)]), expected);
    }

    #[test]
    fn static_members_come_first_by_their_instance() {
        let mut readers = [reader("a", &["t"]), reader("z", &["t"]), reader("y", &["t"])];
        readers[1].instance = Some("i1".into());
        readers[2].instance = Some("i2".into());
        assert_eq!(told(Assignor::Range, &readers, &[("t", 2)]), ["a: ", "y: t-1", "z: t-0"]);
    }

    #[test]
    fn every_partition_that_is_wanted_has_one_reader() {
        let mut random = 7_u32;
        let mut next = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 16) % below
        };
        for _ in 0..200 {
            let topics = ["a", "b", "c"];
            let counts: BTreeMap<String, i32> =
                topics.iter().map(|topic| ((*topic).to_owned(), next(6).cast_signed())).collect();
            let readers: Vec<Reader> = (0..next(5))
                .map(|n| {
                    let wanted: Vec<&str> = topics.into_iter().filter(|_| next(2) == 0).collect();
                    reader(&format!("m{n}"), &wanted)
                })
                .collect();
            for assignor in [Assignor::Range, Assignor::RoundRobin] {
                let assignment = assignor.assign(&readers, &counts);
                for (topic, count) in &counts {
                    let wanted = readers.iter().any(|reader| wants(reader, topic));
                    for index in 0..*count {
                        let at = TopicPartition::new(topic.as_str(), index);
                        let owners: Vec<&String> =
                            assignment.iter().filter(|(_, all)| all.contains(&at)).map(|(m, _)| m).collect();
                        assert_eq!(owners.len(), usize::from(wanted), "{at} of {readers:?}");
                        for owner in owners {
                            assert!(readers.iter().any(|it| it.member == *owner && wants(it, topic)));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn assignors_are_named_by_their_java_classes() {
        let parse = |text| Assignor::parse_list(text).map_err(|_| ());
        let package = "org.apache.kafka.clients.consumer";
        let default = format!("{package}.RangeAssignor, {package}.CooperativeStickyAssignor");
        assert_eq!(parse(&default), Ok(vec![Assignor::Range]));
        assert_eq!(parse("roundrobin,range"), Ok(vec![Assignor::RoundRobin, Assignor::Range]));
        assert_eq!(parse("CooperativeStickyAssignor"), Err(()));
        assert_eq!(parse(" "), Err(()));
        assert_eq!(Assignor::of_name("roundrobin"), Some(Assignor::RoundRobin));
    }
}

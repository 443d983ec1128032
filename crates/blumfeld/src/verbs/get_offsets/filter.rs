//! Which partitions are meant: topics by a regular expression, and partitions by number or by range (the
//! syntax of kafka-get-offsets: lower bounds inclusive, upper bounds exclusive).

use regex_lite::Regex;

use crate::error::VerbError;

/// A choice of partitions: those that any rule holds.
#[derive(Debug)]
pub(super) struct Filter {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    /// Holds whole names; `None` holds all.
    topic: Option<Regex>,
    partitions: Partitions,
}

#[derive(Debug, PartialEq, Eq)]
enum Partitions {
    /// From the first on, up to but not including the second.
    Range(i32, i32),
    /// Exactly these.
    These(Vec<i32>),
}

impl Filter {
    /// Reads `--topic`, `--partitions` and `--topic-partitions`.
    ///
    /// # Errors
    /// If they contradict each other or cannot be read.
    pub(super) fn read(
        topic: Option<&str>,
        partitions: Option<&str>,
        topic_partitions: Option<&str>,
    ) -> Result<Self, VerbError> {
        if let Some(list) = topic_partitions {
            if topic.is_some() || partitions.is_some() {
                let text = "--topic-partitions cannot be used with --topic or --partitions";
                return Err(VerbError::Usage(text.to_owned()));
            }
            let rules: Result<_, _> = list.split(',').map(|rule| Rule::parse(rule.trim())).collect();
            return Ok(Self { rules: rules? });
        }
        let partitions = match partitions {
            None => Partitions::Range(0, i32::MAX),
            Some(list) => Partitions::These(numbers(list)?),
        };
        // A comma between topics means "or", as in the other tools.
        let topic = topic.map(|topic| regex(&topic.replace(',', "|"))).transpose()?;
        Ok(Self { rules: vec![Rule { topic, partitions }] })
    }

    /// Whether the partition is chosen.
    pub(super) fn holds(&self, topic: &str, partition: i32) -> bool {
        self.rules.iter().any(|rule| rule.holds(topic, partition))
    }
}

impl Rule {
    /// Reads `topic:partitions`; either may be missing.
    fn parse(text: &str) -> Result<Self, VerbError> {
        let wrong = || {
            VerbError::Usage(format!(
                "--topic-partitions {text}: TOPIC:N, TOPIC:N-M, TOPIC:N-, TOPIC:-M or TOPIC is expected"
            ))
        };
        let (topic, partitions) = text.split_once(':').unwrap_or((text, ""));
        let number = |text: &str, default: i32| match text {
            "" => Ok(default),
            text => text.parse().ok().filter(|number| *number >= 0).ok_or_else(wrong),
        };
        let partitions = match partitions.split_once('-') {
            Some((from, to)) => Partitions::Range(number(from, 0)?, number(to, i32::MAX)?),
            None if partitions.is_empty() => Partitions::Range(0, i32::MAX),
            None => Partitions::These(vec![number(partitions, 0)?]),
        };
        let topic = if topic.is_empty() { None } else { Some(regex(topic)?) };
        Ok(Self { topic, partitions })
    }

    fn holds(&self, topic: &str, partition: i32) -> bool {
        let named = self.topic.as_ref().is_none_or(|regex| regex.is_match(topic));
        named
            && match &self.partitions {
                Partitions::Range(from, to) => (*from..*to).contains(&partition),
                Partitions::These(these) => these.contains(&partition),
            }
    }
}

fn regex(pattern: &str) -> Result<Regex, VerbError> {
    let wrong = |error| VerbError::Usage(format!("{pattern} is no regular expression: {error}"));
    Regex::new(&format!("^(?:{pattern})$")).map_err(wrong)
}

fn numbers(list: &str) -> Result<Vec<i32>, VerbError> {
    let number = |text: &str| text.trim().parse::<i32>();
    let numbers: Result<Vec<i32>, _> = list.split(',').map(number).collect();
    numbers.map_err(|_| {
        VerbError::Usage(format!(
            "--partitions expects a comma separated list of numeric partition ids, but received: {list}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(filter: &Filter) -> Vec<String> {
        let all = ["a", "ab", "b"].into_iter().flat_map(|topic| (0..5).map(move |n| (topic, n)));
        all.filter(|(topic, n)| filter.holds(topic, *n)).map(|(topic, n)| format!("{topic}{n}")).collect()
    }

    #[test]
    fn topics_and_partitions_are_chosen_apart() {
        let read = |topic, partitions| chosen(&Filter::read(topic, partitions, None).unwrap());
        assert_eq!(read(None, None).len(), 15);
        assert_eq!(read(Some("a"), Some("1,4,9")), ["a1", "a4"]);
        assert_eq!(read(Some("a.*"), Some("0")), ["a0", "ab0"]);
        assert_eq!(read(Some("a,b"), Some("0")), ["a0", "b0"]);
    }

    #[test]
    fn or_together_with_bounds_of_which_the_upper_is_exclusive() {
        let read = |list| chosen(&Filter::read(None, None, Some(list)).unwrap());
        assert_eq!(read("a:1,ab:0-2,b:4-,a:-1"), ["a0", "a1", "ab0", "ab1", "b4"]);
        assert_eq!(read(":3"), ["a3", "ab3", "b3"]);
        assert_eq!(read("b"), ["b0", "b1", "b2", "b3", "b4"]);
        assert_eq!(read("b:").len(), 5);
        assert_eq!(read("a.*:4").len(), 2);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for (topic, partitions, list) in [
            (Some("("), None, None),
            (None, Some("x"), None),
            (None, Some("1,"), None),
            (None, None, Some("a:x")),
            (None, None, Some("a:1-2-3")),
            (Some("a"), None, Some("a")),
        ] {
            assert!(matches!(Filter::read(topic, partitions, list), Err(VerbError::Usage(_))), "{list:?}");
        }
    }
}

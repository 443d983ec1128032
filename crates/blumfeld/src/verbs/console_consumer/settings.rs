//! The settings of the consumer: what is read from where on, and its properties.

use std::time::Duration;

use regex_lite::Regex;
use wire::types::{Millis, Offset};

use super::ConsoleConsumerOptions;
use crate::cluster::fetcher::FetchSettings;
use crate::cluster::offsets::Place;
use crate::cluster::settings::{ClientProperties, ClientSettings};
use crate::error::VerbError;
use crate::group::{ConsumerSettings, Subscription};

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// At this offset.
    At(Offset),
    /// At the beginning, the end, or a time.
    From(Place),
}

/// All settings of the verb but those of the output.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The bootstrap servers.
    pub(super) servers: Vec<String>,
    /// How the cluster is talked to.
    pub(super) client: ClientSettings,
    /// How records are fetched.
    pub(super) fetch: FetchSettings,
    /// The group to read in; without one, partitions are read directly.
    pub(super) group: Option<ConsumerSettings>,
    /// The topics.
    pub(super) subscription: Subscription,
    /// The partition; all if there is none.
    pub(super) partition: Option<i32>,
    /// Where reading begins.
    pub(super) start: Start,
    /// The number of records after which reading ends.
    pub(super) max_messages: Option<u64>,
    /// The time without a record after which reading ends.
    pub(super) idle_timeout: Option<Duration>,
    /// Whether a topic that is not there may be created (`allow.auto.create.topics`).
    pub(super) create_topic: bool,
    /// Whether a record that cannot be printed is passed over.
    pub(super) skip_errors: bool,
}

impl Settings {
    /// Reads options and properties.
    ///
    /// # Errors
    /// If options contradict each other, or a value cannot be used.
    pub(super) fn read(options: &ConsoleConsumerOptions) -> Result<Self, VerbError> {
        let subscription = subscription(options)?;
        let start = start(options)?;
        let mut properties = options.connect.properties(&options.consumer_property)?;
        if let Some(level) = &options.isolation_level {
            properties.set_default("isolation.level", level);
        }
        let group = group(options, &mut properties)?;
        let client = ClientSettings::take(&mut properties, "console-consumer")?;
        let reset = if options.from_beginning { "earliest" } else { "latest" };
        let fetch = FetchSettings::take(&mut properties, reset)?;
        let group = group
            .map(|group| ConsumerSettings::take(&mut properties, group, fetch.clone(), true))
            .transpose()?;
        let settings = Self {
            servers: options.connect.servers()?,
            client,
            fetch,
            group,
            subscription,
            partition: options.partition,
            start,
            max_messages: options.max_messages.and_then(|most| u64::try_from(most).ok()),
            idle_timeout: options.timeout_ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis),
            create_topic: properties.take_flag("allow.auto.create.topics", true),
            skip_errors: options.skip_message_on_error,
        };
        properties.warn_rest();
        Ok(settings)
    }
}

fn subscription(options: &ConsoleConsumerOptions) -> Result<Subscription, VerbError> {
    let usage = |text: String| Err(VerbError::Usage(text));
    match (&options.topic, &options.include) {
        (Some(topic), None) => Ok(Subscription::Names([topic.clone()].into())),
        (None, Some(_)) if options.partition.is_some() => usage("--partition needs --topic".to_owned()),
        (None, Some(pattern)) => match Regex::new(&format!("^(?:{pattern})$")) {
            Ok(regex) => Ok(Subscription::Pattern(regex, false)),
            Err(error) => usage(format!("--include {pattern} is no regular expression: {error}")),
        },
        _ => usage("Exactly one of --include/--topic is required.".to_owned()),
    }
}

/// The id of the group, from the option or the properties.
fn group(
    options: &ConsoleConsumerOptions,
    properties: &mut ClientProperties,
) -> Result<Option<String>, VerbError> {
    let of_properties = properties.take("group.id");
    let usage = |text: &str| Err(VerbError::Usage(text.to_owned()));
    let group = match (&options.group, of_properties) {
        (Some(option), Some(property)) if *option != property => {
            return usage("--group and the property group.id name different groups");
        }
        (Some(option), _) => Some(option.clone()),
        (None, property) => property,
    };
    if group.is_some() && options.partition.is_some() {
        return usage("Options group and partition cannot be specified together.");
    }
    if group.is_some() && options.from_timestamp.is_some() {
        return usage(
            "--from-timestamp is for reading without a group; a group is moved by: blumfeld consumer-groups \
             --reset-offsets --to-datetime",
        );
    }
    Ok(group)
}

fn start(options: &ConsoleConsumerOptions) -> Result<Start, VerbError> {
    let usage = |text: String| Err(VerbError::Usage(text));
    if let Some(text) = &options.from_timestamp {
        if options.offset.is_some() || options.from_beginning {
            return usage("--from-timestamp, --offset and --from-beginning exclude each other".to_owned());
        }
        return Ok(Start::From(Place::Time(time(text)?)));
    }
    match (&options.offset, options.from_beginning) {
        (Some(_), true) => usage("--offset and --from-beginning exclude each other".to_owned()),
        (Some(_), false) if options.partition.is_none() => {
            usage("--offset needs --partition, since every partition has offsets of its own".to_owned())
        }
        (None, true) => Ok(Start::From(Place::Earliest)),
        (None, false) => Ok(Start::From(Place::Latest)),
        (Some(text), false) => match (Place::of_name(text), text.parse::<i64>()) {
            (Some(place), _) => Ok(Start::From(place)),
            (None, Ok(offset)) if offset >= 0 => Ok(Start::At(Offset(offset))),
            _ => usage(format!("--offset {text}: earliest, latest or an offset from 0 on is expected")),
        },
    }
}

/// Milliseconds since 1970, or a time in words.
fn time(text: &str) -> Result<Millis, VerbError> {
    let millis = text.parse::<i64>().ok().filter(|millis| *millis >= 0);
    let millis = millis.or_else(|| text.parse::<jiff::Timestamp>().ok().map(|time| time.as_millisecond()));
    millis.map(Millis).ok_or_else(|| {
        VerbError::Usage(format!(
            "--from-timestamp {text}: milliseconds since 1970, or a time such as 2026-01-31T12:00:00Z, are expected"
        ))
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: ConsoleConsumerOptions,
    }

    fn settings(line: &str) -> Result<Settings, VerbError> {
        let words = std::iter::once("consumer").chain(line.split_whitespace());
        Settings::read(&Line::try_parse_from(words).unwrap().options)
    }

    #[test]
    fn reading_begins_at_the_end_unless_said_otherwise() {
        let start = |line: &str| settings(line).unwrap().start;
        assert_eq!(start("--topic t"), Start::From(Place::Latest));
        assert_eq!(start("--topic t --from-beginning"), Start::From(Place::Earliest));
        assert_eq!(start("--topic t --partition 1 --offset earliest"), Start::From(Place::Earliest));
        assert_eq!(start("--topic t --partition 1 --offset latest"), Start::From(Place::Latest));
        assert_eq!(start("--topic t --partition 1 --offset 17"), Start::At(Offset(17)));
    }

    #[test]
    fn reading_begins_at_a_time_in_numbers_or_words() {
        let start = |line: &str| settings(line).unwrap().start;
        assert_eq!(start("--topic t --from-timestamp 17"), Start::From(Place::Time(Millis(17))));
        let words = start("--topic t --from-timestamp 1970-01-01T00:00:01Z");
        assert_eq!(words, Start::From(Place::Time(Millis(1000))));
    }

    #[test]
    fn a_group_is_named_by_the_option_or_by_its_property() {
        for line in ["--topic t --group g", "--include a.* --consumer-property group.id=g"] {
            assert_eq!(settings(line).unwrap().group.unwrap().member.group, "g", "{line}");
        }
        assert!(settings("--topic t").unwrap().group.is_none());
    }

    #[test]
    fn limits_below_zero_are_no_limits() {
        let settings = settings("--topic t --max-messages -1 --timeout-ms -1").unwrap();
        assert_eq!((settings.max_messages, settings.idle_timeout), (None, None));
    }

    #[test]
    fn an_offset_that_has_gone_leads_to_where_reading_was_to_begin() {
        assert_eq!(settings("--topic t").unwrap().fetch.reset, Some(Place::Latest));
        assert_eq!(settings("--topic t --from-beginning").unwrap().fetch.reset, Some(Place::Earliest));
        let none = settings("--topic t --consumer-property auto.offset.reset=none").unwrap();
        assert_eq!(none.fetch.reset, None);
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for line in [
            "",
            "--topic t --group g --partition 0",
            "--topic t --group g --consumer-property group.id=h",
            "--topic t --group g --from-timestamp 0",
            "--topic t --include .*",
            "--include (",
            "--include .* --partition 0",
            "--topic t --from-timestamp soon",
            "--topic t --from-timestamp 5 --from-beginning",
            "--topic t --offset 3",
            "--topic t --partition 0 --offset earliest --from-beginning",
            "--topic t --partition 0 --offset soon",
            "--topic t --isolation-level strict",
            "--topic t --consumer-property auto.offset.reset=never",
            "--topic t --consumer-property fetch.max.bytes=many",
        ] {
            assert!(matches!(settings(line), Err(VerbError::Usage(_))), "{line}");
        }
    }
}

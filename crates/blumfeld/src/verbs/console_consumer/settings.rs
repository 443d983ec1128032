//! The settings of the consumer: what is read from where on, and its properties.

use std::time::Duration;

use wire::types::Offset;

use super::{ConsoleConsumerOptions, place};
use crate::cluster::fetcher::FetchSettings;
use crate::cluster::offsets::{Isolation, Place};
use crate::cluster::settings::{ClientProperties, ClientSettings, invalid};
use crate::error::VerbError;

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// At this offset.
    At(Offset),
    /// At the beginning or the end.
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
    /// The topic.
    pub(super) topic: String,
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
        let topic = topic(options)?;
        let start = start(options)?;
        let mut properties = options.connect.properties(&options.consumer_property)?;
        if properties.take("group.id").is_some() {
            eprintln!("WARNING: group.id has no effect: partitions are read without a group");
        }
        let client = ClientSettings::take(&mut properties, "console-consumer")?;
        let allow = properties.take("allow.auto.create.topics").unwrap_or_else(|| "true".to_owned());
        let settings = Self {
            servers: options.connect.servers()?,
            fetch: fetch_settings(options, &mut properties)?,
            client,
            topic,
            partition: options.partition,
            start,
            max_messages: options.max_messages.and_then(|most| u64::try_from(most).ok()),
            idle_timeout: options.timeout_ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis),
            create_topic: allow.trim().eq_ignore_ascii_case("true"),
            skip_errors: options.skip_message_on_error,
        };
        properties.warn_rest();
        Ok(settings)
    }
}

fn topic(options: &ConsoleConsumerOptions) -> Result<String, VerbError> {
    let usage = |text: &str| Err(VerbError::Usage(text.to_owned()));
    if options.group.is_some() {
        return usage(
            "--group: consumer groups are not supported yet; without it partitions are read directly",
        );
    }
    if options.include.is_some() {
        return usage("--include: only one topic can be read for now, named by --topic");
    }
    match &options.topic {
        Some(topic) => Ok(topic.clone()),
        None => usage("--topic is needed"),
    }
}

fn start(options: &ConsoleConsumerOptions) -> Result<Start, VerbError> {
    let usage = |text: String| Err(VerbError::Usage(text));
    match (&options.offset, options.from_beginning) {
        (Some(_), true) => usage("--offset and --from-beginning exclude each other".to_owned()),
        (Some(_), false) if options.partition.is_none() => {
            usage("--offset needs --partition, since every partition has offsets of its own".to_owned())
        }
        (None, true) => Ok(Start::From(Place::Earliest)),
        (None, false) => Ok(Start::From(Place::Latest)),
        (Some(text), false) => match (place(text), text.parse::<i64>()) {
            (Some(place), _) => Ok(Start::From(place)),
            (None, Ok(offset)) if offset >= 0 => Ok(Start::At(Offset(offset))),
            _ => usage(format!("--offset {text}: earliest, latest or an offset from 0 on is expected")),
        },
    }
}

fn fetch_settings(
    options: &ConsoleConsumerOptions,
    properties: &mut ClientProperties,
) -> Result<FetchSettings, VerbError> {
    if let Some(level) = &options.isolation_level {
        properties.set_default("isolation.level", level);
    }
    let isolation = properties.take("isolation.level").unwrap_or_else(|| "read_uncommitted".to_owned());
    let isolation = match isolation.trim() {
        "read_uncommitted" => Isolation::ReadUncommitted,
        "read_committed" => Isolation::ReadCommitted,
        _ => return Err(invalid("isolation.level", &isolation)),
    };
    let default = if options.from_beginning { "earliest" } else { "latest" };
    let reset = properties.take("auto.offset.reset").unwrap_or_else(|| default.to_owned());
    let reset = match reset.trim() {
        "none" => None,
        name => Some(place(name).ok_or_else(|| invalid("auto.offset.reset", &reset))?),
    };
    let check = properties.take("check.crcs").unwrap_or_else(|| "true".to_owned());
    Ok(FetchSettings {
        isolation,
        reset,
        min_bytes: properties.take_as("fetch.min.bytes", 1)?,
        max_bytes: properties.take_as("fetch.max.bytes", 50 << 20)?,
        max_wait: properties.take_millis("fetch.max.wait.ms", Duration::from_millis(500))?,
        max_partition_bytes: properties.take_as("max.partition.fetch.bytes", 1 << 20)?,
        check_crcs: check.trim().eq_ignore_ascii_case("true"),
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
            "--topic t --group g",
            "--include .*",
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

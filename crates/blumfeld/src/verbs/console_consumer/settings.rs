//! What the options of the verb mean: where to begin, how to fetch, how to print.

use std::collections::BTreeMap;
use std::time::Duration;

use wire::types::Offset;

use super::ConsoleConsumerOptions;
use crate::cluster::fetcher::FetchSettings;
use crate::cluster::offsets::{Isolation, Place};
use crate::cluster::settings::{ClientSettings, invalid, key_and_value, read_properties};
use crate::error::VerbError;

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// At a place that the leader knows.
    Place(Place),
    /// At an offset.
    At(Offset),
    /// This many offsets before the end.
    FromEnd(i64),
}

/// The meaning of the options.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) client: ClientSettings,
    pub(super) fetch: FetchSettings,
    pub(super) start: Start,
    pub(super) patience: Option<Duration>,
    /// The properties of the formatter.
    pub(super) print: BTreeMap<String, String>,
}

impl Settings {
    /// Reads the options.
    ///
    /// # Errors
    /// If a value cannot be read, or a group is asked for.
    pub(super) fn read(options: &ConsoleConsumerOptions) -> Result<Self, VerbError> {
        if options.group.is_some() {
            return Err(VerbError::Usage(
                "--group: consumer groups are not served yet; leave it out to read all partitions".to_owned(),
            ));
        }
        let mut properties = options.connect.properties(&options.consumer_property)?;
        let client = ClientSettings::take(&mut properties, "console-consumer")?;
        let reset = match properties.take("auto.offset.reset").as_deref() {
            None if options.from_beginning => Some(Place::Earliest),
            None | Some("latest") => Some(Place::Latest),
            Some("earliest") => Some(Place::Earliest),
            Some("none") => None,
            Some(other) => return Err(invalid("auto.offset.reset", other)),
        };
        let level = properties.take("isolation.level");
        let isolation = match options.isolation_level.as_deref().or(level.as_deref()) {
            None | Some("read_uncommitted") => Isolation::ReadUncommitted,
            Some("read_committed") => Isolation::ReadCommitted,
            Some(other) => return Err(invalid("isolation.level", other)),
        };
        let fetch = FetchSettings {
            isolation,
            min_bytes: properties.take_as("fetch.min.bytes", 1)?,
            max_bytes: properties.take_as("fetch.max.bytes", 52_428_800)?,
            max_wait: properties.take_millis("fetch.max.wait.ms", Duration::from_millis(500))?,
            max_partition_bytes: properties.take_as("max.partition.fetch.bytes", 1_048_576)?,
            reset,
            check_crcs: properties.take_as("check.crcs", true)?,
        };
        properties.warn_rest();
        let place = match reset {
            Some(Place::Earliest) => Place::Earliest,
            _ => Place::Latest,
        };
        let start = start(options.offset.as_deref(), place)?;
        let mut print = match &options.formatter_config {
            Some(path) => read_properties(path)?,
            None => BTreeMap::new(),
        };
        for pair in &options.property {
            let (key, value) = key_and_value(pair)?;
            print.insert(key, value);
        }
        let patience = options.timeout_ms.map(Duration::from_millis);
        Ok(Self { client, fetch, start, patience, print })
    }
}

/// What `--offset` says; without it, `otherwise`.
fn start(offset: Option<&str>, otherwise: Place) -> Result<Start, VerbError> {
    let Some(text) = offset else {
        return Ok(Start::Place(otherwise));
    };
    match (text.to_lowercase().as_str(), text.parse::<i64>()) {
        ("earliest", _) => Ok(Start::Place(Place::Earliest)),
        ("latest", _) => Ok(Start::Place(Place::Latest)),
        (_, Ok(offset)) if offset >= 0 => Ok(Start::At(Offset(offset))),
        (_, Ok(back)) => Ok(Start::FromEnd(back.saturating_neg())),
        _ => Err(VerbError::Usage(format!(
            "--offset {text}: expected earliest, latest, a number, or a negative number to count from the end"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_a_place_a_number_or_a_distance_from_the_end() {
        assert_eq!(start(None, Place::Latest).unwrap(), Start::Place(Place::Latest));
        assert_eq!(start(Some("earliest"), Place::Latest).unwrap(), Start::Place(Place::Earliest));
        assert_eq!(start(Some("Latest"), Place::Earliest).unwrap(), Start::Place(Place::Latest));
        assert_eq!(start(Some("7"), Place::Latest).unwrap(), Start::At(Offset(7)));
        assert_eq!(start(Some("-2"), Place::Latest).unwrap(), Start::FromEnd(2));
        assert!(start(Some("x"), Place::Latest).is_err());
    }
}

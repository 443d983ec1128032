//! Where to: the ways of `--reset-offsets`, and the offset that each finds in a partition. Pure but for the file that
//! `--from-file` names and the time that `--by-duration` counts from.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp};
use wire::types::{Millis, Offset, TopicPartition};

use super::super::ConsumerGroupsOptions;
use super::file::Offsets;
use crate::error::VerbError;

/// Where a group is to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Target {
    /// The first offset.
    Earliest,
    /// The end.
    Latest,
    /// Where it is, or the end.
    Current,
    /// An offset.
    Offset(i64),
    /// So many offsets on.
    Shift(i64),
    /// The first record that is not older.
    Time(Millis),
    /// What a file says.
    File(Offsets),
}

/// From the first offset to the end of a partition, exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) start: Offset,
    pub(super) end: Offset,
}

/// An offset that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reset {
    /// As it was asked for.
    To(Offset),
    /// Another one, and why.
    Instead(Offset, String),
}

impl Target {
    /// Reads the options.
    ///
    /// # Errors
    /// If a time or a file cannot be read.
    pub(in super::super) fn read(options: &ConsumerGroupsOptions) -> Result<Self, VerbError> {
        if let Some(path) = &options.from_file {
            let text = std::fs::read_to_string(path).map_err(|error| VerbError::file(path, error))?;
            let offsets = Offsets::parse(&text);
            let wrong = |text| VerbError::Usage(format!("{}: {text}", path.display()));
            return Ok(Self::File(offsets.map_err(wrong)?));
        }
        if let Some(text) = &options.to_datetime {
            return Ok(Self::Time(parse_time(text)?));
        }
        if let Some(text) = &options.by_duration {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
            return Ok(Self::Time(Millis(now.saturating_sub(parse_duration(text)?))));
        }
        Ok(match (options.to_offset, options.shift_by) {
            (Some(offset), _) => Self::Offset(offset),
            (None, Some(shift)) => Self::Shift(shift),
            (None, None) if options.to_earliest => Self::Earliest,
            (None, None) if options.to_latest => Self::Latest,
            (None, None) => Self::Current,
        })
    }

    /// The time whose place must be looked for.
    pub(super) fn time(&self) -> Option<Millis> {
        if let Self::Time(time) = self { Some(*time) } else { None }
    }

    /// The partitions that the target itself names for a group; `None` if it is for any.
    pub(super) fn named(&self, group: &str) -> Option<Result<Vec<TopicPartition>, VerbError>> {
        let Self::File(offsets) = self else { return None };
        let offsets = offsets.of_group(group);
        Some(if offsets.is_empty() {
            Err(VerbError::Failed(format!("No reset plan for group {group} found")))
        } else {
            Ok(offsets.keys().cloned().collect())
        })
    }

    /// The offset for a partition with these bounds; `committed` is where the group is, `at_time` where the time of
    /// the target lies.
    ///
    /// # Errors
    /// If the target needs to know where the group is, and it has been nowhere.
    pub(super) fn find(
        &self,
        group: &str,
        at: &TopicPartition,
        bounds: Bounds,
        committed: Option<Offset>,
        at_time: Option<Offset>,
    ) -> Result<Reset, VerbError> {
        Ok(match self {
            Self::Earliest => Reset::To(bounds.start),
            Self::Latest => Reset::To(bounds.end),
            Self::Current => Reset::To(committed.unwrap_or(bounds.end)),
            Self::Offset(offset) => within(*offset, bounds, at),
            Self::Shift(shift) => {
                let current = committed.ok_or_else(|| {
                    VerbError::Failed(format!(
                        "Cannot shift offset for partition {at} since there is no current committed offset of \
                         group {group}"
                    ))
                })?;
                within(current.0.saturating_add(*shift), bounds, at)
            }
            Self::Time(_) => match at_time {
                Some(offset) => Reset::To(offset),
                None => {
                    let TopicPartition { topic, partition } = at;
                    Reset::Instead(
                        bounds.end,
                        format!(
                            "Partition {partition} from topic {topic} has no record from that time on. Falling back \
                             to latest known offset."
                        ),
                    )
                }
            },
            Self::File(offsets) => match offsets.of_group(group).get(at) {
                Some(offset) => within(offset.0, bounds, at),
                None => Reset::To(committed.unwrap_or(bounds.end)),
            },
        })
    }
}

/// The offset, or the nearest one within the bounds.
fn within(offset: i64, bounds: Bounds, at: &TopicPartition) -> Reset {
    let instead = |nearest: Offset, what: &str| {
        let text = format!(
            "New offset ({offset}) is {what} offset for topic partition {at}. Value will be set to {nearest}"
        );
        Reset::Instead(nearest, text)
    };
    match offset {
        _ if offset < bounds.start.0 => instead(bounds.start, "lower than earliest"),
        _ if offset > bounds.end.0 => instead(bounds.end, "higher than latest"),
        _ => Reset::To(Offset(offset)),
    }
}

fn parse_time(text: &str) -> Result<Millis, VerbError> {
    let zoned = text.parse::<Timestamp>().ok();
    let utc = || TimeZone::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok();
    let time = zoned.or_else(utc).ok_or_else(|| {
        VerbError::Usage(format!(
            "--to-datetime {text}: YYYY-MM-DDTHH:mm:SS.sss is expected, which is UTC unless Z or an offset follows"
        ))
    })?;
    Ok(Millis(time.as_millisecond()))
}

/// Milliseconds.
fn parse_duration(text: &str) -> Result<i64, VerbError> {
    let duration = text.parse::<Span>().ok().filter(|_| text.starts_with(['P', 'p', '-']));
    let duration = duration.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    let millis = duration.and_then(|duration| i64::try_from(duration.as_millis()).ok());
    millis.ok_or_else(|| {
        VerbError::Usage(format!("--by-duration {text}: PnDTnHnMnS is expected, such as P1DT2H or PT30M"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { start: Offset(10), end: Offset(20) };

    fn find(target: &Target, committed: Option<i64>, at_time: Option<i64>) -> Result<(i64, bool), String> {
        let at = TopicPartition::new("t", 0);
        match target.find("g", &at, BOUNDS, committed.map(Offset), at_time.map(Offset)) {
            Ok(Reset::To(offset)) => Ok((offset.0, false)),
            Ok(Reset::Instead(offset, _)) => Ok((offset.0, true)),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn each_way_finds_its_offset() {
        assert_eq!(find(&Target::Earliest, Some(15), None), Ok((10, false)));
        assert_eq!(find(&Target::Latest, Some(15), None), Ok((20, false)));
        assert_eq!(find(&Target::Current, Some(15), None), Ok((15, false)));
        assert_eq!(find(&Target::Current, None, None), Ok((20, false)));
        assert_eq!(find(&Target::Offset(12), None, None), Ok((12, false)));
        assert_eq!(find(&Target::Shift(-2), Some(15), None), Ok((13, false)));
        assert_eq!(find(&Target::Time(Millis(1)), Some(15), Some(11)), Ok((11, false)));
        let file = Target::File(Offsets::parse("t,0,17").unwrap());
        assert_eq!(find(&file, None, None), Ok((17, false)));
    }

    #[test]
    fn what_lies_outside_the_log_becomes_its_nearest_end() {
        assert_eq!(find(&Target::Offset(9), None, None), Ok((10, true)));
        assert_eq!(find(&Target::Offset(10), None, None), Ok((10, false)));
        assert_eq!(find(&Target::Offset(20), None, None), Ok((20, false)));
        assert_eq!(find(&Target::Offset(21), None, None), Ok((20, true)));
        assert_eq!(find(&Target::Shift(i64::MAX), Some(15), None), Ok((20, true)));
        assert_eq!(find(&Target::Shift(i64::MIN), Some(15), None), Ok((10, true)));
        assert_eq!(find(&Target::Time(Millis(1)), Some(15), None), Ok((20, true)));
    }

    #[test]
    fn a_group_that_has_been_nowhere_cannot_be_shifted() {
        assert!(find(&Target::Shift(1), None, None).unwrap_err().contains("t-0"));
    }

    #[test]
    fn a_file_names_its_partitions_itself() {
        let file = Target::File(Offsets::parse("g,t,0,17").unwrap());
        assert_eq!(file.named("g").unwrap().unwrap(), [TopicPartition::new("t", 0)]);
        assert!(file.named("h").unwrap().is_err());
        assert!(Target::Latest.named("g").is_none());
    }

    #[test]
    fn times_are_utc_unless_they_say_otherwise() {
        for text in ["1970-01-01T00:00:01.500", "1970-01-01T00:00:01.500Z", "1970-01-01T01:00:01.500+01:00"] {
            assert_eq!(parse_time(text).unwrap(), Millis(1500), "{text}");
        }
        assert_eq!(parse_time("1970-01-01T00:01").unwrap(), Millis(60_000));
        assert!(parse_time("yesterday").is_err());
    }

    #[test]
    fn durations_are_those_of_iso_8601() {
        assert_eq!(parse_duration("P1DT1H").unwrap(), 90_000_000);
        assert_eq!(parse_duration("PT0.5S").unwrap(), 500);
        for wrong in ["1h", "P1Y", "P", ""] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}

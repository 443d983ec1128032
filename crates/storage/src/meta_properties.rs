//! The file `meta.properties` of a log directory: which broker of which cluster it belongs to.
//!
//! A Java properties file: comments, any order of keys, backslash escapes. Keys that are not known are kept
//! when the file is written again.

use std::fmt::Write;
use std::io;
use std::path::Path;

use wire::types::{BrokerId, Millis};

use crate::disk::Disk;
use crate::disk::atomic::{Durability, read_file, temporary_path, write_atomically};

const MAX_FILE_LEN: u64 = 1 << 20;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MetaPropertiesError {
    /// The disk failed; the directory is offline.
    #[error("cannot read meta.properties: {0}")]
    Io(#[from] io::Error),
    /// The version is not 0.
    #[error("meta.properties has version {found:?}, only 0 is known without KRaft")]
    Version {
        /// The version in the file.
        found: String,
    },
    /// The broker id is no number of a broker.
    #[error("meta.properties has broker.id {found:?}, which is no broker id")]
    BrokerId {
        /// The value in the file.
        found: String,
    },
    /// The file is not text with whole escapes.
    #[error("line {line} of meta.properties is malformed")]
    Malformed {
        /// The number of the line, from 1.
        line: usize,
    },
}

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaProperties {
    /// The broker's id, if it is told.
    pub broker_id: Option<BrokerId>,
    /// The cluster's id, if it is told.
    pub cluster_id: Option<String>,
    /// Other keys with their values, in the order of the file.
    pub other: Vec<(String, String)>,
}

impl MetaProperties {
    /// Reads the content of the file.
    pub fn parse(bytes: &[u8]) -> Result<Self, MetaPropertiesError> {
        let mut properties = Self::default();
        for (key, value) in parse_properties(bytes)? {
            match key.as_str() {
                "version" if value != "0" => return Err(MetaPropertiesError::Version { found: value }),
                "version" => {}
                "broker.id" => match value.parse() {
                    Ok(id) if id >= 0 => properties.broker_id = Some(BrokerId(id)),
                    _ => return Err(MetaPropertiesError::BrokerId { found: value }),
                },
                "cluster.id" => properties.cluster_id = Some(value),
                _ => {
                    properties.other.retain(|(other, _)| *other != key);
                    properties.other.push((key, value));
                }
            }
        }
        Ok(properties)
    }

    /// The content of the file, with the time of writing in its comment.
    pub fn format(&self, now: Millis) -> String {
        let mut text = format!("#\n#{}\n", java_date(now));
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(text, "{}={}", escape(key, true), escape(value, false));
        };
        if let Some(id) = self.broker_id {
            line("broker.id", &id.to_string());
        }
        line("version", "0");
        if let Some(id) = &self.cluster_id {
            line("cluster.id", id);
        }
        for (key, value) in &self.other {
            line(key, value);
        }
        text
    }

    /// Reads the file; `None` if there is none. What a crash left half-written beside it is removed.
    pub fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Self>, MetaPropertiesError> {
        match disk.remove_file(&temporary_path(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        match read_file(disk, path, MAX_FILE_LEN)? {
            Some(bytes) => Self::parse(&bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Replaces the file; it is durable when this returns.
    pub fn write(&self, disk: &dyn Disk, path: &Path, now: Millis) -> io::Result<()> {
        write_atomically(disk, path, self.format(now).as_bytes(), Durability::Synced)
    }
}

/// The keys and values of a Java properties file, in order.
fn parse_properties(bytes: &[u8]) -> Result<Vec<(String, String)>, MetaPropertiesError> {
    // The format's own encoding is ISO 8859-1; a file that is UTF-8 is read as that.
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    };
    let mut properties = Vec::new();
    let mut lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).enumerate();
    while let Some((at, line)) = lines.next() {
        let line = line.trim_start_matches(is_blank);
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = line.to_owned();
        while ends_in_continuation(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start_matches(is_blank));
        }
        let malformed = MetaPropertiesError::Malformed { line: at.saturating_add(1) };
        properties.push(split_property(&logical).ok_or(malformed)?);
    }
    Ok(properties)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c')
}

fn ends_in_continuation(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Splits at the first `=`, `:` or blank that is not escaped, and resolves the escapes.
fn split_property(line: &str) -> Option<(String, String)> {
    let mut escaped = false;
    let end = line.find(|c: char| {
        let ends = !escaped && (matches!(c, '=' | ':') || is_blank(c));
        escaped = !escaped && c == '\\';
        ends
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_blank);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches(is_blank);
    Some((unescape(key)?, unescape(value)?))
}

fn unescape(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\x0c'),
            Some('u') => {
                let (digits, _) = chars.as_str().split_at_checked(4)?;
                let code = u32::from_str_radix(digits, 16).ok()?;
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                chars.nth(3);
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    Some(out)
}

fn escape(text: &str, is_key: bool) -> String {
    let mut out = String::new();
    for (at, c) in text.chars().enumerate() {
        match c {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\x0c' => out.push_str("\\f"),
            '\\' | '=' | ':' | '#' | '!' => out.extend(['\\', c]),
            ' ' if is_key || at == 0 => out.push_str("\\ "),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04X}");
                }
            }
        }
    }
    out
}

/// A time as Java prints a date, in UTC: `Mon Nov 30 02:50:08 UTC 2026`.
fn java_date(time: Millis) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = time.0.div_euclid(1000);
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_date(days);
    let weekday = usize::try_from(days.rem_euclid(7)).ok().and_then(|at| DAYS.get(at)).unwrap_or(&"Thu");
    let month = MONTHS.get(month).unwrap_or(&"Jan");
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02} UTC {year}")
}

/// Year, month (from 0) and day (from 1) of a number of days since 1970-01-01, in the Gregorian calendar.
fn civil_date(days: i64) -> (i64, usize, i64) {
    // Count from 1 March of the year 0, so that leap days come last; 146,097 days are 400 years.
    let days = days.saturating_add(719_468);
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on: 0 is March, 11 is February.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let year = era.saturating_mul(400).saturating_add(year_of_era).saturating_add(i64::from(month >= 10));
    (year, usize::try_from((month + 2) % 12).unwrap_or(0), day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::OpenOptions;
    use crate::disk::crash::CrashDisk;

    const RECORDED: &str = "#\n#Mon Nov 30 02:50:08 UTC 2026\nbroker.id=0\nversion=0\n\
                            cluster.id=KpNjFh_oQ6a2cS1xSRpCZQ\n";

    fn recorded() -> MetaProperties {
        MetaProperties {
            broker_id: Some(BrokerId(0)),
            cluster_id: Some("KpNjFh_oQ6a2cS1xSRpCZQ".into()),
            other: Vec::new(),
        }
    }

    #[test]
    fn the_file_of_a_running_broker_is_read_and_written_byte_for_byte() {
        assert_eq!(MetaProperties::parse(RECORDED.as_bytes()).unwrap(), recorded());
        assert_eq!(recorded().format(Millis(1_796_007_008_000)), RECORDED);
    }

    #[test]
    fn dates_are_right_at_their_edges() {
        for (ms, text) in [
            (0, "Thu Jan 01 00:00:00 UTC 1970"),
            (-1, "Wed Dec 31 23:59:59 UTC 1969"),
            (951_782_400_000, "Tue Feb 29 00:00:00 UTC 2000"),
            (951_868_800_000, "Wed Mar 01 00:00:00 UTC 2000"),
            (4_107_542_399_999, "Sun Feb 28 23:59:59 UTC 2100"),
            (4_107_542_400_000, "Mon Mar 01 00:00:00 UTC 2100"),
        ] {
            assert_eq!(java_date(Millis(ms)), text);
        }
        let _ = (java_date(Millis(i64::MAX)), java_date(Millis(i64::MIN)));
    }

    #[test]
    fn comments_any_order_all_separators_and_continued_lines_are_read() {
        let text =
            "! old\n  cluster.id : ab\\=c\\\n   d\n\nversion 0\r\nbroker.id\t=\t7\nx=\\u0041\\t\n# end";
        let properties = MetaProperties::parse(text.as_bytes()).unwrap();
        assert_eq!(properties.broker_id, Some(BrokerId(7)));
        assert_eq!(properties.cluster_id.as_deref(), Some("ab=cd"));
        assert_eq!(properties.other, [("x".to_owned(), "A\t".to_owned())]);
    }

    #[test]
    fn a_missing_version_counts_as_zero_and_other_versions_are_refused() {
        assert_eq!(MetaProperties::parse(b"broker.id=1\n").unwrap().broker_id, Some(BrokerId(1)));
        assert!(matches!(MetaProperties::parse(b"version=1\n"), Err(MetaPropertiesError::Version { .. })));
    }

    #[test]
    fn a_broker_id_must_be_a_number_that_a_broker_can_have() {
        for text in ["broker.id=x", "broker.id=-1", "broker.id=", "broker.id=3000000000"] {
            let result = MetaProperties::parse(text.as_bytes());
            assert!(matches!(result, Err(MetaPropertiesError::BrokerId { .. })), "{text}");
        }
    }

    #[test]
    fn keys_of_others_are_kept() {
        let text = "version=0\ndirectory.id=abc\nbroker.id=3\n";
        let properties = MetaProperties::parse(text.as_bytes()).unwrap();
        let disk = CrashDisk::new();
        let path = Path::new("/meta.properties");
        disk.open(Path::new("/meta.properties.tmp"), OpenOptions::CREATE).unwrap();
        assert_eq!(MetaProperties::read(&disk, path).unwrap(), None);
        assert!(!disk.exists(Path::new("/meta.properties.tmp")).unwrap());
        properties.write(&disk, path, Millis(0)).unwrap();
        assert_eq!(MetaProperties::read(&disk, path).unwrap(), Some(properties));
    }

    #[test]
    fn a_cut_escape_is_malformed() {
        let result = MetaProperties::parse(b"a=1\nb=\\u00\n");
        assert!(matches!(result, Err(MetaPropertiesError::Malformed { line: 2 })));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = MetaProperties::parse(&bytes);
        }

        // Characters beyond 16 bits are written as pairs, which a reader need not put together again: no id of a
        // cluster has any.
        #[test]
        fn properties_read_back(
            id in 0..i32::MAX, cluster in "[ -~\\t]{0,30}", key in "[a-z =:#!\\\\.]{1,20}", value in "[\u{0}-\u{d7ff}]{0,20}",
        ) {
            let properties = MetaProperties {
                broker_id: Some(BrokerId(id)),
                cluster_id: Some(cluster),
                other: vec![(key, value)],
            };
            let text = properties.format(Millis(0));
            prop_assert_eq!(MetaProperties::parse(text.as_bytes()).unwrap(), properties);
        }
    }
}

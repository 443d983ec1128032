//! What verbs print: Kafka's own lines where scripts expect them, tables for people, JSON for programs.
//!
//! Without `--output` a terminal gets tables and everything else Kafka's lines.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};

/// The forms of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Kafka's own lines.
    Kafka,
    /// A table for people.
    Table,
    /// JSON for programs.
    Json,
}

/// The option `--output` of verbs that know all forms.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct FormatOption {
    /// Form of the output [default: table on a terminal, else kafka]
    #[arg(long, value_enum, value_name = "FORM")]
    output: Option<Format>,
}

impl FormatOption {
    /// The form that was asked for, or that suits standard output.
    pub(crate) fn get(self) -> Format {
        let fitting = || if io::stdout().is_terminal() { Format::Table } else { Format::Kafka };
        self.output.unwrap_or_else(fitting)
    }
}

/// The forms of output of verbs that print a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StreamFormat {
    /// Kafka's own lines.
    #[default]
    Kafka,
    /// One JSON object a line.
    Json,
}

/// The option `--output` of verbs that print a stream.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct StreamFormatOption {
    /// Form of the output
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(crate) output: StreamFormat,
}

/// Standard output, buffered; whoever writes flushes at the end.
pub(crate) fn stdout() -> BufWriter<Stdout> {
    BufWriter::with_capacity(64 * 1024, io::stdout())
}

/// Writes `value` as one line of JSON.
///
/// # Errors
/// If the output cannot be written to.
pub(crate) fn write_json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// Bytes as JSON: text as a string; what is no text as an object with its base64.
pub(crate) fn bytes_json(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

/// Rows under a header, each column as wide as its longest cell.
#[derive(Clone, Debug)]
pub(crate) struct Table<const N: usize> {
    header: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table without rows.
    pub(crate) fn new(header: [&'static str; N]) -> Self {
        Self { header, rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: [String; N]) {
        self.rows.push(row);
    }

    /// Writes the table.
    ///
    /// # Errors
    /// If the output cannot be written to.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut widths = self.header.map(str::len);
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        write_row(out, &self.header, &widths)?;
        for row in &self.rows {
            write_row(out, row, &widths)?;
        }
        Ok(())
    }
}

fn write_row(out: &mut dyn Write, cells: &[impl AsRef<str>], widths: &[usize]) -> io::Result<()> {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let cell = cell.as_ref();
        line.push_str(cell);
        let padding = width.saturating_sub(cell.chars().count()).saturating_add(2);
        line.extend(std::iter::repeat_n(' ', padding));
    }
    writeln!(out, "{}", line.trim_end())
}

/// `[1, 2]` as `1,2`.
pub(crate) fn join_ids(ids: &[i32]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Tells on stderr, once a second and on a terminal only, how far long work has come.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: Option<Instant>,
    enabled: bool,
}

impl Progress {
    const INTERVAL: Duration = Duration::from_secs(1);

    /// Begins; the first line comes after a second. Nothing is shown if the output itself goes to the terminal
    /// line by line (`quiet`).
    pub(crate) fn start(quiet: bool) -> Self {
        Self { shown: Some(Instant::now()), enabled: !quiet && io::stderr().is_terminal() }
    }

    /// Shows `line` if it is time to.
    pub(crate) fn show(&mut self, line: impl FnOnce() -> String) {
        if !self.enabled || self.shown.is_some_and(|shown| shown.elapsed() < Self::INTERVAL) {
            return;
        }
        self.shown = Some(Instant::now());
        eprintln!("{}", line());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell_and_lines_have_no_blanks_at_their_end() {
        let mut table = Table::new(["TOPIC", "N"]);
        table.push(["a".into(), "1".into()]);
        table.push(["längerer".into(), String::new()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let expected = "TOPIC     N\na         1\nlängerer\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

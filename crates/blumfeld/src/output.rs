//! What the verbs print: tables for people, JSON for programs.

use std::io::{self, Write};

/// The form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Tables and sentences for people.
    #[default]
    Table,
    /// One JSON value for programs.
    Json,
}

/// Rows of text under headings, each column as wide as its widest cell.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row; a cell without text is printed as `-`.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        let filled = cells.into_iter().map(|cell| if cell.is_empty() { "-".to_owned() } else { cell });
        self.rows.push(filled.collect());
    }

    /// Prints headings and rows.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for row in &self.rows {
            let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            writeln!(out, "{}", padded.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// Prints a value as one JSON document with a line end.
pub(crate) fn print_json(out: &mut impl Write, value: &serde_json::Value) -> io::Result<()> {
    writeln!(out, "{value:#}")
}

/// Integers separated by commas.
pub(crate) fn join(ids: &[i32]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_cells_are_marked() {
        let mut table = Table::new(&["TOPIC", "ID"]);
        table.row(["a-long-name".to_owned(), "1".to_owned()]);
        table.row([String::new(), "22".to_owned()]);
        let mut out = Vec::new();
        table.print(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "TOPIC        ID\na-long-name  1\n-            22\n");
    }
}

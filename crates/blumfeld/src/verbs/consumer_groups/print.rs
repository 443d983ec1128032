//! Columns as Kafka's tool pads them: each has a least width, grows with its longest cell, and the last one ends where
//! its text ends.

use std::io::{self, Write};

/// A column: its title, and its least width.
pub(super) type Column = (&'static str, usize);

/// Writes an empty line, the titles and the rows.
///
/// # Errors
/// If the output cannot be written to.
pub(super) fn write<const N: usize>(
    out: &mut dyn Write,
    columns: [Column; N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let mut widths = columns.map(|(title, least)| least.max(title.len()));
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    writeln!(out)?;
    line(out, columns.iter().map(|(title, _)| *title), &widths)?;
    rows.iter().try_for_each(|row| line(out, row.iter().map(String::as_str), &widths))
}

fn line<'a>(out: &mut dyn Write, cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> io::Result<()> {
    let cells: Vec<String> = cells.zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
    writeln!(out, "{}", cells.join(" ").trim_end())
}

/// A number, or a dash where there is none.
pub(super) fn or_dash(number: Option<i64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_as_wide_as_its_longest_cell_and_not_narrower_than_its_least_width() {
        let mut out = Vec::new();
        let rows = [["a".to_owned(), "b".to_owned()], ["longer".to_owned(), "-".to_owned()]];
        write(&mut out, [("X", 3), ("Y", 5)], &rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\nX      Y\na      b\nlonger -\n");
    }
}

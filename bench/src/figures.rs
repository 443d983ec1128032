//! What was measured, and the table that is printed: medians, ratios, goals.

use std::collections::BTreeMap;
use std::fmt::Write;

use interop::broker::Kind;

/// What is hoped for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    /// Blumfeld's figure over Kafka's is at least this.
    RatioAtLeast(f64),
    /// Blumfeld's figure over Kafka's is at most this.
    RatioAtMost(f64),
    /// Blumfeld's figure is at most this.
    AtMost(f64),
    /// Shown for information.
    None,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row {
    /// What is measured.
    pub(crate) name: &'static str,
    /// In which unit.
    pub(crate) unit: &'static str,
    /// What is hoped for.
    pub(crate) goal: Goal,
}

/// All figures, by row and broker, in the order of their first appearance.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    rows: Vec<Row>,
    values: BTreeMap<(usize, bool), Vec<f64>>,
}

impl Figures {
    /// Adds one measured value.
    pub(crate) fn add(&mut self, row: Row, kind: Kind, value: f64) {
        eprintln!("  {kind:<9} {}: {} {}", row.name, shown(value), row.unit);
        let same = |known: &Row| known.name == row.name && known.unit == row.unit;
        let index = self.rows.iter().position(same).unwrap_or_else(|| {
            self.rows.push(row);
            self.rows.len() - 1
        });
        self.values.entry((index, kind == Kind::Blumfeld)).or_default().push(value);
    }

    /// The table.
    pub(crate) fn report(&self) -> String {
        let mut text = String::from(
            "\n| figure | unit | Kafka | Blumfeld | ratio | goal | |\n|---|---|---|---|---|---|---|\n",
        );
        for (index, row) in self.rows.iter().enumerate() {
            let median = |ours| self.values.get(&(index, ours)).and_then(|values| median(values));
            let (kafka, blumfeld) = (median(false), median(true));
            let ratio = kafka.zip(blumfeld).map(|(kafka, blumfeld)| blumfeld / kafka);
            let (goal, met) = judge(row.goal, ratio, blumfeld);
            let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), shown);
            let _infallible = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {goal} | {} |",
                row.name,
                row.unit,
                cell(kafka),
                cell(blumfeld),
                cell(ratio),
                met.map_or("", |met| if met { "met" } else { "MISSED" }),
            );
        }
        text
    }
}

fn judge(goal: Goal, ratio: Option<f64>, ours: Option<f64>) -> (String, Option<bool>) {
    match goal {
        Goal::RatioAtLeast(wanted) => (format!("ratio >= {wanted}"), ratio.map(|ratio| ratio >= wanted)),
        Goal::RatioAtMost(wanted) => (format!("ratio <= {wanted}"), ratio.map(|ratio| ratio <= wanted)),
        Goal::AtMost(wanted) => (format!("<= {wanted}"), ours.map(|ours| ours <= wanted)),
        Goal::None => (String::new(), None),
    }
}

/// The middle value; of an even number the mean of the middle two.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(*upper);
    }
    sorted.get(middle.checked_sub(1)?).map(|lower| f64::midpoint(*lower, *upper))
}

/// Three digits that count.
fn shown(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn goals_compare_medians_and_missing_figures_judge_nothing() {
        let mut figures = Figures::default();
        let row = Row { name: "speed", unit: "MB/s", goal: Goal::RatioAtLeast(2.0) };
        for value in [10.0, 12.0, 11.0] {
            figures.add(row, Kind::Kafka, value);
        }
        assert!(figures.report().contains("| speed | MB/s | 11.0 | - | - | ratio >= 2 |  |"));
        figures.add(row, Kind::Blumfeld, 22.0);
        assert!(figures.report().contains("| 11.0 | 22.0 | 2.00 | ratio >= 2 | met |"));
        figures.add(row, Kind::Blumfeld, 1.0);
        assert!(figures.report().contains("MISSED"));
    }
}

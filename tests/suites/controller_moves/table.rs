//! What was seen of the partitions, a line for each: to be compared with what is expected, and read by people.

use std::fmt;

use anyhow::{Result, ensure};
use interop::cluster::PartitionState;

use super::case::{A, B, C};

/// The letter of a broker.
pub(crate) fn name(id: i32) -> &'static str {
    match id {
        A => "A",
        B => "B",
        C => "C",
        _ => "-",
    }
}

/// The state of a partition at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row(String);

impl Row {
    /// `term` is the controller epoch that counts as 0.
    pub(crate) fn new(label: &str, topic: &str, state: &PartitionState, term: i32) -> Self {
        let mut isr: Vec<&str> = state.isr.iter().map(|id| name(*id)).collect();
        isr.sort_unstable();
        let recovering = if state.recovering { ", recovering" } else { "" };
        Self(format!(
            "{label}: {topic} leader {} epoch {}, isr {}, partition epoch {}, term +{}{recovering}",
            name(state.leader),
            state.leader_epoch,
            isr.join(" "),
            state.partition_epoch,
            state.controller_epoch - term,
        ))
    }
}

/// Rows in the order in which they were seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table(Vec<Row>);

impl Table {
    pub(crate) fn push(&mut self, row: Row) {
        self.0.push(row);
    }

    /// Compares with what is expected, line by line.
    pub(crate) fn must_be(&self, expected: &str) -> Result<()> {
        let found = self.to_string();
        let expected: String = expected.lines().map(|line| format!("{}\n", line.trim())).collect();
        ensure!(found.trim() == expected.trim(), "expected:\n{expected}\nfound:\n{found}");
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|row| writeln!(f, "{}", row.0))
    }
}

//! Running a verb and Kafka's tool, and comparing what they say.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::cache;
use interop::java::{self, Jars};
use interop::process::{self, Finished};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

/// What must be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Same {
    /// Lines, in order.
    Lines,
    /// Lines, in any order.
    Sorted,
    /// Words, in any order: for JSON that is made from hash tables, and for tables whose lines Kafka 3.9 does not end.
    Words,
}

/// A verb of ours.
pub fn verb(line: &str, input: &str) -> Result<Finished> {
    process::run(Command::new(cache::blumfeld_binary()?).args(line.split_whitespace()), input, LIMIT)
}

/// A verb of ours that must succeed: its output.
pub fn verb_well(line: &str, input: &str) -> Result<String> {
    let finished = verb(line, input)?;
    ensure!(finished.status.success(), "blumfeld {line}: {}\n{}", finished.status, finished.stderr);
    Ok(finished.stdout)
}

/// The same, read as JSON.
pub fn verb_json(line: &str) -> Result<Value> {
    let text = verb_well(&format!("{line} --output json"), "")?;
    serde_json::from_str(&text).with_context(|| format!("blumfeld {line} says {text}"))
}

/// Compares the verb that `line` begins with (one word) with Kafka's tool `class`, which gets the same options.
pub fn same(class: &str, line: &str, same: Same) -> Result<()> {
    let arguments: Vec<&str> = line.split_whitespace().skip(1).collect();
    let kafka = java::tool_any_end(Jars::Kafka39, class, &arguments)?;
    let ours = verb(line, "")?;
    ensure!(
        normal(&kafka.stdout, same) == normal(&ours.stdout, same)
            && kafka.status.success() == ours.status.success(),
        "{line}\nKafka ({}):\n{}{}\nBlumfeld ({}):\n{}{}",
        kafka.status,
        kafka.stdout,
        kafka.stderr,
        ours.status,
        ours.stdout,
        ours.stderr
    );
    Ok(())
}

fn normal(text: &str, same: Same) -> Vec<String> {
    let words = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| c.is_whitespace() || "{}[],".contains(c));
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let mut lines: Vec<String> = match same {
        Same::Words => words(text),
        Same::Lines | Same::Sorted => text.lines().map(|line| line.trim_end().to_owned()).collect(),
    };
    lines.retain(|line| !line.is_empty());
    if same != Same::Lines {
        lines.sort();
    }
    lines
}

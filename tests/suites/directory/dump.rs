//! The files of a topic's partitions, read by Kafka's dump tool and by ours: neither complains, and both print the same.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::cache;
use interop::java::{self, Jars};
use interop::process::run_well;

use super::End;
use super::groups::OFFSETS;

const LIMIT: Duration = Duration::from_secs(60);

/// Dumps all files of all partitions of the topic. (A real Kafka that was killed leaves empty logs of the internal
/// topics whose indexes its own tool cannot read.)
pub(crate) fn every_file(data: &Path, topic: &str, how: End) -> Result<()> {
    let files = segment_files(data, topic)?;
    ensure!(files.len() > 10, "only {} files to dump", files.len());
    let gaps = if is_compacted(data, topic)? { Gaps::Allowed } else { Gaps::Bad };
    let shown = if topic == OFFSETS { "--offsets-decoder" } else { "--print-data-log" };
    let by_kafka = by_kafka(&files, &["--deep-iteration", shown], gaps)?;
    let by_us = by_us(&files, &["--deep-iteration", shown])?;
    let different = by_kafka.lines().zip(by_us.lines()).find(|(kafka, ours)| kafka != ours);
    ensure!(different.is_none(), "the dump tools differ (Kafka's line, ours): {different:#?}");
    ensure!(by_kafka == by_us, "one of the dump tools prints more than the other");
    let checked = if how == End::Killed { without_active_indexes(files) } else { files };
    self::by_kafka(&checked, &["--index-sanity-check"], gaps).map(|_| ())
}

/// Whether offsets may be missing between records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gaps {
    Bad,
    /// Compaction leaves them, and Kafka's tool tells of each.
    Allowed,
}

fn is_compacted(data: &Path, topic: &str) -> Result<bool> {
    let text = std::fs::read_to_string(data.join("cleaner-offset-checkpoint"))?;
    Ok(text.lines().any(|line| line.starts_with(&format!("{topic} "))))
}

fn list(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>().join(",")
}

fn by_kafka(files: &[PathBuf], options: &[&str], gaps: Gaps) -> Result<String> {
    let list = list(files);
    let mut arguments = vec!["--files", &list];
    arguments.extend(options);
    let dumped = java::tool(Jars::Kafka39, "kafka.tools.DumpLogSegments", &arguments, "")?;
    let signs = [
        "mismatch",
        "Mismatch",
        "log timestamp: ",
        "out of order",
        "Non-consecutive",
        "isvalid: false",
        "rror",
        "xception",
    ];
    let bad = dumped.stdout.lines().chain(dumped.stderr.lines());
    let is_bad = |line: &&str| signs.iter().any(|sign| line.contains(sign));
    let is_usual = |line: &&str| gaps == Gaps::Allowed && is_usual_of_compaction(line);
    let bad: Vec<&str> = bad.filter(|line| is_bad(line) && !is_usual(line)).collect();
    ensure!(bad.is_empty(), "the dump tool complains with {options:?}:\n{}", bad.join("\n"));
    let seen = dumped.stdout.lines().filter(|line| line.starts_with("Dumping ")).count();
    ensure!(seen == files.len(), "{seen} of {} files were dumped", files.len());
    Ok(dumped.stdout)
}

/// What Kafka's tool says of logs that Kafka has compacted too: it tells of each gap, and finds no timestamp in a batch that
/// has lost all its records, though the time index names the one that the batch keeps.
fn is_usual_of_compaction(line: &str) -> bool {
    line.starts_with("Non-consecutive offsets")
        || line.starts_with("Found timestamp mismatch in")
        || line.trim_end().ends_with("log timestamp: -1")
}

fn by_us(files: &[PathBuf], options: &[&str]) -> Result<String> {
    let mut command = Command::new(cache::blumfeld_binary()?);
    command.args(["dump-log", "--files", &list(files)]).args(options);
    Ok(run_well(&mut command, "", LIMIT).context("our dump tool")?.stdout)
}

/// Leaves out the indexes of each partition's last segment: they are as long as they may become until a broker
/// closes them, and the check of a real Kafka's own directory fails on them too when it was killed.
fn without_active_indexes(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let last = |file: &PathBuf| {
        let logs =
            files.iter().filter(|other| other.parent() == file.parent() && has_extension(other, "log"));
        logs.max().and_then(|log| log.file_stem()).map(ToOwned::to_owned)
    };
    let is_active_index = |file: &PathBuf| {
        (has_extension(file, "index") || has_extension(file, "timeindex"))
            && last(file).as_deref() == file.file_stem()
    };
    files.iter().filter(|file| !is_active_index(file)).cloned().collect()
}

fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|known| known == extension)
}

fn segment_files(data: &Path, topic: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for partition in data.read_dir()? {
        let partition = partition?.path();
        let name = partition.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !partition.is_dir() || !name.starts_with(&format!("{topic}-")) {
            continue;
        }
        for file in partition.read_dir()? {
            let file = file?.path();
            let kinds = ["log", "index", "timeindex", "txnindex", "snapshot"];
            if file.extension().is_some_and(|e| kinds.iter().any(|kind| e == *kind)) {
                files.push(file);
            }
        }
    }
    files.sort();
    Ok(files)
}

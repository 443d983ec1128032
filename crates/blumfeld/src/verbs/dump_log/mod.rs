//! `blumfeld dump-log`: prints and checks what the files of a data directory hold, in the lines of kafka-dump-log.
//!
//! It only reads, and may read what a broker is writing: a batch that is cut off at the end of a log is told, not
//! counted as a fault. Faults make the verb fail at its end, after everything was printed.

mod index;
mod log;
mod offsets;
mod report;
mod text;
mod txn_index;

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::VerbError;
use crate::output::{Progress, StreamFormatOption, stdout};
use report::Report;

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct DumpLogOptions {
    #[command(flatten)]
    format: StreamFormatOption,
    /// Files, separated by commas: .log, .index, .timeindex, .txnindex, .snapshot, checkpoints, partition.metadata
    #[arg(long, value_name = "FILE,...", value_delimiter = ',', required = true)]
    files: Vec<PathBuf>,
    /// Print the keys and values of records
    #[arg(long)]
    print_data_log: bool,
    /// Print keys and values as what they are in `__consumer_offsets`: groups and committed offsets
    #[arg(long)]
    offsets_decoder: bool,
    /// Print a line for each record
    #[arg(long)]
    deep_iteration: bool,
    /// Only check that an index is sound in itself
    #[arg(long)]
    index_sanity_check: bool,
    /// Only check that an index agrees with its log
    #[arg(long)]
    verify_index_only: bool,
    /// Print keys and values without what else is known of a record
    #[arg(long)]
    skip_record_metadata: bool,
    /// How far behind the position of an index entry its offset is looked for
    #[arg(long, value_name = "BYTES", default_value_t = 5 * 1024 * 1024)]
    max_message_size: u64,
    /// The most bytes of a log that are read
    #[arg(long, value_name = "BYTES", default_value_t = u64::MAX, hide_default_value = true)]
    max_bytes: u64,
}

impl DumpLogOptions {
    /// Whether records are looked at one by one.
    fn is_deep(&self) -> bool {
        self.deep_iteration || self.prints_data()
    }

    /// Whether keys and values are printed.
    fn prints_data(&self) -> bool {
        self.print_data_log || self.offsets_decoder
    }
}

/// Prints the files in turn.
///
/// # Errors
/// If a file cannot be read, or has faults.
pub(crate) fn run(options: &DumpLogOptions) -> Result<(), VerbError> {
    let mut out = stdout();
    let mut progress = Progress::start(options.is_deep());
    let mut faults = 0_usize;
    for path in &options.files {
        let mut report = Report::new(&mut out, path, options.format.output);
        report.begin()?;
        dump(path, options, &mut report, &mut progress)?;
        faults = faults.saturating_add(report.faults());
    }
    out.flush()?;
    match faults {
        0 => Ok(()),
        1 => Err(VerbError::Failed("1 fault was found".to_owned())),
        _ => Err(VerbError::Failed(format!("{faults} faults were found"))),
    }
}

/// Prints one file by its kind.
fn dump(
    path: &Path,
    options: &DumpLogOptions,
    report: &mut Report<'_>,
    progress: &mut Progress,
) -> Result<(), VerbError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // Files that are going to be deleted or swapped in are what they were.
    let kind = name.trim_end_matches(".deleted").trim_end_matches(".swap").trim_end_matches(".cleaned");
    match kind.rsplit_once('.').map(|(_, kind)| kind) {
        Some("log") => log::dump(path, options, report, progress),
        Some("index") => index::dump(path, index::Kind::Offset, options, report),
        Some("timeindex") => index::dump(path, index::Kind::Time, options, report),
        Some("txnindex") => txn_index::dump(path, report),
        Some("snapshot") => text::snapshot(path, report),
        Some("metadata" | "properties") => text::lines(path, report),
        _ if kind.ends_with("-checkpoint") => text::lines(path, report),
        _ => Err(VerbError::Usage(format!(
            "{}: no file of a data directory that can be printed",
            path.display()
        ))),
    }
}

/// The base offset in the name of a file; 0 if there is none.
fn base_offset(path: &Path) -> i64 {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split('.').next().and_then(|stem| stem.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use wire::batch::{BatchBuilder, Compression};
    use wire::types::{LeaderEpoch, Millis, Offset};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: DumpLogOptions,
    }

    /// Prints the first `count` of `files`, names without their directory; returns the number of faults, too.
    pub(super) fn dumped(files: &[(&str, Vec<u8>)], count: usize, arguments: &[&str]) -> (String, usize) {
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(directory.path().join(name), bytes).unwrap();
        }
        let line = ["dump-log", "--files", "x"].iter().chain(arguments);
        let options = Line::try_parse_from(line).unwrap().options;
        let (mut out, mut faults) = (Vec::new(), 0);
        for (name, _) in files.iter().take(count) {
            let path = directory.path().join(name);
            let mut report = Report::new(&mut out, &path, options.format.output);
            report.begin().unwrap();
            dump(&path, &options, &mut report, &mut Progress::start(true)).unwrap();
            faults += report.faults();
        }
        let parent = format!("{}/", directory.path().display());
        (String::from_utf8(out).unwrap().replace(&parent, ""), faults)
    }

    /// A batch of two records at `base`, of which the first has the time `time_ms`, the second an earlier one.
    pub(super) fn batch(base: i64, time_ms: i64) -> Vec<u8> {
        let mut builder =
            BatchBuilder::new(Compression::None).base_offset(Offset(base)).leader_epoch(LeaderEpoch(3));
        let headers: [(&[u8], Option<&[u8]>); 2] = [(b"a", Some(b"1")), (b"b", None)];
        builder.append_with_headers(Millis(time_ms), Some(b"k0"), Some(b"v0"), &headers);
        builder.append(Millis(time_ms - 5), None, None);
        builder.build().unwrap().bytes.to_vec()
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.txt");
        let options = Line::try_parse_from(["dump-log", "--files", "x"]).unwrap().options;
        let mut out = Vec::new();
        let mut report = Report::new(&mut out, &path, options.format.output);
        let refused = dump(&path, &options, &mut report, &mut Progress::start(true));
        assert!(matches!(refused, Err(VerbError::Usage(_))));
    }

    #[test]
    fn faults_make_the_verb_fail() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("00000000000000000000.log");
        let mut bytes = batch(0, 10);
        std::fs::write(&path, &bytes).unwrap();
        let options = |path: &Path| {
            let line = ["dump-log", "--files", path.to_str().unwrap()];
            Line::try_parse_from(line).unwrap().options
        };
        run(&options(&path)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(run(&options(&path)).unwrap_err().to_string(), "1 fault was found");
        assert!(matches!(run(&options(Path::new("/no/such.log"))), Err(VerbError::File { .. })));
    }
}

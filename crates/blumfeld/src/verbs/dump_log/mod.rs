//! `blumfeld dump-log`: prints what the files of a partition hold, in the lines of kafka-dump-log.
//!
//! It reads files that a broker may be writing; a batch that is cut off at the end of a log is told, not an error.

mod index;
mod log;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use kernel::producer::ProducerEntry;
use storage::snapshot::decode_snapshot;

use crate::error::VerbError;
use crate::output::{Progress, StreamFormat, StreamFormatOption, stdout, write_json};

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct DumpLogOptions {
    #[command(flatten)]
    format: StreamFormatOption,
    /// The files, separated by commas: .log, .index, .timeindex, .txnindex, .snapshot, leader-epoch-checkpoint
    #[arg(long, value_name = "FILE,...", value_delimiter = ',', required = true)]
    files: Vec<PathBuf>,
    /// Print the records, too
    #[arg(long)]
    print_data_log: bool,
    /// Look into compressed batches even if no record is printed
    #[arg(long)]
    deep_iteration: bool,
    /// Check indexes without printing them
    #[arg(long)]
    index_sanity_check: bool,
    /// Check that indexes agree with their log without printing them
    #[arg(long)]
    verify_index_only: bool,
    /// Print only key and payload of records
    #[arg(long)]
    skip_record_metadata: bool,
    /// The largest batch that is looked into, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 5 * 1024 * 1024)]
    max_message_size: usize,
    /// The most bytes of a log that are read
    #[arg(long, value_name = "BYTES", default_value_t = u64::MAX)]
    max_bytes: u64,
}

/// Prints the files in turn.
///
/// # Errors
/// If a file cannot be read, or a check has failed.
pub(crate) fn run(options: &DumpLogOptions) -> Result<(), VerbError> {
    let mut out = stdout();
    let mut progress = Progress::start(options.print_data_log);
    let mut faults = 0_usize;
    for path in &options.files {
        if options.format.output == StreamFormat::Kafka {
            writeln!(out, "Dumping {}", path.display())?;
        }
        progress.show(|| format!("reading {}", path.display()));
        faults += dump(&mut out, path, options, &mut progress)?;
    }
    out.flush()?;
    if faults > 0 {
        return Err(VerbError::Failed(format!("{faults} faults were found")));
    }
    Ok(())
}

/// Prints one file by its kind; returns the number of faults in it.
fn dump(
    out: &mut dyn Write,
    path: &Path,
    options: &DumpLogOptions,
    progress: &mut Progress,
) -> Result<usize, VerbError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name == "leader-epoch-checkpoint" {
        let text = fs::read_to_string(path).map_err(|error| VerbError::file(path, error))?;
        out.write_all(text.as_bytes())?;
        return Ok(0);
    }
    match name.rsplit_once('.').map(|(_, kind)| kind) {
        Some("log") => log::dump(out, path, options, progress),
        Some("index") => index::dump(out, path, index::Kind::Offset, options),
        Some("timeindex") => index::dump(out, path, index::Kind::Time, options),
        Some("txnindex") => index::dump_txn(out, path, options),
        Some("snapshot") => snapshot(out, path, options),
        _ => Err(VerbError::Usage(format!(
            "{}: not a file of a partition that can be printed",
            path.display()
        ))),
    }
}

fn snapshot(out: &mut dyn Write, path: &Path, options: &DumpLogOptions) -> Result<usize, VerbError> {
    let bytes = fs::read(path).map_err(|error| VerbError::file(path, error))?;
    let entries = match decode_snapshot(&bytes) {
        Ok(entries) => entries,
        Err(error) => {
            writeln!(out, "{}: {error}", path.display())?;
            return Ok(1);
        }
    };
    for entry in &entries {
        match options.format.output {
            StreamFormat::Kafka => writeln!(out, "{}", line(entry))?,
            StreamFormat::Json => write_json(
                out,
                &serde_json::json!({
                    "producerId": entry.producer_id,
                    "producerEpoch": entry.producer_epoch,
                    "coordinatorEpoch": entry.coordinator_epoch,
                    "currentTxnFirstOffset": entry.open_txn_first_offset.map(|offset| offset.0),
                    "lastTimestamp": entry.last_timestamp,
                }),
            )?,
        }
    }
    Ok(0)
}

fn line(entry: &ProducerEntry) -> String {
    let open = entry.open_txn_first_offset.map_or_else(|| "None".to_owned(), |offset| offset.to_string());
    format!(
        "producerId: {} producerEpoch: {} coordinatorEpoch: {} currentTxnFirstOffset: {open} lastTimestamp: {}",
        entry.producer_id, entry.producer_epoch, entry.coordinator_epoch, entry.last_timestamp
    )
}

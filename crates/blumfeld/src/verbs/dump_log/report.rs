//! What is printed about one file: lines or JSON objects, and the faults that were found in it.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::error::VerbError;
use crate::output::{StreamFormat, write_json};

/// See the module.
pub(super) struct Report<'a> {
    out: &'a mut dyn Write,
    file: String,
    format: StreamFormat,
    faults: usize,
}

impl<'a> Report<'a> {
    /// A report on the file `path`.
    pub(super) fn new(out: &'a mut dyn Write, path: &Path, format: StreamFormat) -> Self {
        Self { out, file: path.display().to_string(), format, faults: 0 }
    }

    /// Says which file comes.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.note(&format!("Dumping {}", self.file))
    }

    /// Prints an entry: as a line, or as an object to which the name of the file is added.
    pub(super) fn entry(
        &mut self,
        line: impl FnOnce() -> String,
        object: impl FnOnce() -> Value,
    ) -> io::Result<()> {
        match self.format {
            StreamFormat::Kafka => writeln!(self.out, "{}", line()),
            StreamFormat::Json => {
                let mut value = object();
                if let Some(fields) = value.as_object_mut() {
                    fields.insert("file".to_owned(), Value::from(self.file.as_str()));
                }
                write_json(&mut *self.out, &value)
            }
        }
    }

    /// Prints a line that programs have no use for.
    pub(super) fn note(&mut self, line: &str) -> io::Result<()> {
        match self.format {
            StreamFormat::Kafka => writeln!(self.out, "{line}"),
            StreamFormat::Json => Ok(()),
        }
    }

    /// Says that the file has nothing to print or to check.
    pub(super) fn empty(&mut self) -> io::Result<()> {
        self.note(&format!("{} is empty.", self.file))
    }

    /// Says that the file passed a check that prints nothing else, if it did.
    pub(super) fn passed(&mut self) -> io::Result<()> {
        if self.faults > 0 {
            return Ok(());
        }
        let line = format!("{} passed sanity check.", self.file);
        self.entry(|| line, || json!({ "type": "check", "passed": true }))
    }

    /// Tells a fault.
    pub(super) fn fault(&mut self, text: &str) -> io::Result<()> {
        self.faults = self.faults.saturating_add(1);
        let line = format!("FAULT in {}: {text}", self.file);
        self.entry(|| line, || json!({ "type": "fault", "fault": text }))
    }

    /// The number of faults so far.
    pub(super) fn faults(&self) -> usize {
        self.faults
    }

    /// An error about the file.
    pub(super) fn failed(&self, error: io::Error) -> VerbError {
        VerbError::file(Path::new(&self.file), error)
    }
}

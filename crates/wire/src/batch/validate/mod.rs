//! What a leader checks and changes before it appends a producer's batch.
//!
//! Three steps, in this order. [`check_request`] looks at one partition of a Produce request before anything
//! else. [`analyze`] needs no lock and no topic state but the size limit: sizes, checksums, offsets, batch by
//! batch; followers use it too. [`validate_produce`] applies the rules of the topic, record by record, and
//! gives back what to write: the batch as it came, or with a new header, or rebuilt. It needs no log position
//! either, since offset and leader epoch are outside the checksum: [`Validated::stamp`] sets them at the end.

mod analyze;
mod error;
mod produce;
mod rebuild;
mod request;
#[cfg(test)]
mod tests;
mod validated;

pub use analyze::{Analysis, AnalyzeRules, AppendOrigin, analyze};
pub use error::{RecordError, RecordErrors, RecordFault, Rejection, ValidationError};
pub use produce::{ProduceRules, TopicCompression, validate_produce};
pub use request::check_request;
pub use validated::{Change, Validated};

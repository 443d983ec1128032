//! A `.log`: its batches in order, and on request their records.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use storage::disk::{Disk, DiskFile, OpenOptions, RealDisk};
use storage::segment::{BatchScan, FileBatch, ScanError};
use wire::batch::control::{EndTxnMarker, MarkerType};
use wire::batch::{Batch, BatchHeader, CompressionType, Limits, Record};

use super::report::Report;
use super::{DumpLogOptions, base_offset, offsets};
use crate::error::VerbError;
use crate::output::{Progress, bytes_json};

/// Bytes that are read at a time.
const READ_AHEAD: usize = 256 << 10;

/// Prints and checks a log.
pub(super) fn dump(
    path: &Path,
    options: &DumpLogOptions,
    report: &mut Report<'_>,
    progress: &mut Progress,
) -> Result<(), VerbError> {
    let file = RealDisk.open(path, OpenOptions::READ).map_err(|error| report.failed(error))?;
    let length = file.len().map_err(|error| report.failed(error))?;
    let end = length.min(options.max_bytes);
    report.note(&format!("Log starting offset: {}", base_offset(path)))?;
    let mut scan = BatchScan::new(file.clone(), 0, end, READ_AHEAD);
    let mut next_offset = base_offset(path);
    loop {
        match scan.next_batch() {
            Ok(Some(batch)) => {
                let valid = match scan.verify_crc(&batch) {
                    Ok(()) => true,
                    Err(ScanError::Io(error)) => return Err(report.failed(error)),
                    Err(_) => false,
                };
                dump_batch(&file, &batch, valid, options, report)?;
                if batch.header.base_offset.0 < next_offset {
                    report
                        .fault(&format!("offset {} comes after it was passed", batch.header.base_offset))?;
                }
                next_offset = batch.header.next_offset().0;
            }
            Ok(None) => break,
            Err(ScanError::Io(error)) => return Err(report.failed(error)),
            Err(error) => {
                if !is_room(&file, scan.position(), end).map_err(|error| report.failed(error))? {
                    report.fault(&error.to_string())?;
                }
                break;
            }
        }
        progress.show(|| format!("{}: {} of {end} bytes", path.display(), scan.position()));
    }
    let rest = length.saturating_sub(scan.position());
    if rest > 0 && options.max_bytes == u64::MAX {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        report.note(&format!("Found {rest} invalid bytes at the end of {name}"))?;
    }
    Ok(())
}

/// Whether zeros lie at `position`: the room of a log that was preallocated.
fn is_room(file: &Arc<dyn DiskFile>, position: u64, end: u64) -> std::io::Result<bool> {
    let mut bytes = [0; 64];
    let read = file.read_at(&mut bytes, position)?;
    let within = usize::try_from(end.saturating_sub(position)).unwrap_or(usize::MAX).min(read);
    Ok(bytes.iter().take(within).all(|byte| *byte == 0))
}

fn dump_batch(
    file: &Arc<dyn DiskFile>,
    batch: &FileBatch,
    valid: bool,
    options: &DumpLogOptions,
    report: &mut Report<'_>,
) -> Result<(), VerbError> {
    let (header, position) = (&batch.header, batch.position);
    report.entry(|| batch_line(header, position, valid), || batch_json(header, position, valid))?;
    if !valid {
        report.fault(&format!("the checksum of the batch at position {position} is wrong"))?;
        return Ok(());
    }
    if !options.is_deep() {
        return Ok(());
    }
    // The scan has seen that the file holds the whole batch.
    let mut bytes = vec![0; header.size_in_bytes()];
    file.read_exact_at(&mut bytes, position).map_err(|error| report.failed(error))?;
    let records = Batch::parse(&Bytes::from(bytes)).map(|batch| {
        let marker = EndTxnMarker::read(&batch);
        (marker, batch.records(Limits::default()))
    });
    let unreadable =
        |error| format!("the records of the batch at position {position} cannot be read: {error}");
    let (marker, records) = match records {
        Ok((Ok(marker), records)) => (marker, records),
        Ok((Err(error), _)) | Err(error) => return Ok(report.fault(&unreadable(error))?),
    };
    for record in records {
        match record {
            Ok(record) => report.entry(
                || record_line(header, &record, marker, options),
                || record_json(header, &record, marker, options),
            )?,
            Err(error) => report.fault(&unreadable(error))?,
        }
    }
    Ok(())
}

fn codec(header: &BatchHeader) -> &'static str {
    header.compression().map_or("unknown", CompressionType::name)
}

fn batch_line(it: &BatchHeader, position: u64, valid: bool) -> String {
    let horizon = it.delete_horizon();
    let horizon = horizon.map_or_else(|| "OptionalLong.empty".to_owned(), |at| format!("OptionalLong[{at}]"));
    format!(
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} \
         producerEpoch: {} partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: {horizon} \
         position: {position} {}: {} size: {} magic: {} compresscodec: {} crc: {} isvalid: {valid}",
        it.base_offset,
        it.last_offset(),
        it.records_count,
        it.base_sequence,
        it.last_sequence(),
        it.producer_id,
        it.producer_epoch,
        it.partition_leader_epoch,
        it.is_transactional(),
        it.is_control(),
        it.timestamp_type().name(),
        it.max_timestamp,
        it.size_in_bytes(),
        it.magic,
        codec(it),
        it.crc,
    )
}

fn batch_json(it: &BatchHeader, position: u64, valid: bool) -> Value {
    json!({
        "type": "batch",
        "baseOffset": it.base_offset.0,
        "lastOffset": it.last_offset().0,
        "count": it.records_count,
        "baseSequence": it.base_sequence,
        "lastSequence": it.last_sequence(),
        "producerId": it.producer_id,
        "producerEpoch": it.producer_epoch,
        "partitionLeaderEpoch": it.partition_leader_epoch.0,
        "isTransactional": it.is_transactional(),
        "isControl": it.is_control(),
        "deleteHorizonMs": it.delete_horizon().map(|at| at.0),
        "position": position,
        "timestampType": it.timestamp_type().name(),
        "maxTimestamp": it.max_timestamp.0,
        "size": it.size_in_bytes(),
        "magic": it.magic,
        "compression": codec(it),
        "crc": it.crc,
        "isValid": valid,
    })
}

fn marker_name(marker: EndTxnMarker) -> &'static str {
    match marker.marker_type {
        MarkerType::Abort => "ABORT",
        MarkerType::Commit => "COMMIT",
    }
}

fn record_line(
    header: &BatchHeader,
    record: &Record,
    marker: Option<EndTxnMarker>,
    options: &DumpLogOptions,
) -> String {
    let size = |bytes: &Option<Bytes>| {
        bytes.as_ref().map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX))
    };
    let mut line = String::new();
    if !options.skip_record_metadata {
        let keys: Vec<_> = record.headers.iter().map(|header| String::from_utf8_lossy(&header.key)).collect();
        line = format!(
            "| offset: {} {}: {} keySize: {} valueSize: {} sequence: {} headerKeys: [{}]",
            record.offset,
            header.timestamp_type().name(),
            record.timestamp,
            size(&record.key),
            size(&record.value),
            record.sequence,
            keys.join(",")
        );
        if let Some(marker) = marker {
            let epoch = marker.coordinator_epoch;
            line.push_str(&format!(" endTxnMarker: {} coordinatorEpoch: {epoch}", marker_name(marker)));
        }
    }
    if options.prints_data() && !header.is_control() {
        let (key, payload) = told_data(record, options.offsets_decoder);
        if options.skip_record_metadata && key.is_some() {
            line.push('|');
        }
        for (name, text) in [("key", key), ("payload", payload)] {
            if let Some(text) = text {
                line.push_str(&format!(" {name}: {text}"));
            }
        }
    }
    line
}

/// Key and value as text, as far as there is something to print.
fn told_data(record: &Record, decodes_offsets: bool) -> (Option<String>, Option<String>) {
    if !decodes_offsets {
        let text =
            |bytes: &Option<Bytes>| bytes.as_deref().map(|it| String::from_utf8_lossy(it).into_owned());
        return (text(&record.key), text(&record.value));
    }
    match offsets::decode(record) {
        Ok(decoded) => {
            let payload = decoded.payload.map_or_else(|| "<DELETE>".to_owned(), |it| it.to_string());
            (Some(decoded.key.to_string()), Some(payload))
        }
        Err(why) => (Some(why), None),
    }
}

fn record_json(
    header: &BatchHeader,
    record: &Record,
    marker: Option<EndTxnMarker>,
    options: &DumpLogOptions,
) -> Value {
    let keys: Vec<Value> = record.headers.iter().map(|header| bytes_json(&header.key)).collect();
    let mut value = json!({
        "type": "record",
        "offset": record.offset.0,
        "timestampType": header.timestamp_type().name(),
        "timestamp": record.timestamp.0,
        "keySize": record.key.as_ref().map(Bytes::len),
        "valueSize": record.value.as_ref().map(Bytes::len),
        "sequence": record.sequence,
        "headerKeys": keys,
    });
    if let Some(fields) = value.as_object_mut() {
        if let Some(marker) = marker {
            fields.insert("endTxnMarker".to_owned(), Value::from(marker_name(marker)));
            fields.insert("coordinatorEpoch".to_owned(), Value::from(marker.coordinator_epoch));
        }
        if options.prints_data() && !header.is_control() {
            let (key, payload) = json_data(record, options.offsets_decoder);
            fields.insert("key".to_owned(), key);
            fields.insert("payload".to_owned(), payload);
        }
    }
    value
}

/// Key and value as JSON; of a record that cannot be read the key says why.
fn json_data(record: &Record, decodes_offsets: bool) -> (Value, Value) {
    if !decodes_offsets {
        let json = |bytes: &Option<Bytes>| bytes.as_deref().map_or(Value::Null, bytes_json);
        return (json(&record.key), json(&record.value));
    }
    match offsets::decode(record) {
        Ok(decoded) => (decoded.key, decoded.payload.unwrap_or(Value::Null)),
        Err(why) => (Value::from(why), Value::Null),
    }
}

#[cfg(test)]
mod tests;

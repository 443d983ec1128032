//! A `.log`: its batches in order, and on request their records.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use bytes::Bytes;
use serde_json::{Value, json};
use wire::batch::{Batch, BatchHeader, HEADER_LEN, LOG_OVERHEAD, Limits, Record, TimestampType};

use super::DumpLogOptions;
use super::index::base_offset;
use crate::error::VerbError;
use crate::output::{Progress, StreamFormat, write_json};

/// Prints a log; returns the number of faults.
pub(super) fn dump(
    out: &mut dyn Write,
    path: &Path,
    options: &DumpLogOptions,
    progress: &mut Progress,
) -> Result<usize, VerbError> {
    let file = File::open(path).map_err(|error| VerbError::file(path, error))?;
    let length = file.metadata().map_err(|error| VerbError::file(path, error))?.len().min(options.max_bytes);
    if options.format.output == StreamFormat::Kafka {
        writeln!(out, "Log starting offset: {}", base_offset(path))?;
    }
    let mut input = BufReader::with_capacity(1 << 20, file);
    let mut position = 0_u64;
    let mut faults = 0;
    let mut next_offset = None;
    while length.saturating_sub(position) >= HEADER_LEN as u64 {
        progress.show(|| format!("{}: {position} of {length} bytes", path.display()));
        let Some(batch) = next_batch(&mut input, length - position).map_err(|e| VerbError::file(path, e))?
        else {
            break;
        };
        let size = batch.bytes.len() as u64;
        let valid = batch.verify_crc().is_ok();
        let overlap = next_offset.filter(|expected| batch.header.base_offset.0 < *expected);
        faults += usize::from(!valid) + usize::from(overlap.is_some());
        if let Some(expected) = overlap {
            let found = batch.header.base_offset;
            writeln!(out, "The batch at position {position} begins at offset {found}, below {expected}")?;
        }
        next_offset = Some(batch.header.next_offset().0);
        print_batch(out, &batch, position, valid, options)?;
        if valid && (options.print_data_log || options.deep_iteration) {
            faults += print_records(out, &batch, options)?;
        }
        position += size;
    }
    let rest = length.saturating_sub(position);
    if rest > 0 && options.max_bytes == u64::MAX {
        writeln!(
            out,
            "Found {rest} invalid bytes at the end of {}",
            path.file_name().unwrap_or_default().to_string_lossy()
        )?;
    }
    Ok(faults)
}

/// The next whole batch; none if what follows is none, or is cut off.
fn next_batch(input: &mut impl Read, left: u64) -> std::io::Result<Option<Batch>> {
    let mut start = [0; HEADER_LEN];
    input.read_exact(&mut start)?;
    let Ok(header) = BatchHeader::parse(&start) else { return Ok(None) };
    let size = header.size_in_bytes();
    if size < HEADER_LEN.max(LOG_OVERHEAD) || size as u64 > left {
        return Ok(None);
    }
    let mut bytes = start.to_vec();
    // The size is within the file, so no more is read than there is.
    input.take((size - HEADER_LEN) as u64).read_to_end(&mut bytes)?;
    Ok(Batch::parse(&Bytes::from(bytes)).ok())
}

fn codec(batch: &Batch) -> &'static str {
    batch.header.compression().map_or("unknown", wire::batch::CompressionType::name)
}

fn time_name(header: &BatchHeader) -> &'static str {
    match header.timestamp_type() {
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    }
}

fn print_batch(
    out: &mut dyn Write,
    batch: &Batch,
    position: u64,
    valid: bool,
    options: &DumpLogOptions,
) -> Result<(), VerbError> {
    let it = &batch.header;
    if options.format.output == StreamFormat::Json {
        let value = json!({
            "baseOffset": it.base_offset.0, "lastOffset": it.last_offset().0, "count": it.records_count,
            "baseSequence": it.base_sequence, "lastSequence": it.last_sequence(),
            "producerId": it.producer_id, "producerEpoch": it.producer_epoch,
            "partitionLeaderEpoch": it.partition_leader_epoch.0, "isTransactional": it.is_transactional(),
            "isControl": it.is_control(), "position": position, "timestampType": time_name(it),
            "maxTimestamp": it.max_timestamp.0, "size": it.size_in_bytes(), "compression": codec(batch),
            "crc": it.crc, "isValid": valid,
        });
        return Ok(write_json(out, &value)?);
    }
    let horizon = it
        .delete_horizon()
        .map_or_else(|| "OptionalLong.empty".to_owned(), |at| format!("OptionalLong[{at}]"));
    writeln!(
        out,
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} \
         partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: {horizon} position: {position} \
         {}: {} size: {} magic: 2 compresscodec: {} crc: {} isvalid: {valid}",
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
        time_name(it),
        it.max_timestamp,
        it.size_in_bytes(),
        codec(batch),
        it.crc,
    )?;
    Ok(())
}

/// Prints the records of a batch, or only reads them; returns the number of faults.
fn print_records(out: &mut dyn Write, batch: &Batch, options: &DumpLogOptions) -> Result<usize, VerbError> {
    // What a batch may grow to follows from the largest batch that is looked into, with room for a good codec.
    let limits = Limits { max_decompressed_bytes: options.max_message_size.saturating_mul(100) };
    for record in batch.records(limits) {
        match record {
            Ok(record) if options.print_data_log => print_record(out, batch, &record, options)?,
            Ok(_) => {}
            Err(error) => {
                writeln!(
                    out,
                    "| the records of the batch at offset {} cannot be read: {error}",
                    batch.header.base_offset
                )?;
                return Ok(1);
            }
        }
    }
    Ok(0)
}

fn print_record(
    out: &mut dyn Write,
    batch: &Batch,
    record: &Record,
    options: &DumpLogOptions,
) -> Result<(), VerbError> {
    let text = |bytes: Option<&Bytes>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let size =
        |bytes: Option<&Bytes>| bytes.map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX));
    let keys: Vec<_> =
        record.headers.iter().map(|it| String::from_utf8_lossy(&it.key).into_owned()).collect();
    if options.format.output == StreamFormat::Json {
        let value: Value = json!({
            "offset": record.offset.0, "timestamp": record.timestamp.0, "sequence": record.sequence,
            "headerKeys": keys, "key": text(record.key.as_ref()), "payload": text(record.value.as_ref()),
        });
        return Ok(write_json(out, &value)?);
    }
    write!(out, "|")?;
    if !options.skip_record_metadata {
        write!(
            out,
            " offset: {} {}: {} keySize: {} valueSize: {} sequence: {} headerKeys: [{}]",
            record.offset,
            time_name(&batch.header),
            record.timestamp,
            size(record.key.as_ref()),
            size(record.value.as_ref()),
            record.sequence,
            keys.join(",")
        )?;
    }
    if let Some(key) = text(record.key.as_ref()) {
        write!(out, " key: {key}")?;
    }
    if let Some(value) = text(record.value.as_ref()) {
        write!(out, " payload: {value}")?;
    }
    writeln!(out)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parse_dump_log;

    fn dumped(bytes: &[u8], arguments: &[&str]) -> (String, usize) {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("00000000000000000007.log");
        std::fs::write(&path, bytes).unwrap();
        let options = parse_dump_log(&path, arguments);
        let mut out = Vec::new();
        let faults = dump(&mut out, &path, &options, &mut Progress::start(true)).unwrap();
        (String::from_utf8(out).unwrap(), faults)
    }

    fn batch() -> Vec<u8> {
        use wire::batch::{BatchBuilder, Compression};
        use wire::types::{LeaderEpoch, Millis, Offset};
        let mut builder =
            BatchBuilder::new(Compression::None).base_offset(Offset(7)).leader_epoch(LeaderEpoch(3));
        builder.append(Millis(1000), Some(b"k0"), Some(b"v0"));
        builder.append(Millis(1005), Some(b"k1"), None);
        builder.build().unwrap().bytes.to_vec()
    }

    #[test]
    fn a_batch_and_its_records_are_printed_as_kafka_does() {
        let (text, faults) = dumped(&batch(), &["--print-data-log"]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "Log starting offset: 7");
        assert!(lines[1].starts_with(
            "baseOffset: 7 lastOffset: 8 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 \
             partitionLeaderEpoch: 3 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty \
             position: 0 CreateTime: 1005 size: "
        ));
        assert!(lines[1].ends_with("isvalid: true"));
        assert_eq!(
            lines[2],
            "| offset: 7 CreateTime: 1000 keySize: 2 valueSize: 2 sequence: -1 headerKeys: [] key: k0 payload: v0"
        );
        assert_eq!(faults, 0);
    }

    #[test]
    fn a_wrong_checksum_is_a_fault_and_a_tail_that_is_cut_off_is_told() {
        let mut bytes = batch();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        bytes.extend_from_slice(&batch()[..70]);
        let (text, faults) = dumped(&bytes, &[]);
        assert!(text.contains("isvalid: false") && text.contains("Found 70 invalid bytes"), "{text}");
        assert_eq!(faults, 1);
    }
}

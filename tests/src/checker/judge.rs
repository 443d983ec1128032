//! The judgement over a history.

use std::collections::{BTreeMap, HashMap};

use super::finding::{Finding, Findings};
use super::history::{Attempt, History, Latest, Outcome, PartitionHistory, Read, ReadRecord, RecordId};

/// Everything in a run that a log may never do. The topics have neither compaction nor transactions, and nothing
/// was deleted from them.
#[must_use]
pub fn judge(history: &History) -> Findings {
    let mut findings = Findings::default();
    for (partition, noted) in &history.partitions {
        let found = judge_partition(noted);
        findings.0.extend(found.into_iter().map(|finding| (partition.clone(), finding)));
    }
    findings
}

fn judge_partition(noted: &PartitionHistory) -> Vec<Finding> {
    let Some(last) = noted.reads.iter().find(|read| read.is_final) else { return vec![Finding::Unread] };
    let mut findings = Vec::new();
    let written = written(&noted.attempts);
    let at_the_end: BTreeMap<i64, ReadRecord> =
        last.records.iter().map(|read| (read.offset, *read)).collect();
    for read in &noted.reads {
        judge_steps(read, &mut findings);
        judge_contents(read, &written, &mut findings);
        if !std::ptr::eq(read, last) {
            judge_permanence(read, &at_the_end, &mut findings);
        }
    }
    let end = last.records.last().map_or(0, |record| record.offset + 1);
    for latest in &noted.latest {
        judge_latest(latest, end, &mut findings);
    }
    let places = judge_order(last, &mut findings);
    judge_acknowledged(&noted.attempts, &places, &mut findings);
    findings
}

/// What was tried, whatever became of it.
fn written(attempts: &[Attempt]) -> HashMap<RecordId, u32> {
    let records = attempts.iter().flat_map(|attempt| {
        let ids = (attempt.first.number..).map(|number| RecordId { number, ..attempt.first });
        ids.zip(attempt.digests.iter().copied())
    });
    records.collect()
}

/// One reader's offsets follow each other.
fn judge_steps(read: &Read, findings: &mut Vec<Finding>) {
    for (before, next) in read.records.iter().zip(read.records.iter().skip(1)) {
        if next.offset != before.offset + 1 {
            let (before, offset) = (before.offset, next.offset);
            findings.push(Finding::Gap { reader: read.reader.clone(), before, offset });
        }
    }
}

/// What is read was written so.
fn judge_contents(read: &Read, written: &HashMap<RecordId, u32>, findings: &mut Vec<Finding>) {
    for record in &read.records {
        let (reader, record) = (read.reader.clone(), *record);
        match written.get(&record.id) {
            None => findings.push(Finding::Invented { reader, read: record }),
            Some(digest) if *digest != record.digest => {
                findings.push(Finding::Changed { reader, read: record });
            }
            Some(_) => {}
        }
    }
}

/// What was read once stays.
fn judge_permanence(read: &Read, at_the_end: &BTreeMap<i64, ReadRecord>, findings: &mut Vec<Finding>) {
    for record in &read.records {
        let now = at_the_end.get(&record.offset).copied();
        if now != Some(*record) {
            findings.push(Finding::TakenBack { reader: read.reader.clone(), read: *record, now });
        }
    }
}

/// The latest offset that one is told never falls, and all below it is there to be read at the end.
fn judge_latest(latest: &Latest, end: i64, findings: &mut Vec<Finding>) {
    let mut highest = 0;
    for now in latest.offsets.iter().copied().chain([end]) {
        if now < highest {
            let (asker, before) = (latest.asker.clone(), highest);
            findings.push(Finding::Fallen { asker, before, now });
        }
        highest = highest.max(now);
    }
}

/// The records of each producer stand once each, in order and without gaps. Returns where each stands first.
fn judge_order(last: &Read, findings: &mut Vec<Finding>) -> HashMap<RecordId, i64> {
    let mut places = HashMap::with_capacity(last.records.len());
    let mut newest: HashMap<u32, RecordId> = HashMap::new();
    for ReadRecord { offset, id, .. } in last.records.iter().copied() {
        if let Some(first) = places.get(&id).copied() {
            findings.push(Finding::Duplicated { id, first, again: offset });
            continue;
        }
        places.insert(id, offset);
        let newest = newest.entry(id.producer).or_insert(id);
        if id < *newest {
            findings.push(Finding::Reordered { id, behind: *newest, offset });
        }
        *newest = id.max(*newest);
    }
    for later in newest.into_values() {
        let missing = (0..later.number).map(|number| RecordId { number, ..later });
        let missing = missing.filter(|id| !places.contains_key(id));
        findings.extend(missing.map(|id| Finding::Skipped { id, later }));
    }
    places
}

/// What was acknowledged is there, where it was said to be.
fn judge_acknowledged(attempts: &[Attempt], places: &HashMap<RecordId, i64>, findings: &mut Vec<Finding>) {
    for attempt in attempts {
        let Outcome::Acknowledged(base_offset) = attempt.outcome else { continue };
        for (delta, _) in (0..).zip(&attempt.digests) {
            let number = attempt.first.number.saturating_add_signed(delta);
            let id = RecordId { number, ..attempt.first };
            let offset = base_offset.map(|base| base + delta);
            match (places.get(&id).copied(), offset) {
                (None, offset) => findings.push(Finding::Lost { id, offset }),
                (Some(found), Some(acknowledged)) if found != acknowledged => {
                    findings.push(Finding::Moved { id, acknowledged, found });
                }
                (Some(_), _) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::Partition;
    use super::super::payload::{digest, payload};
    use super::*;

    fn id(producer: u32, number: u64) -> RecordId {
        RecordId { producer, number }
    }

    fn attempt(first: RecordId, count: u64, outcome: Outcome) -> Attempt {
        let ids = (first.number..first.number + count).map(|number| RecordId { number, ..first });
        Attempt { first, digests: ids.map(|id| digest(&payload(id, 20))).collect(), outcome }
    }

    fn read(reader: &str, from: i64, ids: &[RecordId], is_final: bool) -> Read {
        let records = (from..).zip(ids).map(|(offset, id)| ReadRecord {
            offset,
            id: *id,
            digest: digest(&payload(*id, 20)),
        });
        Read { reader: reader.to_owned(), records: records.collect(), is_final }
    }

    /// Two producers that wrote four and two records; the last two of the first were not acknowledged.
    fn sound() -> PartitionHistory {
        let attempts = vec![
            attempt(id(1, 0), 2, Outcome::Acknowledged(Some(0))),
            attempt(id(2, 0), 1, Outcome::Acknowledged(Some(2))),
            attempt(id(2, 1), 1, Outcome::Acknowledged(None)),
            attempt(id(1, 2), 2, Outcome::Unknown),
        ];
        let ids = [id(1, 0), id(1, 1), id(2, 0), id(2, 1), id(1, 2), id(1, 3)];
        let reads = vec![read("early", 1, &ids[1..3], false), read("last", 0, &ids, true)];
        let latest = vec![Latest { asker: "who asks".into(), offsets: vec![0, 3, 3, 6] }];
        PartitionHistory { attempts, reads, latest }
    }

    fn judged(noted: PartitionHistory) -> Vec<Finding> {
        let history = History { partitions: [(Partition::new("t", 0), noted)].into() };
        judge(&history).0.into_iter().map(|(_, finding)| finding).collect()
    }

    fn with_last(change: impl FnOnce(&mut Vec<ReadRecord>)) -> Vec<Finding> {
        let mut noted = sound();
        noted.reads.remove(0);
        noted.latest.clear();
        change(&mut noted.reads[0].records);
        judged(noted)
    }

    /// Gives the records the offsets 0, 1, …
    fn renumber(records: &mut [ReadRecord]) {
        for (offset, record) in (0..).zip(records) {
            record.offset = offset;
        }
    }

    #[test]
    fn a_sound_history_has_no_findings() {
        assert_eq!(judged(sound()), []);
        let without_unacknowledged = with_last(|records| records.truncate(4));
        assert_eq!(without_unacknowledged, [], "what was not acknowledged may be missing");
    }

    #[test]
    fn a_lost_record_is_found() {
        let found = with_last(|records| records.truncate(3));
        assert_eq!(found, [Finding::Lost { id: id(2, 1), offset: None }]);
        let found = with_last(|records| records.truncate(2));
        assert_eq!(found[0], Finding::Lost { id: id(2, 0), offset: Some(2) });
        let found = with_last(Vec::clear);
        assert_eq!(found.iter().filter(|finding| matches!(finding, Finding::Lost { .. })).count(), 4);
    }

    #[test]
    fn a_record_that_stands_twice_is_found() {
        let found = with_last(|records| {
            let again = ReadRecord { offset: 6, ..records[1] };
            records.push(again);
        });
        assert_eq!(found, [Finding::Duplicated { id: id(1, 1), first: 1, again: 6 }]);
    }

    #[test]
    fn another_order_is_found() {
        let found = with_last(|records| {
            records.swap(4, 5);
            renumber(records);
        });
        assert_eq!(found, [Finding::Reordered { id: id(1, 2), behind: id(1, 3), offset: 5 }]);
    }

    #[test]
    fn an_acknowledged_record_at_another_offset_is_found() {
        let found = with_last(|records| {
            records.swap(1, 2);
            renumber(records);
        });
        assert_eq!(
            found,
            [
                Finding::Moved { id: id(1, 1), acknowledged: 1, found: 2 },
                Finding::Moved { id: id(2, 0), acknowledged: 2, found: 1 }
            ]
        );
    }

    #[test]
    fn a_gap_in_a_producers_records_is_found() {
        let found = with_last(|records| {
            records.remove(4);
            records[4].offset = 4;
        });
        assert_eq!(found, [Finding::Skipped { id: id(1, 2), later: id(1, 3) }]);
    }

    #[test]
    fn a_changed_byte_is_found() {
        let found = with_last(|records| records[3].digest ^= 1);
        assert!(matches!(&found[..], [Finding::Changed { read, .. }] if read.id == id(2, 1)), "{found:?}");
    }

    #[test]
    fn a_record_that_nobody_wrote_is_found() {
        let found = with_last(|records| {
            records.push(ReadRecord { offset: 6, id: id(3, 0), digest: 0 });
        });
        assert!(matches!(&found[..], [Finding::Invented { read, .. }] if read.offset == 6), "{found:?}");
    }

    #[test]
    fn what_was_read_and_is_gone_or_another_is_found() {
        let mut noted = sound();
        noted.reads.insert(0, read("eager", 4, &[id(1, 2), id(1, 3)], false));
        noted.reads.last_mut().unwrap().records.truncate(5);
        noted.latest.clear();
        let found = judged(noted);
        let expected = ReadRecord { offset: 5, id: id(1, 3), digest: digest(&payload(id(1, 3), 20)) };
        assert_eq!(found, [Finding::TakenBack { reader: "eager".into(), read: expected, now: None }]);

        let mut noted = sound();
        noted.reads[0].records[0].id = id(1, 0);
        assert!(matches!(
            &judged(noted)[..],
            [Finding::Changed { .. }, Finding::TakenBack { now: Some(_), .. }]
        ));
    }

    #[test]
    fn a_reader_that_is_given_a_gap_or_a_step_back_is_found() {
        let mut noted = sound();
        noted.reads.insert(0, read("jumps", 0, &[id(1, 0)], false));
        noted.reads[0].records.push(sound().reads[1].records[2]);
        noted.reads[0].records.push(sound().reads[1].records[1]);
        let gap = |before, offset| Finding::Gap { reader: "jumps".into(), before, offset };
        assert_eq!(judged(noted), [gap(0, 2), gap(2, 1)]);
    }

    #[test]
    fn a_latest_offset_that_falls_is_found() {
        let fallen = |before, now| Finding::Fallen { asker: "who asks".into(), before, now };
        let mut noted = sound();
        noted.latest[0].offsets = vec![2, 5, 4, 5, 3];
        assert_eq!(judged(noted), [fallen(5, 4), fallen(5, 3)]);
        let mut noted = sound();
        noted.latest[0].offsets = vec![2, 7];
        assert_eq!(judged(noted), [fallen(7, 6)], "more was told than there is");
    }

    #[test]
    fn a_partition_that_nobody_read_at_the_end_is_not_judged_sound() {
        let mut noted = sound();
        noted.reads[1].is_final = false;
        assert_eq!(judged(noted), [Finding::Unread]);
    }

    #[test]
    fn findings_are_told_in_lines_that_name_the_place() {
        let mut noted = sound();
        noted.reads[1].records.truncate(3);
        noted.latest.clear();
        let history = History { partitions: [(Partition::new("t", 5), noted)].into() };
        let error = judge(&history).into_result().unwrap_err().to_string();
        assert_eq!(error, "1 findings\nt-5: lost: record 1 of producer 2, acknowledged\n");
        assert_eq!(history.acknowledged(), 4);
        assert!(judge(&History::default()).into_result().is_ok());
    }
}

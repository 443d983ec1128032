//! ListOffsets, OffsetForLeaderEpoch, DeleteRecords.

use anyhow::Result;
use wire::Str;
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use wire::messages::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use wire::messages::{DeleteRecordsRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest};

use super::all;
use crate::lab::Lab;
use crate::requests::{THEN, fetch, list_offsets};

pub fn run(lab: &mut Lab) -> Result<()> {
    by_time(lab)?;
    places(lab)?;
    by_epoch(lab)?;
    deletion(lab)?;
    by_time(lab)?;
    by_epoch(lab)?;
    lab.ask("below the start", all::<wire::messages::FetchRequest>(), |side, v| fetch(side, v, "read", 0, 1))
}

fn by_time(lab: &mut Lab) -> Result<()> {
    let times =
        [-1, -2, -3, -4, -5, -6, -7, i64::MIN, 0, THEN - 1, THEN, THEN + 1, THEN + 4_500, THEN + 5_000];
    for time in times.into_iter().chain([THEN + 5_001, i64::MAX]) {
        for topic in ["read", "zipped", "stamped", "empty"] {
            // Which record of many has the latest time of an append is chance.
            if (time, topic) == (-3, "stamped") {
                continue;
            }
            lab.ask(&format!("time {time} of {topic}"), all::<ListOffsetsRequest>(), |_, _| {
                list_offsets(topic, i32::from(topic == "empty"), &[time])
            })?;
        }
    }
    for count in [0, 1, 2, 100, -1] {
        for time in [-1, -2, THEN, i64::MAX] {
            lab.ask(&format!("{count} offsets at {time}"), 0..=0, |_, _| {
                let mut request = list_offsets("read", 0, &[time]);
                request.topics[0].partitions[0].max_num_offsets = count;
                request
            })?;
        }
    }
    Ok(())
}

fn places(lab: &mut Lab) -> Result<()> {
    let versions = all::<ListOffsetsRequest>();
    lab.ask("unknown topic", versions.clone(), |_, _| list_offsets("nobody", 0, &[-1]))?;
    lab.ask("illegal topic", versions.clone(), |_, _| list_offsets("a b", 0, &[-1]))?;
    lab.ask("unknown partition", versions.clone(), |_, _| list_offsets("read", 9, &[-1]))?;
    lab.ask("negative partition", versions.clone(), |_, _| list_offsets("read", -1, &[-1]))?;
    lab.ask("no topics", versions.clone(), |_, _| ListOffsetsRequest {
        replica_id: -1,
        ..Default::default()
    })?;
    lab.ask("a partition twice", versions.clone(), |_, _| list_offsets("read", 0, &[-1, -2]))?;
    for replica in [-2, 0, 1, -7] {
        lab.ask(&format!("as replica {replica}"), versions.clone(), |_, _| ListOffsetsRequest {
            replica_id: replica,
            ..list_offsets("read", 0, &[-1])
        })?;
    }
    for level in [1, 2, -1] {
        lab.ask(&format!("isolation {level}"), 2..=9, |_, _| ListOffsetsRequest {
            isolation_level: level,
            ..list_offsets("read", 0, &[-1])
        })?;
    }
    for epoch in [0, 1, -2, 100] {
        for time in [-1, -2, -3, THEN] {
            let first = if time == -3 { 7 } else { 4 };
            lab.ask(&format!("epoch {epoch} at {time}"), first..=9, |_, _| {
                let mut request = list_offsets("read", 0, &[time]);
                request.topics[0].partitions[0].current_leader_epoch = epoch;
                request
            })?;
        }
    }
    Ok(())
}

fn by_epoch(lab: &mut Lab) -> Result<()> {
    let ask = |topic: &str, partition: i32, current: i32, leader_epoch: i32| OffsetForLeaderEpochRequest {
        replica_id: -1,
        topics: vec![OffsetForLeaderTopic {
            topic: Str::from(topic),
            partitions: vec![OffsetForLeaderPartition {
                partition,
                current_leader_epoch: current,
                leader_epoch,
            }],
        }],
    };
    let versions = all::<OffsetForLeaderEpochRequest>();
    for (topic, partition) in [("read", 0), ("read", 1), ("read", 7), ("read", -1), ("nobody", 0), ("a b", 0)]
    {
        for epoch in [0, 1, -1, -2, 50] {
            let case = format!("end of epoch {epoch} in {topic}-{partition}");
            lab.ask(&case, versions.clone(), |_, _| ask(topic, partition, -1, epoch))?;
        }
    }
    for current in [0, 1, -2] {
        lab.ask(&format!("current epoch {current}"), 2..=4, |_, _| ask("read", 0, current, 0))?;
    }
    for replica in [-2, 0, 1] {
        lab.ask(&format!("epochs as replica {replica}"), 3..=4, |_, _| OffsetForLeaderEpochRequest {
            replica_id: replica,
            ..ask("read", 0, -1, 0)
        })?;
    }
    lab.ask("no topics", versions, |_, _| OffsetForLeaderEpochRequest::default())
}

fn deletion(lab: &mut Lab) -> Result<()> {
    let delete = |topic: &str, partitions: &[(i32, i64)]| DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic {
            name: Str::from(topic),
            partitions: partitions
                .iter()
                .map(|(partition_index, offset)| DeleteRecordsPartition {
                    partition_index: *partition_index,
                    offset: *offset,
                })
                .collect(),
        }],
        timeout_ms: 30_000,
    };
    let versions = all::<DeleteRecordsRequest>();
    for (case, topic, partition, offset) in [
        ("to 0", "read", 0, 0),
        ("to 2", "read", 0, 2),
        ("back to 1", "read", 0, 1),
        ("to 7", "read", 0, 7),
        ("beyond the end", "read", 0, 19),
        ("far beyond", "read", 0, i64::MAX),
        ("to -2", "read", 0, -2),
        ("of an empty partition", "read", 1, -1),
        ("of an unknown partition", "read", 9, 0),
        ("of an unknown topic", "nobody", 0, 0),
        ("of an illegal topic", "a b", 0, 0),
        ("of a compacted topic", "keyed", 0, 1),
        ("to the end", "three", 2, -1),
    ] {
        lab.ask(&format!("delete {case}"), versions.clone(), |_, _| delete(topic, &[(partition, offset)]))?;
    }
    lab.ask("delete in several partitions", versions.clone(), |_, _| {
        delete("three", &[(0, 1), (1, -1), (8, 0)])
    })?;
    lab.ask("delete a partition twice", versions.clone(), |_, _| delete("three", &[(0, 1), (0, 2)]))?;
    lab.ask("delete nothing", versions.clone(), |_, _| delete("three", &[]))?;
    lab.ask("delete with no patience", versions, |_, _| DeleteRecordsRequest {
        timeout_ms: 0,
        ..delete("three", &[(1, 2)])
    })?;
    lab.ask("what is left", 4..=17, |side, v| fetch(side, v, "three", 1, 0))
}

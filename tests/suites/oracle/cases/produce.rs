//! Produce: what is taken, in which place a refusal stands, and what was stored.

use anyhow::Result;
use bytes::{Bytes, BytesMut};
use interop::batch::{Draft, seal};
use wire::batch::{BatchBuilder, Compression};
use wire::messages::ProduceRequest;
use wire::types::Millis;

use super::all;
use crate::lab::Lab;
use crate::requests::{THEN, fetch, produce, produce_many};

pub fn run(lab: &mut Lab) -> Result<()> {
    taken(lab)?;
    refused_places(lab)?;
    refused_batches(lab)?;
    codecs(lab)?;
    timestamps(lab)?;
    acks(lab)?;
    stored(lab)
}

pub fn batch(values: &[&[u8]]) -> Bytes {
    Draft::of_values(THEN, values).build()
}

fn taken(lab: &mut Lab) -> Result<()> {
    let ask = |lab: &mut Lab, case: &str, topic: &str, records: Bytes| {
        lab.ask(case, all::<ProduceRequest>(), |_, _| produce(topic, 0, 1, Some(records.clone())))
    };
    ask(lab, "one record", "one", batch(&[b"a"]))?;
    ask(lab, "three records", "one", batch(&[b"a", b"", &[7; 100]]))?;
    ask(lab, "with the time of the append", "stamped", batch(&[b"a"]))?;
    let mut keyed = Draft::of_values(THEN, &[b"a", b"b"]);
    for (key, _) in &mut keyed.records {
        *key = Some(Bytes::from_static(b"k"));
    }
    keyed.records[1].1 = None;
    ask(lab, "keys and a tombstone", "keyed", keyed.build())?;
    ask(lab, "no key in a compacted topic", "keyed", batch(&[b"a"]))?;
    let several = produce_many(
        -1,
        vec![
            ("three", (0..3).map(|p| (p, Some(batch(&[b"x"])))).collect()),
            ("one", vec![(0, Some(batch(&[b"y"])))]),
        ],
    );
    lab.ask("several partitions", all::<ProduceRequest>(), |_, _| several.clone())
}

fn refused_places(lab: &mut Lab) -> Result<()> {
    let ask = |lab: &mut Lab, case: &str, topic: &str, partition: i32| {
        let request = produce(topic, partition, 1, Some(batch(&[b"a"])));
        lab.ask(case, all::<ProduceRequest>(), |_, _| request.clone())
    };
    ask(lab, "unknown topic", "nobody", 0)?;
    ask(lab, "illegal topic", "a b", 0)?;
    ask(lab, "no topic name", "", 0)?;
    ask(lab, "unknown partition", "one", 1)?;
    ask(lab, "negative partition", "one", -1)?;
    let mixed = produce_many(
        1,
        vec![
            ("one", vec![(0, Some(batch(&[b"good"]))), (5, Some(batch(&[b"bad"])))]),
            ("nobody", vec![(0, Some(batch(&[b"bad"])))]),
        ],
    );
    lab.ask("good and bad partitions", all::<ProduceRequest>(), |_, _| mixed.clone())?;
    let twice = produce_many(1, vec![("odd", vec![(0, Some(batch(&[b"1"]))), (0, Some(batch(&[b"2"])))])]);
    lab.ask("a partition twice", all::<ProduceRequest>(), |_, _| twice.clone())?;
    let topic_twice = produce_many(
        1,
        vec![("odd", vec![(0, Some(batch(&[b"1"])))]), ("odd", vec![(0, Some(batch(&[b"2"])))])],
    );
    lab.ask("a topic twice", all::<ProduceRequest>(), |_, _| topic_twice.clone())?;
    lab.ask("no topics", all::<ProduceRequest>(), |_, _| produce_many(1, Vec::new()))?;
    lab.ask("no partitions", all::<ProduceRequest>(), |_, _| produce_many(1, vec![("one", Vec::new())]))
}

fn changed(change: impl Fn(&mut Draft)) -> Bytes {
    let mut draft = Draft::of_values(THEN, &[b"first", b"second"]);
    change(&mut draft);
    draft.build()
}

fn refused_batches(lab: &mut Lab) -> Result<()> {
    let good = batch(&[b"first", b"second"]);
    let mut wrong_crc = BytesMut::from(&good[..]);
    wrong_crc[70] ^= 1;
    let set = |at: usize, bytes: &[u8], sealed: bool| {
        let mut it = BytesMut::from(&good[..]);
        it[at..at + bytes.len()].copy_from_slice(bytes);
        if sealed {
            seal(&mut it);
        }
        it.freeze()
    };
    let body = Draft::of_values(THEN, &[b"first", b"second"]).encode_records();
    let broken: Vec<(&str, Bytes)> = vec![
        ("wrong checksum", wrong_crc.freeze()),
        ("two batches", [&good[..], &good[..]].concat().into()),
        ("a batch and a half", [&good[..], &good[..40]].concat().into()),
        ("half a batch", good.slice(..40)),
        ("a header only", good.slice(..61)),
        ("a few bytes", good.slice(..10)),
        ("all but the last byte", good.slice(..good.len() - 1)),
        ("bytes behind the batch", [&good[..], &[0; 5]].concat().into()),
        ("zeros", vec![0; 80].into()),
        ("magic 3", set(16, &[3], true)),
        ("magic -1", set(16, &[0xff], true)),
        ("batch length 0", set(8, &[0; 4], true)),
        ("batch length 48", set(8, &48_i32.to_be_bytes(), true)),
        ("negative batch length", set(8, &(-1_i32).to_be_bytes(), true)),
        ("huge batch length", set(8, &i32::MAX.to_be_bytes(), true)),
        ("base offset 5", set(0, &5_i64.to_be_bytes(), true)),
        ("base offset -1", set(0, &(-1_i64).to_be_bytes(), true)),
        ("leader epoch 9", set(12, &9_i32.to_be_bytes(), true)),
        ("control", changed(|d| d.attributes = 0x20)),
        ("transactional without a producer", changed(|d| d.attributes = 0x10)),
        ("unknown codec 5", changed(|d| d.attributes = 5)),
        ("unknown codec 7", changed(|d| d.attributes = 7)),
        ("gzip that is none", changed(|d| d.attributes = 1)),
        ("snappy that is none", changed(|d| d.attributes = 2)),
        ("lz4 that is none", changed(|d| d.attributes = 3)),
        ("zstd that is none", changed(|d| d.attributes = 4)),
        ("unused attributes", changed(|d| d.attributes = 0x4000)),
        ("a delete horizon", changed(|d| d.attributes = 0x40)),
        ("time of append from a producer", changed(|d| d.attributes = 8)),
        ("count too small", changed(|d| d.count = Some(1))),
        ("count too large", changed(|d| d.count = Some(3))),
        ("count 0", changed(|d| d.count = Some(0))),
        ("count -1", changed(|d| d.count = Some(-1))),
        ("count huge", changed(|d| d.count = Some(i32::MAX))),
        ("last offset delta too small", changed(|d| d.last_offset_delta = Some(0))),
        ("last offset delta too large", changed(|d| d.last_offset_delta = Some(5))),
        ("last offset delta -1", changed(|d| d.last_offset_delta = Some(-1))),
        ("no records at all", changed(|d| d.records.clear())),
        (
            "no records, last offset delta 0",
            changed(|d| {
                d.records.clear();
                d.last_offset_delta = Some(0);
            }),
        ),
        ("records cut off", changed(|d| d.body = Some(body.slice(..body.len() - 2)))),
        ("bytes behind the records", changed(|d| d.body = Some([&body[..], &[0; 3]].concat().into()))),
        ("producer id without epoch", changed(|d| d.producer_id = 5)),
        ("producer id without sequence", changed(|d| (d.producer_id, d.producer_epoch) = (5, 0))),
        ("max timestamp too small", changed(|d| d.max_timestamp = Some(THEN - 5))),
        ("max timestamp too large", changed(|d| d.max_timestamp = Some(THEN + 5))),
        ("no timestamps", changed(|d| d.base_timestamp = -1)),
    ];
    for (case, records) in &broken {
        for topic in ["one", "zipped", "stamped"] {
            lab.ask(&format!("{case} to {topic}"), all::<ProduceRequest>(), |_, _| {
                produce(topic, 0, 1, Some(records.clone()))
            })?;
        }
    }
    for topic in ["one", "odd-zipped"] {
        lab.ask(&format!("timestamps -5 to {topic}"), all::<ProduceRequest>(), |_, _| {
            produce(topic, 0, 1, Some(changed(|d| d.base_timestamp = -5)))
        })?;
    }
    lab.silent_kafka(|lab| lab.once("null records", 9, |_| produce("one", 0, 1, None)).map(drop))?;
    lab.ask("empty records", all::<ProduceRequest>(), |_, _| produce("one", 0, 1, Some(Bytes::new())))?;
    lab.ask("larger than the topic takes", all::<ProduceRequest>(), |_, _| {
        produce("small", 0, 1, Some(batch(&[&[1; 400]])))
    })?;
    lab.ask("a record with an offset of its own", all::<ProduceRequest>(), |_, _| {
        let mut wrong = BytesMut::from(&body[..]);
        // The offset delta of the first record.
        wrong[3] = 2;
        produce("odd", 1, 1, Some(changed(|d| d.body = Some(wrong.clone().freeze()))))
    })
}

fn codecs(lab: &mut Lab) -> Result<()> {
    let codecs = [
        ("none", Compression::None),
        ("gzip", Compression::Gzip { level: 6 }),
        ("snappy", Compression::Snappy),
        ("lz4", Compression::Lz4 { level: 9 }),
        ("zstd", Compression::Zstd { level: 3 }),
    ];
    for (name, codec) in codecs {
        let mut builder = BatchBuilder::new(codec);
        for value in [&[1_u8; 500][..], b"two", &[3; 50]] {
            builder.append(Millis(THEN), Some(b"key"), Some(value));
        }
        let records = builder.build()?.bytes;
        for topic in ["one", "zipped", "plain", "stamped"] {
            lab.ask(&format!("{name} to {topic}"), all::<ProduceRequest>(), |_, _| {
                produce(topic, 0, 1, Some(records.clone()))
            })?;
        }
        lab.ask(&format!("{name} to small"), 3..=11, |_, _| produce("small", 0, 1, Some(records.clone())))?;
    }
    Ok(())
}

fn timestamps(lab: &mut Lab) -> Result<()> {
    let future = interop::batch::now_ms() + 3 * 24 * 3_600_000;
    for (case, timestamp) in
        [("old", THEN), ("in the future", future), ("none", -1), ("0", 0), ("largest", i64::MAX)]
    {
        for topic in ["one", "fresh", "stamped"] {
            let records = Draft::of_values(timestamp, &[b"a", b"b"]).build();
            lab.ask(&format!("timestamp {case} to {topic}"), 3..=11, |_, _| {
                produce(topic, 0, 1, Some(records.clone()))
            })?;
        }
    }
    Ok(())
}

fn acks(lab: &mut Lab) -> Result<()> {
    for acks in [-1, 1, 5, -2, 2] {
        for topic in ["one", "two-replicas", "nobody"] {
            lab.ask(&format!("acks {acks} to {topic}"), all::<ProduceRequest>(), |_, _| {
                produce(topic, 0, acks, Some(batch(&[b"a"])))
            })?;
        }
    }
    for version in all::<ProduceRequest>() {
        for topic in ["one", "nobody", "two-replicas"] {
            lab.unanswered(&format!("acks 0 to {topic}"), version, |_| {
                produce(topic, 0, 0, Some(batch(&[b"a"])))
            })?;
        }
        lab.unanswered("acks 0 with a wrong count", version, |_| {
            produce("one", 0, 0, Some(changed(|d| d.count = Some(9))))
        })?;
        lab.unanswered("acks 0 without topics", version, |_| produce_many(0, Vec::new()))?;
    }
    lab.ask("a transactional id", 3..=11, |_, _| ProduceRequest {
        transactional_id: Some("mine".into()),
        ..produce("one", 0, -1, Some(batch(&[b"a"])))
    })
}

fn stored(lab: &mut Lab) -> Result<()> {
    for topic in ["one", "three", "zipped", "plain", "small", "fresh", "keyed", "two-replicas"] {
        lab.ask(&format!("what {topic} holds"), 4..=17, |side, v| fetch(side, v, topic, 0, 0))?;
    }
    Ok(())
}

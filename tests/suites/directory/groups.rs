//! Groups and their offsets: what one broker has written to `__consumer_offsets`, and compacted, the other serves, and
//! compacts on. Members stay members, consumers go on where they were, and what was deleted stays deleted.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use interop::broker::{Broker, Kind};
use interop::calls;
use interop::clients::Client;
use interop::groups::{self, Member, Told};
use interop::process::Process;
use interop::raw::Connection;
use interop::wait;

use super::{End, LIMIT, PARTITIONS, TOPIC, carry, transacted};

pub(crate) const OFFSETS: &str = "__consumer_offsets";
/// As many as SETTINGS says.
const OFFSETS_PARTITIONS: usize = 3;
/// Commits of each simple group in each life of the directory.
const ROUNDS: i64 = 200;
/// Records for the consumers, in each life.
const COUNT: usize = 100;
/// Of so many groups whose ids differ by one in the last letter, each partition of the topic keeps one.
const SIMPLE: [&str; OFFSETS_PARTITIONS] = ["simple-0", "simple-1", "simple-2"];
const DELETED: [&str; OFFSETS_PARTITIONS] = ["deleted-0", "deleted-1", "deleted-2"];
/// What they commit in the first life stays, however often it is compacted.
const ONCE: [&str; OFFSETS_PARTITIONS] = ["once-0", "once-1", "once-2"];
/// Consumers of a real client.
const READERS: &str = "readers";
/// A group with a static member that stays, while brokers go.
const STATIC: &str = "static";
/// Offsets that say how long they are to be kept.
const KEPT: &str = "kept";
const DAY_MS: i64 = 86_400_000;
/// Offsets that are committed in transactions.
const TRANSACTED: &str = "transacted";

/// What outlives a broker, beside the directory.
struct Lives<'a> {
    data: &'a Path,
    folder: &'a Path,
    member: Member,
    /// How many there have been.
    count: i64,
}

fn told(broker: &Broker) -> Result<Told> {
    let names = [&SIMPLE[..], &DELETED, &ONCE, &[READERS, STATIC, KEPT, TRANSACTED]].concat();
    Told::of(&broker.bootstrap(), &names)
}

/// The offset of each partition of a group; 0 where there is none.
fn committed(bootstrap: &str, group: &str) -> Result<Vec<i64>> {
    let told = Told::of(bootstrap, &[group])?;
    let offset =
        |partition| told.offset(group, TOPIC, partition).map(|it| it.map_or(0, |(offset, _)| offset));
    (0..i32::try_from(PARTITIONS)?).map(offset).collect()
}

fn ends(bootstrap: &str, topic: &str, partitions: usize) -> Result<Vec<i64>> {
    (0..partitions).map(|partition| calls::end_offset(bootstrap, topic, partition)).collect()
}

/// Partition and offset of each record that a consumer has printed.
fn reads(log: &Path) -> Result<Vec<(usize, i64)>> {
    let text = std::fs::read_to_string(log)?;
    let places = text.lines().filter_map(|line| line.strip_prefix("read\t")?.split_once('\t'));
    places.map(|(partition, offset)| Ok((partition.parse()?, offset.parse()?))).collect()
}

impl Lives<'_> {
    /// A consumer of a real client reads what is new since the last one has ended, once.
    fn read_on(&self, broker: &Broker) -> Result<()> {
        let bootstrap = broker.bootstrap();
        let before = committed(&bootstrap, READERS)?;
        ensure!(before == ends(&bootstrap, TOPIC, PARTITIONS)?, "the consumers before had read all");
        Client::Kcat.produce(&bootstrap, TOPIC, "none", COUNT)?;
        let ends = ends(&bootstrap, TOPIC, PARTITIONS)?;
        let log = self.folder.join(format!("reader-{}.log", self.count));
        let reader =
            Process::spawn("reader", &mut Client::Kcat.member(&bootstrap, TOPIC, READERS, None)?, &log)?;
        wait::until("all that is new to be committed", LIMIT, || {
            Ok((committed(&bootstrap, READERS)? == ends).then_some(()))
        })?;
        reader.terminate(LIMIT)?;
        let mut read = reads(&log)?;
        read.sort_unstable();
        let new = before.iter().zip(&ends).map(|(before, end)| *before..*end).enumerate();
        let new: Vec<_> = new.flat_map(|(at, offsets)| offsets.map(move |it| (at, it))).collect();
        ensure!(read == new, "read {read:?}\nnew {new:?}");
        Ok(())
    }

    /// The member that was there before is known, goes on to the next generation, and commits in it.
    fn stay_a_member(&mut self, connection: &mut Connection) -> Result<()> {
        let generation = self.member.generation.max(0);
        if generation > 0 {
            self.member.heartbeat(connection)?;
            self.member.commit(connection, TOPIC, &[(1, 10_000 + self.count)])?;
        }
        for turn in 0..3 {
            let subscription = format!("to what there is in {} and {turn}", self.count);
            self.member.join(connection, &subscription, &format!("all of {}", self.count))?;
        }
        ensure!(self.member.generation == generation + 3, "{:?} after {generation}", self.member);
        self.member.commit(connection, TOPIC, &[(0, 10_000 + self.count)])
    }

    /// Commits of consumers that are no members, again and again, and offsets and groups that are deleted.
    fn commit(&self, connection: &mut Connection) -> Result<()> {
        for group in ONCE.iter().filter(|_| self.count == 0) {
            groups::commit(connection, 8, &groups::commit_request(group, TOPIC, &[(1, 41)], "once"))?;
        }
        for round in 0..ROUNDS {
            for group in SIMPLE {
                let offset = self.count * ROUNDS + round;
                let metadata = format!("ü {offset} {}", "m".repeat(100));
                let request =
                    groups::commit_request(group, TOPIC, &[(0, offset), (1, offset + 1)], &metadata);
                groups::commit(connection, 8, &request)?;
            }
        }
        for group in SIMPLE {
            groups::delete_offset(connection, group, TOPIC, 1)?;
        }
        for group in DELETED {
            for offset in 0..20 {
                let request = groups::commit_request(group, TOPIC, &[(0, offset), (1, offset)], "");
                groups::commit(connection, 8, &request)?;
            }
            groups::delete_group(connection, group)?;
        }
        let mut kept = groups::commit_request(KEPT, TOPIC, &[(0, self.count), (1, 7)], "for a day");
        kept.retention_time_ms = DAY_MS;
        groups::commit(connection, 2, &kept)
    }

    /// Waits until the cleaner has passed all that was written so far. A cleaner leaves the last segment alone, so writing
    /// goes on.
    fn wait_until_compacted(&self, broker: &Broker, connection: &mut Connection) -> Result<()> {
        let bootstrap = broker.bootstrap();
        let ends = ends(&bootstrap, OFFSETS, OFFSETS_PARTITIONS)?;
        ensure!(ends.iter().all(|end| *end > ROUNDS), "all partitions are used: {ends:?}");
        let file = self.data.join("cleaner-offset-checkpoint");
        let mut round = 0;
        wait::until("the offsets to be compacted", LIMIT, || {
            for group in SIMPLE {
                let request = groups::commit_request(group, TOPIC, &[(0, 1_000_000 + round)], "behind");
                groups::commit(connection, 8, &request)?;
            }
            round += 1;
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let is_past = |(partition, end): (usize, &i64)| {
                let name = format!("{OFFSETS} {partition} ");
                let mut offsets =
                    text.lines().filter_map(|line| line.strip_prefix(&name)?.parse::<i64>().ok());
                offsets.next().is_some_and(|offset| offset >= *end)
            };
            Ok(ends.iter().enumerate().all(is_past).then_some(()))
        })?;
        for (partition, end) in ends.into_iter().enumerate() {
            let left = records_below(&bootstrap, partition, end)?;
            ensure!(left < 100, "{left} records of {end} are left in partition {partition}");
        }
        Ok(())
    }
}

/// How many records lie in batches that end below `end`.
fn records_below(bootstrap: &str, partition: usize, end: i64) -> Result<i32> {
    let mut count = 0;
    for batch in calls::fetch_all(bootstrap, OFFSETS, partition, 0)? {
        if calls::last_offset(&batch)? < end {
            let field = batch.get(57..61).context("a short batch")?;
            count += i32::from_be_bytes(field.try_into()?);
        }
    }
    Ok(count)
}

/// What a test of this kind would miss if it were not told.
fn is_rich(told: &Told, transactions: bool) -> Result<()> {
    let names: Vec<_> = told.listed.iter().map(|it| it.group_id.0.as_str()).collect();
    let last = transactions.then_some(TRANSACTED);
    let known = [&[KEPT], &ONCE[..], &[READERS], &SIMPLE, &[STATIC]].concat().into_iter().chain(last);
    ensure!(names.iter().copied().eq(known), "{names:?}");
    let wants = |group, partition, offset: Option<(i64, &str)>| {
        let found = told.offset(group, TOPIC, partition)?;
        let found = found.as_ref().map(|(offset, metadata)| (*offset, metadata.as_str()));
        ensure!(found == offset, "{found:?} of {group}, which committed {offset:?}");
        Ok(())
    };
    for (simple, once) in SIMPLE.into_iter().zip(ONCE) {
        ensure!(told.offset(simple, TOPIC, 0)?.is_some(), "nothing of {simple}");
        wants(simple, 1, None)?;
        wants(once, 1, Some((41, "once")))?;
    }
    wants(KEPT, 1, Some((7, "for a day")))?;
    wants(TRANSACTED, 0, transactions.then_some((transacted::LAST, "of a transaction")))?;
    let group = told.described.iter().find(|it| it.group_id.0.as_str() == STATIC).context("the group")?;
    ensure!(group.group_state.as_str() == "Stable" && group.members.len() == 1, "{group:?}");
    Ok(())
}

fn there_and_back(first: Kind, how: End) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    std::fs::create_dir(&data)?;
    let mut broker = carry::prepare(first, &data)?;
    broker.resume()?;
    calls::create_topic(&broker.bootstrap(), TOPIC, i32::try_from(PARTITIONS)?, &[])?;
    groups::find_coordinator(&mut Connection::open(&broker.bootstrap())?, STATIC)?;
    let member = Member::new(STATIC, "one");
    let mut lives = Lives { data: &data, folder: folder.path(), member, count: 0 };
    for _ in 0..2 {
        let mut connection = Connection::open(&broker.bootstrap())?;
        lives.read_on(&broker)?;
        lives.stay_a_member(&mut connection)?;
        lives.commit(&mut connection)?;
        if broker.kind() == Kind::Kafka {
            transacted::commit(&mut connection, TRANSACTED)?;
        }
        lives.wait_until_compacted(&broker, &mut connection)?;
        let before = told(&broker)?;
        is_rich(&before, first == Kind::Kafka || lives.count > 0)?;
        broker = carry::over(broker, &data, OFFSETS, how)?;
        before.same(&told(&broker)?)?;
        lives.count += 1;
    }
    lives.read_on(&broker)?;
    lives.stay_a_member(&mut Connection::open(&broker.bootstrap())?)?;
    carry::end(&mut broker, &data, OFFSETS, how)
}

#[test]
fn groups_and_offsets_that_blumfeld_has_compacted_go_to_kafka_and_back() -> Result<()> {
    there_and_back(Kind::Blumfeld, End::Clean)
}

#[test]
fn groups_and_offsets_that_kafka_has_compacted_go_to_blumfeld_and_back() -> Result<()> {
    there_and_back(Kind::Kafka, End::Killed)
}

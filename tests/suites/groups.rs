//! Groups of real clients: three members share a topic, one of them is killed, then the broker, and writing goes on.
//! Nothing is lost, and what was confirmed as committed is read by nobody again. With `BLUMFELD_TEST_TARGET=kafka` the
//! same runs against the real one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use interop::broker::{Broker, Kind, Options};
use interop::calls::{create_topic, end_offset};
use interop::clients::Client;
use interop::java::{Jars, tool};
use interop::process::Process;
use interop::raw::Connection;
use interop::{folders, wait};
use kafka_protocol::messages::{GroupId, OffsetFetchRequest};
use kafka_protocol::protocol::StrBytes;

const TOPIC: &str = "shared";
const GROUP: &str = "sharers";
const PARTITIONS: usize = 6;
/// Records that are written at a time.
const COUNT: usize = 300;
const LIMIT: Duration = Duration::from_secs(120);

/// Partition and offset.
type Place = (usize, i64);

/// What a member has printed of one thing that it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Read(Place),
    /// All that it had read of the partition below the offset.
    Committed(Place),
    /// What it has read since the last commit may be read again.
    Failed,
}

/// A member, running or not.
struct Member {
    process: Option<Process>,
    log: PathBuf,
}

impl Member {
    fn start(client: Client, bootstrap: &str, folder: &Path, name: &str) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let process = Process::spawn(name, &mut client.member(bootstrap, TOPIC, GROUP)?, &log)?;
        Ok(Self { process: Some(process), log })
    }

    fn steps(&self) -> Result<Vec<Step>> {
        let bytes = std::fs::read(&self.log)?;
        let text = String::from_utf8_lossy(&bytes);
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or_default());
        whole.lines().filter_map(|line| step(line).transpose()).collect()
    }

    fn reads(&self) -> Result<BTreeSet<Place>> {
        let read = |step| if let Step::Read(place) = step { Some(place) } else { None };
        Ok(self.steps()?.into_iter().filter_map(read).collect())
    }

    /// Whether it has ended by itself.
    fn has_ended(&mut self) -> Result<bool> {
        Ok(!self.process.as_mut().context("the member was started")?.is_running()?)
    }

    fn kill(&mut self) -> Result<()> {
        self.process.take().context("the member runs")?.kill()
    }

    fn end(&mut self) -> Result<()> {
        self.process.take().context("the member runs")?.terminate(LIMIT).map(drop)
    }
}

/// The step that a line tells of; clients print other things, too.
fn step(line: &str) -> Result<Option<Step>> {
    let fields: Vec<_> = line.split('\t').collect();
    let place = |partition: &str, offset: &str| -> Result<Place> {
        let what = || format!("no partition and offset: {line:?}");
        Ok((partition.parse().with_context(what)?, offset.parse().with_context(what)?))
    };
    Ok(match fields.as_slice() {
        ["read", partition, offset] => Some(Step::Read(place(partition, offset)?)),
        ["committed", partition, offset] => Some(Step::Committed(place(partition, offset)?)),
        ["failed", ..] => Some(Step::Failed),
        [partition, offset, ..] => {
            match (partition.strip_prefix("Partition:"), offset.strip_prefix("Offset:")) {
                (Some(partition), Some(offset)) => Some(Step::Read(place(partition, offset)?)),
                _ => None,
            }
        }
        _ => None,
    })
}

/// What a member has read and then committed.
///
/// # Errors
/// When it reads again what it has committed.
fn confirmed(steps: &[Step]) -> Result<BTreeSet<Place>> {
    let mut confirmed = BTreeSet::new();
    // What was read without a gap, by partition, and is not committed.
    let mut open: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
    for step in steps {
        match *step {
            Step::Read((partition, offset)) => {
                ensure!(
                    !confirmed.contains(&(partition, offset)),
                    "{partition}:{offset} is read again by its member"
                );
                let run = open.entry(partition).or_default();
                if run.last().is_some_and(|last| *last != offset - 1) {
                    run.clear();
                }
                run.push(offset);
            }
            Step::Committed((partition, end)) => {
                let run = open.remove(&partition).unwrap_or_default();
                confirmed
                    .extend(run.into_iter().filter(|offset| *offset < end).map(|offset| (partition, offset)));
            }
            Step::Failed => open.clear(),
        }
    }
    Ok(confirmed)
}

/// Wants no record to be read and committed by two members.
///
/// # Errors
/// When one is, or when a member reads again what it has committed.
fn judge(members: &[Vec<Step>]) -> Result<()> {
    let mut by: BTreeMap<Place, usize> = BTreeMap::new();
    for (at, steps) in members.iter().enumerate() {
        for place in confirmed(steps)? {
            if let Some(other) = by.insert(place, at) {
                bail!("{place:?} is read and committed by members {other} and {at}");
            }
        }
    }
    Ok(())
}

fn ends(bootstrap: &str) -> Result<Vec<i64>> {
    (0..PARTITIONS).map(|partition| end_offset(bootstrap, TOPIC, partition)).collect()
}

fn committed(bootstrap: &str) -> Result<Vec<i64>> {
    let request = OffsetFetchRequest::default()
        .with_group_id(GroupId(StrBytes::from_static_str(GROUP)))
        .with_topics(None);
    let response = Connection::open(bootstrap)?.call(7, &request)?;
    let mut offsets = vec![-1; PARTITIONS];
    for it in response.topics.iter().flat_map(|topic| &topic.partitions) {
        if let Some(offset) = offsets.get_mut(usize::try_from(it.partition_index)?) {
            *offset = it.committed_offset;
        }
    }
    Ok(offsets)
}

/// Waits until every record is read by somebody, and committed.
fn wait_for_all(bootstrap: &str, members: &[Member]) -> Result<()> {
    let ends = ends(bootstrap)?;
    let wanted = ends.iter().enumerate();
    let wanted: BTreeSet<Place> =
        wanted.flat_map(|(partition, end)| (0..*end).map(move |at| (partition, at))).collect();
    let all = wait::until("all records to be read and committed", LIMIT, || {
        let mut read = BTreeSet::new();
        for member in members {
            read.extend(member.reads()?);
        }
        let done = wanted.is_subset(&read) && committed(bootstrap)? == ends;
        Ok(done.then_some(()))
    });
    all.with_context(|| format!("ends {ends:?}, committed {:?}", committed(bootstrap)))
}

fn a_group_of_three(client: Client) -> Result<()> {
    let options =
        Options::with(&[("group.initial.rebalance.delay.ms", "1000"), ("offsets.topic.num.partitions", "5")]);
    let mut broker = Broker::start(Kind::from_environment()?, options)?;
    let bootstrap = broker.bootstrap();
    create_topic(&bootstrap, TOPIC, i32::try_from(PARTITIONS)?, &[])?;
    Client::Kcat.produce(&bootstrap, TOPIC, "none", COUNT)?;
    let folder = folders::temporary("blumfeld-groups-")?;
    let start = |name| Member::start(client, &bootstrap, folder.path(), name);
    let mut members = ["a", "b", "c"].into_iter().map(start).collect::<Result<Vec<_>>>()?;
    wait_for_all(&bootstrap, &members)?;
    // The members have different parts once each of them reads what comes now.
    let before = members.iter().map(|it| it.reads().map(|it| it.len())).collect::<Result<Vec<_>>>()?;
    wait::until("every member to read", LIMIT, || {
        Client::Kcat.produce(&bootstrap, TOPIC, "none", COUNT)?;
        let reads = members.iter().map(|it| it.reads().map(|it| it.len())).collect::<Result<Vec<_>>>()?;
        Ok(reads.iter().zip(&before).all(|(now, before)| now > before).then_some(()))
    })?;
    if let Some(first) = members.first_mut() {
        first.kill()?;
    }
    Client::Kcat.produce(&bootstrap, TOPIC, "none", COUNT)?;
    broker.kill()?;
    if client == Client::Kcat {
        // It ends when there is no broker any more.
        wait::until("kcat to give up", LIMIT, || {
            let ended = members.iter_mut().skip(1).map(Member::has_ended).collect::<Result<Vec<_>>>()?;
            Ok(ended.into_iter().all(|ended| ended).then_some(()))
        })?;
    }
    broker.resume()?;
    if client == Client::Kcat {
        for (member, name) in members.iter_mut().skip(1).zip(["b", "c"]) {
            *member = start(name)?;
        }
    }
    Client::Kcat.produce(&bootstrap, TOPIC, "none", COUNT)?;
    wait_for_all(&bootstrap, &members)?;
    for member in members.iter_mut().skip(1) {
        member.end()?;
    }
    let steps = members.iter().map(Member::steps).collect::<Result<Vec<_>>>()?;
    judge(&steps)?;
    ensure!(committed(&bootstrap)? == ends(&bootstrap)?, "something was committed that is not the end");
    broker.stop()
}

#[test]
fn java_3_9_console_consumer() -> Result<()> {
    a_group_of_three(Client::Java(Jars::Kafka39))
}

#[test]
fn java_4_console_consumer() -> Result<()> {
    a_group_of_three(Client::Java(Jars::Tools4))
}

#[test]
fn kcat() -> Result<()> {
    a_group_of_three(Client::Kcat)
}

#[test]
fn confluent_kafka() -> Result<()> {
    a_group_of_three(Client::Python("client_confluent"))
}

#[test]
fn kafka_python() -> Result<()> {
    a_group_of_three(Client::Python("client_kafka_python"))
}

#[test]
fn aiokafka() -> Result<()> {
    a_group_of_three(Client::Python("client_aiokafka"))
}

#[test]
fn franz_go() -> Result<()> {
    a_group_of_three(Client::Go)
}

#[test]
fn kafkajs() -> Result<()> {
    a_group_of_three(Client::Node)
}

/// What Kafka's own tool says of a group.
fn tool_says(bootstrap: &str, arguments: &[&str]) -> Result<String> {
    let class = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand";
    let arguments = [&["--bootstrap-server", bootstrap], arguments].concat();
    Ok(tool(Jars::Kafka39, class, &arguments, "")?.stdout)
}

#[test]
fn kafka_consumer_groups_resets_describes_and_deletes() -> Result<()> {
    let broker = Broker::start(Kind::from_environment()?, Options::default())?;
    let bootstrap = broker.bootstrap();
    create_topic(&bootstrap, TOPIC, 1, &[])?;
    Client::Kcat.produce(&bootstrap, TOPIC, "none", COUNT)?;
    let group = ["--group", GROUP, "--topic", TOPIC];
    let reset = [&["--reset-offsets", "--to-offset", "100", "--execute"], &group[..]].concat();
    tool_says(&bootstrap, &reset)?;
    let described = tool_says(&bootstrap, &["--describe", "--group", GROUP])?;
    let line = described.lines().find(|line| line.contains(TOPIC)).context("no line of the topic")?;
    let fields: Vec<_> = line.split_whitespace().take(6).collect();
    ensure!(fields == [GROUP, TOPIC, "0", "100", "300", "200"], "{described}");
    let listed = tool_says(&bootstrap, &["--list", "--state"])?;
    ensure!(listed.contains(GROUP) && listed.contains("Empty"), "{listed}");
    tool_says(&bootstrap, &[&["--delete-offsets"], &group[..]].concat())?;
    // The group has nothing left, so it is gone.
    let listed = tool_says(&bootstrap, &["--list"])?;
    ensure!(!listed.contains(GROUP), "{listed}");
    Ok(())
}

#[test]
fn the_judge_sees_what_is_read_after_it_was_committed() {
    use Step::{Committed, Failed, Read};
    let committed = vec![Read((0, 0)), Read((0, 1)), Committed((0, 2))];
    let goes_on = vec![Read((0, 2)), Committed((0, 3))];
    judge(&[committed.clone(), goes_on]).unwrap();
    let not_committed = vec![Read((0, 0)), Read((0, 1)), Failed, Read((0, 2)), Committed((0, 3))];
    judge(&[committed.clone(), not_committed]).unwrap();
    assert!(judge(&[committed.clone(), committed.clone()]).is_err());
    let again = [committed, vec![Read((0, 1))]].concat();
    assert!(judge(&[again]).is_err());
}

#[test]
fn lines_of_all_members_are_understood() {
    assert_eq!(step("read\t3\t7").unwrap(), Some(Step::Read((3, 7))));
    assert_eq!(step("Partition:3\tOffset:7\tnone-1 all work").unwrap(), Some(Step::Read((3, 7))));
    assert_eq!(step("committed\t3\t8").unwrap(), Some(Step::Committed((3, 8))));
    assert_eq!(step("failed\twhy").unwrap(), Some(Step::Failed));
    assert_eq!(step("% Group sharers rebalanced").unwrap(), None);
    assert!(step("read\tx\t1").is_err());
}

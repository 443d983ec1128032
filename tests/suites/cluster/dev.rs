//! `blumfeld dev`: several brokers in one process, for whoever tries out an application that wants copies of its records.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::batch::{Draft, now_ms};
use interop::cache;
use interop::calls;
use interop::checker::{Partition, compare_replicas, dump_directory, judge};
use interop::cluster::{LIMIT, cluster_view};
use interop::process::{Process, run_well};
use interop::raw::Connection;
use interop::workload::{self, Load};
use kafka_protocol::messages::MetadataRequest;

const TOPIC: &str = "t";
const PARTITIONS: i32 = 6;

/// A cluster in one process.
struct Dev {
    // Declared first: it ends before its folder goes.
    process: Process,
    log: String,
    _folder: tempfile::TempDir,
}

impl Dev {
    /// Starts it and waits until all its brokers serve.
    fn start(arguments: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("dev.log");
        let mut command = Command::new(cache::blumfeld_binary()?);
        command.arg("dev").args(arguments).current_dir(folder.path());
        let mut process = Process::spawn("blumfeld dev", &mut command, &path)?;
        process.wait_for_log("bootstrap.servers=", 0, LIMIT)?;
        Ok(Self { process, log: std::fs::read_to_string(path)?, _folder: folder })
    }

    /// What follows `key` in the line that begins with it.
    fn said(&self, key: &str) -> Result<&str> {
        let mut lines = self.log.lines().map(str::trim);
        let value = lines.find_map(|line| line.strip_prefix(key)).map(str::trim);
        value.with_context(|| format!("no line {key:?} in\n{}", self.log))
    }

    fn addresses(&self) -> Result<Vec<String>> {
        Ok(self.said("bootstrap.servers=")?.split(',').map(str::to_owned).collect())
    }

    /// The folder of the brokers' folders.
    fn data(&self) -> Result<PathBuf> {
        let told = self.said("data ")?;
        Ok(told.split(" (").next().unwrap_or(told).into())
    }

    /// Creates the topic as the start block proposes.
    fn create_topic(&self) -> Result<()> {
        let mut command = Command::new(cache::blumfeld_binary()?);
        run_well(command.args(self.said("try ")?.split(' ').skip(1)), "", LIMIT)?;
        for address in self.addresses()? {
            calls::wait_for_leaders(&address, TOPIC, usize::try_from(PARTITIONS)?)?;
        }
        Ok(())
    }

    fn stop(self) -> Result<()> {
        let status = self.process.terminate(LIMIT)?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }
}

/// Writes to all partitions with acks=all and reads them, and judges what came of it.
fn write_and_judge(dev: &Dev) -> Result<()> {
    let load = Load {
        addresses: dev.addresses()?,
        partitions: (0..PARTITIONS).map(|index| Partition::new(TOPIC, index)).collect(),
        producers: 1,
        readers: 1,
        record_bytes: 100,
        pause: Duration::ZERO,
        answer_limit: LIMIT,
    };
    judge(&workload::run(&load, |progress| progress.until_more(600, LIMIT))?).into_result()
}

/// The copies of every partition are the same, as they lie on disk after an orderly end.
fn copies_are_equal(data: &Path) -> Result<()> {
    for index in 0..PARTITIONS {
        let mut replicas = Vec::new();
        for id in 1..=3 {
            let folder = data.join(format!("broker-{id}/{TOPIC}-{index}"));
            replicas.push((format!("broker {id}"), dump_directory(&folder)?));
        }
        let end = replicas.iter().map(|(_, dump)| dump.end()).max().unwrap_or(0);
        ensure!(end > 0, "partition {index} ends at {end}");
        let different = compare_replicas(&replicas, end);
        ensure!(different.is_empty(), "partition {index}: {different:?}");
    }
    Ok(())
}

#[test]
fn three_brokers_in_one_process_copy_records_and_leave_nothing_behind() -> Result<()> {
    let dev = Dev::start(&[])?;
    let addresses = dev.addresses()?;
    ensure!(addresses.len() == 3, "{addresses:?}");
    for address in &addresses {
        let (controller, brokers) = cluster_view(address)?;
        ensure!(
            controller.is_some() && brokers == BTreeSet::from([1, 2, 3]),
            "{controller:?} of {brokers:?}"
        );
    }
    dev.create_topic()?;
    let described = calls::describe_topic(&mut Connection::open(&addresses[0])?, TOPIC)?;
    ensure!(described.partitions.iter().all(|partition| partition.replica_nodes.len() == 3));
    let leaders: BTreeSet<_> = described.partitions.iter().map(|partition| partition.leader_id.0).collect();
    ensure!(leaders.len() == 3, "led by {leaders:?}");
    write_and_judge(&dev)?;
    let data = dev.data()?;
    ensure!(data.is_dir());
    dev.stop()?;
    ensure!(!data.exists(), "{} is left behind", data.display());
    Ok(())
}

#[test]
fn kept_data_is_served_again_and_options_reach_every_broker() -> Result<()> {
    let kept = tempfile::tempdir()?;
    let data = kept.path().to_string_lossy().into_owned();
    let arguments = ["--data", &data, "--racks", "2", "--override", "log.segment.bytes=2000"];
    let dev = Dev::start(&arguments)?;
    dev.create_topic()?;
    let request = MetadataRequest::default().with_topics(Some(Vec::new()));
    let metadata = Connection::open(&dev.addresses()?[0])?.call(1, &request)?;
    let mut racks: Vec<_> = metadata.brokers.iter().filter_map(|it| it.rack.clone()).collect();
    racks.sort();
    ensure!(racks.iter().map(|rack| rack.as_str()).eq(["rack-1", "rack-1", "rack-2"]), "{racks:?}");
    write_and_judge(&dev)?;
    let ends = |dev: &Dev| -> Result<Vec<i64>> {
        let addresses = dev.addresses()?;
        (0..PARTITIONS)
            .map(|index| calls::end_offset(&leader(&addresses, index)?, TOPIC, usize::try_from(index)?))
            .collect()
    };
    let before = ends(&dev)?;
    dev.stop()?;
    copies_are_equal(kept.path())?;
    let mut segments = 0;
    for index in 0..PARTITIONS {
        for file in kept.path().join(format!("broker-1/{TOPIC}-{index}")).read_dir()? {
            segments += i32::from(file?.path().extension().is_some_and(|extension| extension == "log"));
        }
    }
    ensure!(segments > PARTITIONS, "log.segment.bytes has not reached broker 1");

    let dev = Dev::start(&arguments)?;
    for address in dev.addresses()? {
        calls::wait_for_leaders(&address, TOPIC, usize::try_from(PARTITIONS)?)?;
    }
    let after = ends(&dev)?;
    ensure!(after == before, "{after:?} after {before:?}");
    let mut connection = Connection::open(&leader(&dev.addresses()?, 0)?)?;
    let batch = Draft::of_values(now_ms(), &[b"more"]).build();
    let answer = calls::produce(&mut connection, TOPIC, 0, batch)?;
    ensure!((answer.error_code, Some(&answer.base_offset)) == (0, before.first()), "{answer:?}");
    dev.stop()
}

/// The address of a partition's leader, which all brokers can tell.
fn leader(addresses: &[String], index: i32) -> Result<String> {
    let address = addresses.first().context("no brokers")?;
    let described = calls::describe_topic(&mut Connection::open(address)?, TOPIC)?;
    let partition = described.partitions.iter().find(|it| it.partition_index == index);
    let leader = partition.context("no such partition")?.leader_id.0;
    let place = usize::try_from(leader - 1)?;
    addresses.get(place).cloned().with_context(|| format!("leader {leader}"))
}

//! Groups of consumers, on a real Kafka: our members beside Java's, and what is told of them.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use interop::broker::{Broker, Kind, Options};
use interop::cache;
use interop::java::{self, Jars};
use interop::process::Process;
use interop::wait;
use serde_json::Value;

use super::compare::{Same, same, verb, verb_json, verb_well};

const GROUPS: &str = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand";
const LIMIT: Duration = Duration::from_secs(60);

/// The number of partitions of each member of the group `mixed`, ascending.
fn shares(at: &str) -> Result<Vec<usize>> {
    let told = verb_json(&format!("consumer-groups {at} --describe --group mixed"));
    // The group may not be there yet.
    let told = told.unwrap_or_default();
    let members = told[0]["members"].as_array().cloned().unwrap_or_default();
    let mut shares: Vec<usize> =
        members.iter().map(|member| member["assignment"].as_array().map_or(0, Vec::len)).collect();
    shares.sort_unstable();
    Ok(shares)
}

#[test]
fn groups_are_told_of_and_reset_as_kafkas_tool_does_it() -> Result<()> {
    let broker = Broker::start(Kind::Kafka, Options::default())?;
    let at = &format!("--bootstrap-server {}", broker.bootstrap());
    verb_well(&format!("topics {at} --create --topic t --partitions 3"), "")?;
    verb_well(&format!("verifiable-producer {at} --topic t --max-messages 30 --repeating-keys 10"), "")?;
    let read = verb_well(&format!("verifiable-consumer {at} --topic t --group-id g --max-messages 20"), "")?;
    ensure!(read.trim_end().ends_with("\"shutdown_complete\"}"), "{read}");
    // Kafka's tool gives up after five seconds by default, which a loaded machine exceeds.
    let verb_of_groups = format!("consumer-groups {at} --timeout 60000");
    same(GROUPS, &format!("{verb_of_groups} --list --state"), Same::Lines)?;
    same(GROUPS, &format!("{verb_of_groups} --describe --group g"), Same::Sorted)?;
    same(GROUPS, &format!("{verb_of_groups} --describe --group g --state"), Same::Lines)?;
    let reset = format!("{verb_of_groups} --reset-offsets --group g");
    same(GROUPS, &format!("{reset} --all-topics --shift-by 3 --dry-run"), Same::Words)?;
    same(GROUPS, &format!("{reset} --topic t:0 --to-offset 1 --execute"), Same::Words)?;
    same(GROUPS, &format!("{reset} --topic t --by-duration P1D --export --dry-run"), Same::Sorted)?;

    // Each way sets what it says; read back by another question.
    let offsets = || -> Result<Vec<i64>> {
        let told = verb_json(&format!("consumer-groups {at} --describe --group g"))?;
        let of = |it: &Value| it["currentOffset"].as_i64();
        Ok(told[0]["offsets"].as_array().into_iter().flatten().filter_map(of).collect())
    };
    verb_well(&format!("{reset} --topic t --to-earliest --execute"), "")?;
    assert_eq!(offsets()?, [0, 0, 0]);
    let exported = verb_well(&format!("{reset} --all-topics --to-latest --execute --export"), "")?;
    assert_eq!(offsets()?.iter().sum::<i64>(), 30);
    verb_well(&format!("{reset} --all-topics --to-datetime 2000-01-01T00:00:00.000 --execute"), "")?;
    assert_eq!(offsets()?, [0, 0, 0]);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("offsets.csv");
    std::fs::write(&file, exported)?;
    verb_well(&format!("{reset} --from-file {} --execute", file.display()), "")?;
    assert_eq!(offsets()?.iter().sum::<i64>(), 30);
    verb_well(&format!("consumer-groups {at} --delete-offsets --group g --topic t"), "")?;
    // A group without members and offsets is gone; whoever asks for it is told so.
    let gone = verb(&format!("consumer-groups {at} --describe --group g"), "")?;
    assert!(!gone.status.success() && gone.stderr.contains("does not exist"), "{gone:?}");
    verb_well(&format!("{reset} --topic t --to-current --execute"), "")?;
    let deleted = verb_well(&format!("consumer-groups {at} --delete --group g"), "")?;
    assert_eq!(deleted, "Deletion of requested consumer groups ('g') was successful.\n");
    Ok(())
}

#[test]
fn our_members_share_a_group_with_javas() -> Result<()> {
    let broker = Broker::start(Kind::Kafka, Options::default())?;
    let at = &format!("--bootstrap-server {}", broker.bootstrap());
    let folder = tempfile::tempdir()?;
    verb_well(&format!("topics {at} --create --topic t --partitions 3"), "")?;
    let log = folder.path().join("ours.log");
    let arguments = format!("verifiable-consumer {at} --topic t --group-id mixed --session-timeout 10000");
    let mut command = Command::new(cache::blumfeld_binary()?);
    let ours = Process::spawn("ours", command.args(arguments.split_whitespace()), &log)?;
    wait::until("our member with all partitions", LIMIT, || Ok((shares(at)? == [3]).then_some(())))?;
    let arguments = format!("{at} --topic t --group mixed");
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let class = "org.apache.kafka.tools.consumer.ConsoleConsumer";
    let mut command =
        java::command(Jars::Kafka39, &["-Xmx128M", "-XX:TieredStopAtLevel=1"], class, &arguments)?;
    let java = Process::spawn("Java", &mut command, &folder.path().join("java.log"))?;
    wait::until("two members that share", LIMIT, || Ok((shares(at)? == [1, 2]).then_some(())))?;
    // It says what it gives up, and leaves: the other one has all without waiting for the end of a session.
    ensure!(ours.terminate(LIMIT)?.success(), "our member did not end in order");
    let told = std::fs::read_to_string(&log)?;
    for event in ["partitions_assigned", "partitions_revoked", "shutdown_complete"] {
        ensure!(told.contains(event), "{event} is missing:\n{told}");
    }
    wait::until("Java's member with all partitions", LIMIT, || Ok((shares(at)? == [3]).then_some(())))?;
    java.terminate(LIMIT)?;
    Ok(())
}

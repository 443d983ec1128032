//! The verbs that ask and change a cluster.

use anyhow::Result;
use interop::broker::{Broker, Kind, Options};

use super::compare::{Same, same, verb, verb_well};

const TOPICS: &str = "org.apache.kafka.tools.TopicCommand";
const CONFIGS: &str = "kafka.admin.ConfigCommand";
const OFFSETS: &str = "org.apache.kafka.tools.GetOffsetShell";
const CONSUMER: &str = "org.apache.kafka.tools.consumer.ConsoleConsumer";

/// Topics `a` (three partitions) and `b` (one, with records with keys and headers).
fn fill(at: &str) -> Result<()> {
    verb_well(&format!("topics {at} --create --topic a --partitions 3"), "")?;
    verb_well(&format!("topics {at} --create --topic b --partitions 1 --config retention.ms=100000000"), "")?;
    let lines: String = (0..30).map(|n| format!("key-{n}\tvalue-{n}\n")).collect();
    verb_well(&format!("console-producer {at} --topic a --property parse.key=true"), &lines)?;
    let lines = "h1:v1,h2:v2\tk\tv\nh1:NIL\tk\tNIL\n";
    let properties = "--property parse.key=true --property parse.headers=true --property null.marker=NIL";
    verb_well(&format!("console-producer {at} --topic b {properties} --request-required-acks 1"), lines)?;
    Ok(())
}

#[test]
fn questions_about_a_cluster_have_the_same_answers() -> Result<()> {
    let broker = Broker::start(Kind::from_environment()?, Options::default())?;
    let at = &format!("--bootstrap-server {}", broker.bootstrap());
    fill(at)?;
    same(TOPICS, &format!("topics {at} --describe"), Same::Lines)?;
    same(TOPICS, &format!("topics {at} --describe --topics-with-overrides"), Same::Lines)?;
    same(
        CONFIGS,
        &format!("configs {at} --describe --entity-type topics --entity-name b --all"),
        Same::Sorted,
    )?;
    same(OFFSETS, &format!("get-offsets {at}"), Same::Lines)?;
    same(OFFSETS, &format!("get-offsets {at} --topic a|b --time max-timestamp"), Same::Lines)?;
    same(OFFSETS, &format!("get-offsets {at} --topic-partitions a:0-2,b --time earliest"), Same::Lines)?;
    same(OFFSETS, &format!("get-offsets {at} --topic none"), Same::Lines)?;
    let directories = format!("log-dirs {at} --describe --topic-list a,b");
    same("org.apache.kafka.tools.LogDirsCommand", &directories, Same::Words)?;
    same("kafka.admin.BrokerApiVersionsCommand", &format!("api-versions {at}"), Same::Lines)?;
    let printed = "--property print.key=true --property print.headers=true --property print.offset=true --property \
                   print.partition=true --property null.literal=nothing";
    let consume =
        format!("console-consumer {at} --topic b --partition 0 --offset earliest --max-messages 2 {printed}");
    same(CONSUMER, &consume, Same::Lines)
}

#[test]
fn changes_of_a_cluster_are_told_in_the_same_words() -> Result<()> {
    const DELETE: &str = "org.apache.kafka.tools.DeleteRecordsCommand";
    const ELECT: &str = "org.apache.kafka.tools.LeaderElectionCommand";
    let broker = Broker::start(Kind::from_environment()?, Options::default())?;
    let at = &format!("--bootstrap-server {}", broker.bootstrap());
    fill(at)?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("offsets.json");
    std::fs::write(&file, r#"{"partitions":[{"topic":"b","partition":0,"offset":1}],"version":1}"#)?;
    same(DELETE, &format!("delete-records {at} --offset-json-file {}", file.display()), Same::Lines)?;
    same(OFFSETS, &format!("get-offsets {at} --topic b --time -2"), Same::Lines)?;
    same(
        ELECT,
        &format!("leader-election {at} --election-type preferred --all-topic-partitions"),
        Same::Lines,
    )?;
    same(
        ELECT,
        &format!("leader-election {at} --election-type PREFERRED --topic a --partition 0"),
        Same::Lines,
    )?;
    same(TOPICS, &format!("topics {at} --delete --topic none --if-exists"), Same::Lines)?;
    let refused =
        verb(&format!("leader-election {at} --election-type preferred --topic none --partition 0"), "")?;
    assert!(!refused.status.success() && refused.stdout.contains("UnknownTopicOrPartitionException"));
    let id = verb_well(&format!("cluster cluster-id {at}"), "")?;
    assert!(id.starts_with("Cluster ID: ") && id.trim().len() == "Cluster ID: ".len() + 22, "{id}");
    Ok(())
}

//! Kafka's own tool for groups.

use anyhow::{Context, Result, ensure};
use interop::broker::{Broker, Kind, Options};
use interop::calls::create_topic;
use interop::clients::Client;
use interop::java::{Jars, tool};

use super::{COUNT, GROUP, TOPIC};

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

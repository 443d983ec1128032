//! The verbs that measure and that run for long.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use interop::broker::{Broker, Kind, Options};
use interop::java::{self, Jars};
use serde_json::Value;

use super::compare::{verb, verb_well};

/// The text with each number replaced by `N`.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for letter in line.chars() {
        let digit = letter.is_ascii_digit() || (letter == '.' && shape.ends_with('N'));
        match (digit, shape.ends_with('N')) {
            (true, true) => {}
            (true, false) => shape.push('N'),
            (false, _) => shape.push(letter),
        }
    }
    shape
}

#[test]
fn what_is_measured_is_told_in_kafkas_lines() -> Result<()> {
    let broker = Broker::start(Kind::from_environment()?, Options::default())?;
    let bootstrap = broker.bootstrap();
    let at = &format!("--bootstrap-server {bootstrap}");
    verb_well(&format!("topics {at} --create --topic t --partitions 3"), "")?;
    let line = format!(
        "--topic t --num-records 20000 --throughput -1 --record-size 100 --producer-props bootstrap.servers={bootstrap}"
    );
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let kafka = java::tool(Jars::Kafka39, "org.apache.kafka.tools.ProducerPerformance", &arguments, "")?;
    let ours = verb_well(&format!("producer-perf {line}"), "")?;
    let last = |text: &str| shape(text.lines().last().unwrap_or_default());
    assert_eq!(last(&kafka.stdout), last(&ours));
    let paced = "--num-records 50 --throughput 500 --payload-monotonic --producer-props acks=1 linger.ms=5";
    let paced = verb_well(&format!("producer-perf {at} --topic t {paced}"), "")?;
    assert!(paced.starts_with("50 records sent, "), "{paced}");
    let offsets = verb_well(&format!("get-offsets {at} --topic t"), "")?;
    let ends = offsets.lines().filter_map(|line| line.rsplit(':').next()?.parse::<u64>().ok());
    assert_eq!(ends.sum::<u64>(), 40_050, "{offsets}");

    let line = format!("{at} --topic t --messages 40050 --timeout 30000");
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let ours = verb_well(&format!("consumer-perf {line}"), "")?;
    assert!(ours.contains(", 40050, "), "{ours}");
    if broker.kind() == Kind::Kafka {
        let kafka = java::tool(Jars::Kafka39, "org.apache.kafka.tools.ConsumerPerformance", &arguments, "")?;
        let header = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        assert_eq!((header(&kafka.stdout), last(&kafka.stdout)), (header(&ours), last(&ours)));
    }
    let ours = verb_well(&format!("end-to-end-latency {bootstrap} e2e 20 all 10"), "")?;
    let last = shape(ours.lines().last().unwrap_or_default());
    assert_eq!(last, "Percentiles: Nth = N, Nth = N, Nth = N", "{ours}");
    assert!(!verb(&format!("end-to-end-latency {bootstrap} e2e 20 0 10"), "")?.status.success());
    Ok(())
}

/// For each event its members.
fn members(text: &str) -> Result<BTreeSet<(String, Vec<String>)>> {
    let line = |line: &str| {
        let json: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let members = json.as_object().context("no object")?.keys().cloned().collect();
        Ok((json["name"].as_str().unwrap_or_default().to_owned(), members))
    };
    text.lines().map(line).collect()
}

#[test]
fn a_verifiable_producer_tells_the_same_of_its_records() -> Result<()> {
    let broker = Broker::start(Kind::from_environment()?, Options::default())?;
    let line = format!(
        "--bootstrap-server {} --topic t --max-messages 20 --value-prefix 7 --repeating-keys 2 --acks -1",
        broker.bootstrap()
    );
    let ours = verb_well(&format!("verifiable-producer {line}"), "")?;
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let kafka = java::tool(Jars::Kafka39, "org.apache.kafka.tools.VerifiableProducer", &arguments, "")?;
    assert_eq!(members(&kafka.stdout)?, members(&ours)?);
    let sent = ours.lines().filter(|line| line.contains("producer_send_success")).count();
    assert_eq!(sent, 20, "{ours}");
    let offsets = verb_well(&format!("get-offsets --bootstrap-server {} --topic t", broker.bootstrap()), "")?;
    let ends = offsets.lines().filter_map(|line| line.rsplit(':').next()?.parse::<u64>().ok());
    assert_eq!(ends.sum::<u64>(), 40, "{offsets}");
    Ok(())
}

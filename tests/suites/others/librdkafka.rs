//! librdkafka's own tests: those that speak to a broker, in plain text.
//!
//! Its tests with a broker that it plays itself are not run. Some call Kafka's script for topics: a script of ours stands
//! there and runs the same program.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::broker::Broker;
use interop::process::run;
use interop::score::{Outcome, Outcomes, compare};
use interop::{cache, folders};

/// Beginnings of names.
const LEFT_OUT: [(&str, &str); 19] = [
    ("0038", "measures, and judges nothing"),
    ("0052", "writes the record formats 0 and 1, which are not built yet"),
    ("0055", "a part uses transactions, which are not built yet"),
    ("0061", "a part uses transactions, which are not built yet"),
    ("0081", "a part needs an authorizer; ACLs are not built yet"),
    ("0097", "TLS is not built yet"),
    ("0098", "transactions are not built yet"),
    ("0101", "needs three brokers in racks"),
    ("0103", "transactions are not built yet"),
    ("0109", "needs an authorizer; ACLs are not built yet"),
    ("0115", "needs an authorizer; ACLs are not built yet"),
    ("0119", "needs an authorizer; ACLs are not built yet"),
    ("0126", "SASL is not built yet"),
    ("0129", "transactions are not built yet"),
    ("0135", "SASL is not built yet"),
    ("0137", "a part uses transactions, which are not built yet"),
    ("0139", "plays the broker itself"),
    ("0142", "SASL is not built yet"),
    ("0150", "plays the broker itself"),
];

const LIMIT: Duration = Duration::from_secs(1200);

/// Numbers of the tests that `only` names, as the program wants them.
fn numbers(only: &[String]) -> String {
    let mut numbers: Vec<&str> = only.iter().filter_map(|name| name.split('_').next()).collect();
    numbers.dedup();
    numbers.join(",")
}

fn tests(broker: &Broker, only: &[String]) -> Result<Outcomes> {
    let source = cache::folder()?.join("librdkafka");
    ensure!(source.is_dir(), "{} is missing: run `cargo xtask setup --all` once", source.display());
    let folder = folders::temporary("blumfeld-librdkafka-")?;
    let here = folder.path();
    scripts(&here.join("bin"))?;
    // Tests wait for fixed times; the machine is small.
    let conf = format!("bootstrap.servers={}\ntest.timeout.multiplier=3\n", broker.bootstrap());
    std::fs::write(here.join("test.conf"), conf)?;
    let (report, libraries) = (here.join("report.json"), [source.join("src"), source.join("src-cpp")]);
    let mut command = Command::new(source.join("tests/test-runner"));
    command.args(["-L", "-p4"]).current_dir(here);
    command.env("TEST_KAFKA_VERSION", "3.9.2").env("TEST_LEVEL", "1").env("TEST_REPORT", &report);
    command.env("KAFKA_PATH", here).env("BROKERS", broker.bootstrap());
    command.env("LD_LIBRARY_PATH", std::env::join_paths(libraries)?);
    command.env("TESTS_SKIP", LEFT_OUT.map(|(number, _)| number).join(","));
    if !only.is_empty() {
        command.env("TESTS", numbers(only));
    }
    // After a failure the program may end badly; the report is written before that.
    let finished = run(&mut command, "", LIMIT)?;
    let report = std::fs::read_to_string(report).with_context(|| format!("no report: {finished:?}"))?;
    outcomes(&report)
}

/// A folder in which the tests find Kafka's script for topics.
fn scripts(folder: &std::path::Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let jars = cache::folder()?.join("kafka-3.9/jars");
    let options = "-Xmx256M -XX:+UseSerialGC -XX:TieredStopAtLevel=1";
    let class = "org.apache.kafka.tools.TopicCommand";
    let script = format!("#!/bin/sh\nexec java {options} -cp '{}/*' {class} \"$@\"\n", jars.display());
    let path = folder.join("kafka-topics.sh");
    std::fs::write(&path, script)?;
    Ok(std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?)
}

/// Reads the report. `<MAIN>` is the program itself.
fn outcomes(report: &str) -> Result<Outcomes> {
    let report: serde_json::Value = serde_json::from_str(report)?;
    let tests = report.get("tests").and_then(serde_json::Value::as_object).context("no tests")?;
    let outcome = |(name, test): (&String, &serde_json::Value)| {
        let outcome = match test.get("state")?.as_str()? {
            "PASSED" => Outcome::Passed,
            "FAILED" => Outcome::Failed,
            _ => Outcome::Skipped,
        };
        (name != "<MAIN>").then(|| (name.clone(), outcome))
    };
    Ok(tests.iter().filter_map(outcome).collect())
}

#[test]
fn librdkafka() -> Result<()> {
    // Its tests of rebalances count them: all members are expected in the first.
    let properties = [("num.partitions", "4"), ("group.initial.rebalance.delay.ms", "3000")];
    compare("librdkafka", &properties, tests)
}

#[test]
fn a_report_of_librdkafka_is_read_and_its_tests_are_asked_for_by_number() -> Result<()> {
    let report = r#"{ "tests": {"<MAIN>": {"state": "PASSED"}, "0001_multiobj": {"state": "FAILED"}} }"#;
    assert_eq!(outcomes(report)?, [("0001_multiobj".to_owned(), Outcome::Failed)].into());
    let names = ["0045_subscribe_update", "0045_resubscribe", "0051_assign_adds"].map(str::to_owned);
    assert_eq!(numbers(&names), "0045,0051");
    Ok(())
}

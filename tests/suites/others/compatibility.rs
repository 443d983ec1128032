//! Kafka's own ClientCompatibilityTest: Java's clients and what they expect of a broker, in one program.
//!
//! It must be told what the broker can do, and fails when it can do something else. Blumfeld has no access lists yet: it is
//! told so, and wants them to be refused as a broker refuses what it does not know.

use std::time::Duration;

use anyhow::Result;
use interop::broker::{Broker, Kind};
use interop::java::{self, Jars};
use interop::process::run;
use interop::score::{Outcome, Outcomes, compare};

const CLASS: &str = "org.apache.kafka.tools.ClientCompatibilityTest";
const LIMIT: Duration = Duration::from_secs(120);

/// What a broker of 3.9 can do and what one of long ago did.
const EXPECTED: [&str; 12] = [
    "--offsets-for-times-supported",
    "true",
    "--cluster-id-supported",
    "true",
    "--create-topics-supported",
    "true",
    "--describe-configs-supported",
    "true",
    "--idempotent-producer-supported",
    "true",
    "--expect-record-too-large-exception",
    "false",
];

fn program(broker: &Broker, _: &[String]) -> Result<Outcomes> {
    let (bootstrap, acls) = (broker.bootstrap(), (broker.kind() == Kind::Kafka).to_string());
    let mut arguments = vec!["--topic", "compatibility", "--bootstrap-server", &bootstrap];
    arguments.extend(["--num-cluster-nodes", "1", "--describe-acls-supported", &acls]);
    arguments.extend(EXPECTED);
    let options = ["-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"];
    let finished = run(&mut java::command(Jars::Kafka39, &options, CLASS, &arguments)?, "", LIMIT)?;
    let outcome = if finished.status.success() && finished.stdout.contains("SUCCESS") {
        Outcome::Passed
    } else {
        Outcome::Failed
    };
    Ok([(CLASS.to_owned(), outcome)].into())
}

#[test]
fn client_compatibility_test() -> Result<()> {
    compare("ClientCompatibilityTest", &[("num.partitions", "1")], program)
}

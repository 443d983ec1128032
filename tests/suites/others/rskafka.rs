//! rskafka's own tests of its client, consumer and producer.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use interop::broker::Broker;
use interop::cache;
use interop::process::run;
use interop::score::{Outcome, Outcomes, compare};

/// Parts of names; the test of TLS is not compiled without that feature.
const LEFT_OUT: [(&str, &str); 3] = [
    ("test_sasl", "SASL is not built yet"),
    ("_java", "drives Java's client, which has suites of its own"),
    ("_rdkafka", "drives librdkafka, which has suites of its own"),
];

const LIMIT: Duration = Duration::from_secs(600);

fn tests(broker: &Broker, only: &[String]) -> Result<Outcomes> {
    let folder = cache::folder()?.join("rskafka");
    ensure!(folder.is_dir(), "{} is missing: run `cargo xtask setup --all` once", folder.display());
    let mut command = Command::new("cargo");
    command.args(["test", "--quiet", "--offline", "--locked", "--no-fail-fast", "--target-dir", "target"]);
    command.args(["--", "--test-threads=2", "--format=pretty"]).current_dir(&folder);
    for (part, _) in LEFT_OUT {
        command.args(["--skip", part]);
    }
    if !only.is_empty() {
        command.arg("--exact").args(only);
    }
    command.env("TEST_INTEGRATION", "1").env("TEST_BROKER_IMPL", "kafka");
    command.env("KAFKA_CONNECT", broker.bootstrap());
    Ok(outcomes(&run(&mut command, "", LIMIT)?.stdout))
}

/// Reads what a test program of Rust prints.
fn outcomes(output: &str) -> Outcomes {
    let outcome = |line: &str| {
        let (name, word) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let outcome = match word {
            "ok" => Outcome::Passed,
            "FAILED" => Outcome::Failed,
            "ignored" => Outcome::Skipped,
            _ => return None,
        };
        Some((name.to_owned(), outcome))
    };
    output.lines().filter_map(outcome).collect()
}

#[test]
fn rskafka() -> Result<()> {
    // As in its own environment: a test wants a topic that is not there to stay away.
    compare("rskafka", &[("auto.create.topics.enable", "false")], tests)
}

#[test]
fn the_output_of_rust_tests_is_read() {
    let output = "running 2 tests\ntest one ... ok\ntest two ... FAILED\n\ntest result: FAILED. 1 passed\n";
    let expected = [("one", Outcome::Passed), ("two", Outcome::Failed)];
    assert_eq!(outcomes(output), expected.map(|(name, outcome)| (name.to_owned(), outcome)).into());
}

//! franz-go's own tests of its client `kgo`: those that speak to a broker.
//!
//! The package has many more that need none; they say nothing about a broker and do not count. KIP-848's groups do not exist
//! in Kafka's ZooKeeper mode: those parts of a test skip themselves on both brokers.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::broker::Broker;
use interop::cache;
use interop::depth::Depth;
use interop::process::{run, run_well};
use interop::score::{Outcome, Outcomes, compare};

/// Tests of a few seconds at most.
const QUICK: [&str; 20] = [
    "TestAddRemovePartitions",
    "TestClient_ProduceLargeMessages",
    "TestConsumeMaxDecompressBatchBytes",
    "TestConsumeRegex",
    "TestConsumeTopicRetrieval",
    "TestConsumeTopicRetrieval_Many",
    "TestDirectPartitionPurge",
    "TestGroupSimple",
    "TestHookPollStart",
    "TestIssue1034",
    "TestIssue325",
    "TestIssue648",
    "TestIssue810",
    "TestIssue831",
    "TestIssueFetchLargerThanBrokerMaxReadBytes",
    "TestIssueProduceSyncManualPartitionNegativeDoesNotPanic",
    "TestPauseIssue489",
    "TestPing",
    "TestPooling",
    "TestUnknownGroupOffsetFetchPinned",
];

/// The others.
const SLOW: [&str; 8] = [
    "TestClient_Produce",
    "TestGroupETL",
    "TestIssue337",
    "TestIssue434",
    "TestIssue523",
    "TestIssue769",
    "TestIssue865",
    "TestPauseIssueOct2023",
];

/// Tests of what Blumfeld, or Kafka's ZooKeeper mode, does not have.
const LEFT_OUT: [(&str, &str); 11] = [
    ("TestTxnEtl", "transactions are not built yet"),
    ("TestSCRAMAuth", "SASL is not built yet"),
    ("TestSCRAMAuthBadCredentials", "SASL is not built yet"),
    ("TestOAuthAuth", "SASL is not built yet"),
    ("TestShareGroup", "share groups came after 3.9"),
    ("TestShareGroupETL", "share groups came after 3.9"),
    ("TestShareGroupAckOnClose", "share groups came after 3.9"),
    ("TestShareGroupOffsetsAdmin", "share groups came after 3.9"),
    ("TestConsumeRegexShareSkipsInternal", "share groups came after 3.9"),
    ("Test848RegexBrokerResolves", "KIP-848 needs KRaft"),
    ("TestIssueProduceBrokerTooOldFailsRecords", "needs a broker older than 0.11"),
];

const LIMIT: Duration = Duration::from_secs(600);

fn program() -> Result<Command> {
    let program = cache::folder()?.join("kgo/kgo.test");
    ensure!(program.is_file(), "{} is missing: run `cargo xtask setup` once", program.display());
    Ok(Command::new(program))
}

/// Runs whole tests, also when only a part of one is asked for.
fn tests(broker: &Broker, selection: &[&str], only: &[String]) -> Result<Outcomes> {
    let mut names: Vec<&str> = only.iter().filter_map(|name| name.split('/').next()).collect();
    names.dedup();
    let names = if names.is_empty() { selection } else { &names };
    let mut command = program()?;
    command.args(["-test.v", "-test.timeout=9m", "-test.run", &format!("^({})$", names.join("|"))]);
    command.env("KGO_SEEDS", broker.bootstrap()).env("KGO_LOG_LEVEL", "none").env("KGO_TEST_RF", "1");
    command.env("KGO_TEST_RECORDS", "20000").env("KGO_TEST_MAX_TOPIC_PARTS", "7");
    Ok(outcomes(&run(&mut command, "", LIMIT)?.stdout))
}

/// Reads what a test program of Go prints.
fn outcomes(output: &str) -> Outcomes {
    let outcome = |line: &str| {
        let (word, rest) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
        let outcome = match word {
            "PASS" => Outcome::Passed,
            "FAIL" => Outcome::Failed,
            "SKIP" => Outcome::Skipped,
            _ => return None,
        };
        Some((rest.split(' ').next()?.to_owned(), outcome))
    };
    output.lines().filter_map(outcome).collect()
}

#[test]
fn kgo() -> Result<()> {
    let selection = match Depth::from_environment()? {
        Depth::Short => QUICK.to_vec(),
        Depth::Long => [&QUICK[..], &SLOW].concat(),
    };
    compare("franz-go's kgo", &[], |broker, only| tests(broker, &selection, only))
}

#[test]
fn every_test_of_kgo_that_is_named_here_exists() -> Result<()> {
    let listed = run_well(program()?.args(["-test.list", "^Test"]), "", LIMIT)?.stdout;
    let left_out = LEFT_OUT.iter().map(|(name, _)| name);
    for name in QUICK.iter().chain(&SLOW).chain(left_out) {
        listed.lines().find(|line| line == name).with_context(|| format!("kgo has no test {name}"))?;
    }
    Ok(())
}

#[test]
fn the_output_of_go_tests_is_read() {
    let output = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- SKIP: TestA/b (0.00s)\n--- FAIL: TestC (1.20s)\nFAIL\n";
    let expected = [("TestA", Outcome::Passed), ("TestA/b", Outcome::Skipped), ("TestC", Outcome::Failed)];
    assert_eq!(outcomes(output), expected.map(|(name, outcome)| (name.to_owned(), outcome)).into());
}

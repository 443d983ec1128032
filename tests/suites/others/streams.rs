//! Kafka Streams' own integration tests: those that process records at least once.
//!
//! They start their brokers themselves, by a class of which ours takes the place (`tests/others/streams`): brokers are
//! processes of either kind, one or three, with what properties a test wants. Exactly once needs transactions.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::broker::Kind;
use interop::process::run;
use interop::score::{Outcome, Outcomes, compare_kinds};
use interop::{cache, folders};

const PACKAGE: &str = "org.apache.kafka.streams.integration";

/// Classes of tests that are run whole.
const CLASSES: [&str; 40] = [
    "ConsistencyVectorIntegrationTest",
    "EmitOnChangeIntegrationTest",
    "FineGrainedAutoResetIntegrationTest",
    "GlobalKTableIntegrationTest",
    "IQv2IntegrationTest",
    "IQv2VersionedStoreIntegrationTest",
    "InternalTopicIntegrationTest",
    "JoinStoreIntegrationTest",
    "JoinWithIncompleteMetadataIntegrationTest",
    "KStreamAggregationDedupIntegrationTest",
    "KStreamAggregationIntegrationTest",
    "KStreamKStreamIntegrationTest",
    "KTableKTableForeignKeyInnerJoinCustomPartitionerIntegrationTest",
    "KTableKTableForeignKeyInnerJoinMultiIntegrationTest",
    "KTableKTableForeignKeyJoinDistributedTest",
    "KafkaStreamsCloseOptionsIntegrationTest",
    "LagFetchIntegrationTest",
    "MetricsIntegrationTest",
    "MetricsReporterIntegrationTest",
    "NamedTopologyIntegrationTest",
    "OptimizedKTableIntegrationTest",
    "PauseResumeIntegrationTest",
    "PositionRestartIntegrationTest",
    "RangeQueryIntegrationTest",
    "RebalanceIntegrationTest",
    "RegexSourceIntegrationTest",
    "ResetIntegrationTest",
    "RestoreIntegrationTest",
    "SelfJoinUpgradeIntegrationTest",
    "StandbyTaskCreationIntegrationTest",
    "StateDirectoryIntegrationTest",
    "StoreQueryIntegrationTest",
    "StoreUpgradeIntegrationTest",
    "StreamTableJoinTopologyOptimizationIntegrationTest",
    "StreamsUpgradeTestIntegrationTest",
    "SuppressionIntegrationTest",
    "TaskAssignorIntegrationTest",
    "TaskMetadataIntegrationTest",
    "TimeWindowedKStreamIntegrationTest",
    "VersionedKeyValueStoreIntegrationTest",
];

/// Tests in classes of which the others process exactly once: class, and what follows it in JUnit's id.
const SINGLE: [(&str, &str); 6] = [
    (
        "JoinGracePeriodDurabilityIntegrationTest",
        "[test-template:shouldRecoverBufferAfterShutdown(java.lang.String, org.junit.jupiter.api.TestInfo)]/[test-template-invocation:#1]",
    ),
    (
        "KTableSourceTopicRestartIntegrationTest",
        "[method:shouldRestoreAndProgressWhenTopicNotWrittenToDuringRestoration()]",
    ),
    (
        "KTableSourceTopicRestartIntegrationTest",
        "[method:shouldRestoreAndProgressWhenTopicWrittenToDuringRestorationWithEosDisabled()]",
    ),
    (
        "ResetPartitionTimeIntegrationTest",
        "[test-template:shouldPreservePartitionTimeOnKafkaStreamRestart(java.lang.String, org.junit.jupiter.api.TestInfo)]/[test-template-invocation:#1]",
    ),
    (
        "RocksDBMetricsIntegrationTest",
        "[test-template:shouldExposeRocksDBMetricsBeforeAndAfterFailureWithEmptyStateDir(java.lang.String, org.junit.jupiter.api.TestInfo)]/[test-template-invocation:#1]",
    ),
    (
        "SuppressionDurabilityIntegrationTest",
        "[test-template:shouldRecoverBufferAfterShutdown(java.lang.String, org.junit.jupiter.api.TestInfo)]/[test-template-invocation:#1]",
    ),
];

/// Classes that are not run; those that need no broker are not named.
const LEFT_OUT: [(&str, &str); 18] = [
    ("AdjustStreamThreadCountTest", "has not been run yet"),
    ("EOSUncleanShutdownIntegrationTest", "transactions are not built yet"),
    ("EosIntegrationTest", "transactions are not built yet"),
    ("EosV2UpgradeIntegrationTest", "transactions are not built yet"),
    ("GlobalKTableEOSIntegrationTest", "transactions are not built yet"),
    ("GlobalStateReprocessTest", "has not been run yet"),
    ("GlobalThreadShutDownOrderTest", "has not been run yet"),
    ("HighAvailabilityTaskAssignorIntegrationTest", "takes many minutes; it is clients who decide there"),
    ("IQv2StoreIntegrationTest", "has not been run yet"),
    ("KStreamRepartitionIntegrationTest", "has not been run yet"),
    (
        "PurgeRepartitionTopicIntegrationTest",
        "waits until Kafka takes segments away, an hour after its start here",
    ),
    ("QueryableStateIntegrationTest", "has not been run yet"),
    ("ResetIntegrationWithSslTest", "TLS is not built yet"),
    ("SlidingWindowedKStreamIntegrationTest", "has not been run yet"),
    ("SmokeTestDriverIntegrationTest", "processes exactly once; transactions are not built yet"),
    ("StandbyTaskEOSIntegrationTest", "transactions are not built yet"),
    ("StandbyTaskEOSMultiRebalanceIntegrationTest", "transactions are not built yet"),
    ("StreamsUncaughtExceptionHandlerIntegrationTest", "has not been run yet"),
];

const LIMIT: Duration = Duration::from_secs(5400);

/// Arguments that choose all tests.
fn selection() -> Vec<String> {
    let classes = CLASSES.iter().map(|class| format!("{PACKAGE}.{class}"));
    let single =
        SINGLE.iter().map(|(class, test)| format!("[engine:junit-jupiter]/[class:{PACKAGE}.{class}]/{test}"));
    classes.chain(single).collect()
}

fn tests(kind: Kind, only: &[String]) -> Result<Outcomes> {
    let cache = cache::folder()?;
    let folder = cache.join("streams");
    ensure!(folder.is_dir(), "{} is missing: run `cargo xtask setup --all` once", folder.display());
    let here = folders::temporary("blumfeld-streams-")?;
    let here = here.path();
    let (log, report) = (here.join("log4j.properties"), here.join("report.txt"));
    std::fs::write(&log, "log4j.rootLogger=OFF\n")?;
    let mut command = Command::new("java");
    command.args(["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
    command.arg(format!("-Dkafka.jars={}", cache.join("kafka-3.9/jars/*").display()));
    if kind == Kind::Blumfeld {
        command.arg(format!("-Dblumfeld.binary={}", cache::blumfeld_binary()?.display()));
    }
    command.arg(format!("-Dlog4j.configuration=file:{}", log.display()));
    command.arg(format!("-Djava.io.tmpdir={}", here.display()));
    // Ours first: it stands in for a class of the same name.
    let class_path = [folder.join("classes"), folder.join("jars/*")];
    command.arg("-cp").arg(std::env::join_paths(class_path)?).arg("blumfeld.streams.Run").arg(&report);
    command.args(if only.is_empty() { selection() } else { only.to_vec() }).current_dir(here);
    let finished = run(&mut command, "", LIMIT)?;
    let report = std::fs::read_to_string(report).with_context(|| format!("no report: {finished:?}"))?;
    Ok(outcomes(&report))
}

/// Reads the report: a word, and the id that JUnit gives to a test.
fn outcomes(report: &str) -> Outcomes {
    let outcome = |line: &str| {
        let (word, id) = line.split_once(' ')?;
        let outcome = match word {
            "PASSED" => Outcome::Passed,
            "FAILED" => Outcome::Failed,
            "SKIPPED" => Outcome::Skipped,
            _ => return None,
        };
        Some((id.to_owned(), outcome))
    };
    report.lines().filter_map(outcome).collect()
}

#[test]
fn kafka_streams() -> Result<()> {
    compare_kinds("Kafka Streams", tests)
}

#[test]
fn every_class_of_tests_that_is_named_here_exists() -> Result<()> {
    let jar = cache::folder()?.join("streams/jars/kafka-streams-3.9.2-test.jar");
    // Names of files stand in it as they are.
    let jar = std::fs::read(&jar).with_context(|| format!("no {}", jar.display()))?;
    let jar = String::from_utf8_lossy(&jar);
    let single = SINGLE.iter().map(|(class, _)| class);
    for class in CLASSES.iter().chain(single).chain(LEFT_OUT.iter().map(|(class, _)| class)) {
        let file = format!("{}/{class}.class", PACKAGE.replace('.', "/"));
        ensure!(jar.contains(&file), "Kafka Streams has no {class}");
    }
    Ok(())
}

#[test]
fn the_report_of_junit_is_read() {
    let report = "PASSED [engine:e]/[class:A]/[method:b()]\nFAILED [engine:e]/[class:C]\n";
    let expected =
        [("[engine:e]/[class:A]/[method:b()]", Outcome::Passed), ("[engine:e]/[class:C]", Outcome::Failed)];
    assert_eq!(outcomes(report), expected.map(|(id, outcome)| (id.to_owned(), outcome)).into());
}

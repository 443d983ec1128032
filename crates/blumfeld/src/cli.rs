//! The command line: verbs, and how a failure ends the process.
//!
//! Exit codes are those of Kafka's tools: 0, or 1 for whatever went wrong, wrong options included. Output that
//! nobody reads any more ends a verb quietly.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::error::VerbError;
use crate::verbs::{
    api_versions, cluster, completions, configs, console_consumer, console_producer, consumer_groups,
    consumer_perf, delete_records, dev, dump_log, end_to_end_latency, explain, get_offsets, leader_election,
    log_dirs, metadata, producer_perf, server, topics, verifiable_consumer, verifiable_producer,
};

/// A broker of Apache Kafka's protocol, and its tools
#[derive(Debug, Parser)]
#[command(name = "blumfeld", version, infer_long_args = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Start a broker (kafka-server-start)
    Server(server::ServerOptions),
    /// Start a cluster in one process, to try things out
    Dev(dev::DevOptions),
    /// Create, delete, describe, list and alter topics (kafka-topics)
    Topics(Box<topics::TopicsOptions>),
    /// Describe and alter configs (kafka-configs)
    Configs(Box<configs::ConfigsOptions>),
    /// Produce the lines of standard input (kafka-console-producer)
    ConsoleProducer(Box<console_producer::ConsoleProducerOptions>),
    /// Print the records of a topic (kafka-console-consumer)
    ConsoleConsumer(Box<console_consumer::ConsoleConsumerOptions>),
    /// List, describe, delete and reset groups of consumers (kafka-consumer-groups)
    ConsumerGroups(Box<consumer_groups::ConsumerGroupsOptions>),
    /// Print where partitions begin and end (kafka-get-offsets)
    GetOffsets(Box<get_offsets::GetOffsetsOptions>),
    /// Delete records below an offset (kafka-delete-records)
    DeleteRecords(Box<delete_records::DeleteRecordsOptions>),
    /// Elect leaders (kafka-leader-election)
    LeaderElection(Box<leader_election::LeaderElectionOptions>),
    /// Print what lies in log directories (kafka-log-dirs)
    LogDirs(Box<log_dirs::LogDirsOptions>),
    /// Print which requests brokers serve (kafka-broker-api-versions)
    ApiVersions(Box<api_versions::ApiVersionsOptions>),
    /// Print the id of the cluster (kafka-cluster)
    Cluster(Box<cluster::ClusterOptions>),
    /// Measure how fast records can be produced (kafka-producer-perf-test)
    ProducerPerf(Box<producer_perf::ProducerPerfOptions>),
    /// Measure how fast records can be read (kafka-consumer-perf-test)
    ConsumerPerf(Box<consumer_perf::ConsumerPerfOptions>),
    /// Measure how long records take from producer to reader (kafka-e2e-latency)
    EndToEndLatency(Box<end_to_end_latency::EndToEndLatencyOptions>),
    /// Produce numbers and tell of each in JSON (kafka-verifiable-producer)
    VerifiableProducer(Box<verifiable_producer::VerifiableProducerOptions>),
    /// Read in a group and tell of all that happens in JSON (kafka-verifiable-consumer)
    VerifiableConsumer(Box<verifiable_consumer::VerifiableConsumerOptions>),
    /// Print what the files of a partition hold (kafka-dump-log)
    DumpLog(dump_log::DumpLogOptions),
    /// Tell why a partition is as it is, and what happened to it
    Explain(explain::ExplainOptions),
    /// Carry the metadata tree out of a store, or into one
    Metadata(metadata::MetadataOptions),
    /// Print what lets a shell complete verbs and options
    Completions(completions::CompletionsOptions),
    /// Print a page of the manual, or write all of them
    Man(completions::ManOptions),
}

/// Runs the verb that `args` (the program's name first) ask for.
pub(crate) fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let verb = match Cli::try_parse_from(args) {
        Ok(cli) => cli.verb,
        Err(error) => {
            // Nothing can be done about an output that cannot be written to.
            let _ = error.print();
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if asked { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
    };
    let (name, result) = run(verb);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error while executing {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> (&'static str, Result<(), VerbError>) {
    match verb {
        Verb::Server(options) => ("server", server::run(&options)),
        Verb::Dev(options) => ("dev", dev::run(&options)),
        Verb::Topics(options) => ("topic command ", topics::run(&options)),
        Verb::Configs(options) => ("config command ", configs::run(&options)),
        Verb::ConsoleProducer(options) => ("console-producer", console_producer::run(&options)),
        Verb::ConsoleConsumer(options) => ("console-consumer", console_consumer::run(&options)),
        Verb::ConsumerGroups(options) => ("consumer group command ", consumer_groups::run(&options)),
        Verb::GetOffsets(options) => ("get-offsets", get_offsets::run(&options)),
        Verb::DeleteRecords(options) => ("delete-records", delete_records::run(&options)),
        Verb::LeaderElection(options) => ("leader-election", leader_election::run(&options)),
        Verb::LogDirs(options) => ("log-dirs", log_dirs::run(&options)),
        Verb::ApiVersions(options) => ("api-versions", api_versions::run(&options)),
        Verb::Cluster(options) => ("cluster", cluster::run(&options)),
        Verb::ProducerPerf(options) => ("producer-perf", producer_perf::run(&options)),
        Verb::ConsumerPerf(options) => ("consumer-perf", consumer_perf::run(&options)),
        Verb::EndToEndLatency(options) => ("end-to-end-latency", end_to_end_latency::run(&options)),
        Verb::VerifiableProducer(options) => ("verifiable-producer", verifiable_producer::run(&options)),
        Verb::VerifiableConsumer(options) => ("verifiable-consumer", verifiable_consumer::run(&options)),
        Verb::DumpLog(options) => ("dump-log", dump_log::run(&options)),
        Verb::Explain(options) => ("explain", explain::run(&options)),
        Verb::Metadata(options) => ("metadata command ", metadata::run(&options)),
        Verb::Completions(options) => ("completions", completions::completions(&options, Cli::command())),
        Verb::Man(options) => ("man", completions::man(&options, Cli::command())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_all_verbs_are_well_formed() {
        Cli::command().debug_assert();
    }

    fn parses(line: &str) -> bool {
        Cli::try_parse_from(line.split(' ')).is_ok()
    }

    #[test]
    fn command_lines_of_kafkas_documentation_are_understood() {
        for line in [
            "blumfeld server",
            "blumfeld server /etc/server.properties --override broker.id=1 --override log.dirs=/d",
            "blumfeld dev",
            "blumfeld dev --brokers 5 --port 9092 --data /d --racks 3 --override log.segment.bytes=1000000",
            "blumfeld topics --create --topic my-topic --bootstrap-server localhost:9092 --partitions 1 \
             --replication-factor 1 --config max.message.bytes=64000 --config flush.messages=1",
            "blumfeld topics --bootstrap-server a:1,b:2 --describe --under-replicated-partitions",
            "blumfeld topics --list --exclude-internal",
            "blumfeld topics --delete --topic t --if-exists --command-config f",
            "blumfeld topics --alter --topic t --partitions 40 --replica-assignment 1:2,2:1",
            "blumfeld topics --create --if-not-exists --topic=t",
            "blumfeld configs --bootstrap-server a:1 --entity-type topics --entity-name t --alter \
             --add-config max.message.bytes=128000,cleanup.policy=[compact,delete]",
            "blumfeld configs --describe --topic t --all",
            "blumfeld configs --alter --entity-type brokers --entity-default --delete-config log.cleaner.threads",
            "blumfeld console-producer --broker-list localhost:9092 --topic t --property parse.key=true \
             --property key.separator=: --compression-codec zstd --request-required-acks all --sync",
            "blumfeld console-producer --topic t --compression-codec",
            "blumfeld console-consumer --topic t --from-beginning --max-messages 1 --timeout-ms 100 \
             --property print.key=true --isolation-level read_committed",
            "blumfeld console-consumer --topic t --partition 0 --offset earliest",
            "blumfeld get-offsets --bootstrap-server a:1 --topic t --time -1 --partitions 0,1",
            "blumfeld get-offsets --topic-partitions t:1,u:0-3 --time earliest --exclude-internal-topics",
            "blumfeld delete-records --bootstrap-server a:1 --offset-json-file f",
            "blumfeld leader-election --bootstrap-server a:1 --election-type preferred --all-topic-partitions",
            "blumfeld leader-election --election-type unclean --topic t --partition 0 --admin.config f",
            "blumfeld log-dirs --describe --bootstrap-server a:1 --broker-list 0,1 --topic-list t,u",
            "blumfeld api-versions --bootstrap-server a:1",
            "blumfeld cluster cluster-id --bootstrap-server a:1",
            "blumfeld cluster unregister --bootstrap-server a:1 --id 0",
            "blumfeld consumer-groups --bootstrap-server a:1 --describe --all-groups --members --verbose",
            "blumfeld console-consumer --bootstrap-server a:1 --include a.* --group g --from-beginning",
            "blumfeld verifiable-producer --bootstrap-server a:1 --topic t --max-messages 3 --throughput -1 --acks -1",
            "blumfeld verifiable-consumer --broker-list a:1 --topic t --group-id g --reset-policy latest --verbose",
            "blumfeld producer-perf --topic t --num-records 5 --throughput -1 --record-size 100 --producer-props \
             bootstrap.servers=a:1 acks=all",
            "blumfeld producer-perf --topic t --num-records 5 --throughput 10.5 --payload-file f --producer.config g",
            "blumfeld consumer-perf --bootstrap-server a:1 --topic t --messages 100 --show-detailed-stats --group g",
            "blumfeld end-to-end-latency a:1 t 100 all 10 f",
            "blumfeld explain my-topic-3 --http 127.0.0.1:9644,127.0.0.1:9645 --json",
            "blumfeld completions zsh",
            "blumfeld man topics",
            "blumfeld man --dir d",
            "blumfeld metadata export --data-dir d --file f",
            "blumfeld metadata import --config server.properties --file f",
        ] {
            assert!(parses(line), "{line}");
        }
    }

    #[test]
    fn contradictions_are_refused_before_anything_is_done() {
        for line in [
            "blumfeld",
            "blumfeld topics",
            "blumfeld topics --list --create --topic t",
            "blumfeld configs --topic t",
            "blumfeld console-consumer --topic t --partition x",
        ] {
            assert!(!parses(line), "{line}");
        }
    }
}

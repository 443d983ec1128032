//! The command line: verbs, and how a failure ends the process.
//!
//! Exit codes are those of Kafka's tools: 0, or 1 for whatever went wrong, wrong options included. Output that
//! nobody reads any more ends a verb quietly.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::error::VerbError;
use crate::verbs::{
    configs, console_consumer, console_producer, dev, dump_log, explain, metadata, server, topics,
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
    /// Print what the files of a partition hold (kafka-dump-log)
    DumpLog(dump_log::DumpLogOptions),
    /// Tell why a partition is as it is, and what happened to it
    Explain(explain::ExplainOptions),
    /// Carry the metadata tree out of a store, or into one
    Metadata(metadata::MetadataOptions),
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
        Verb::DumpLog(options) => ("dump-log", dump_log::run(&options)),
        Verb::Explain(options) => ("explain", explain::run(&options)),
        Verb::Metadata(options) => ("metadata command ", metadata::run(&options)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_all_verbs_are_well_formed() {
        <Cli as clap::CommandFactory>::command().debug_assert();
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
            "blumfeld explain my-topic-3 --http 127.0.0.1:9644,127.0.0.1:9645 --json",
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

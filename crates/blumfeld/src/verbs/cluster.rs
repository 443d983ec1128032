//! `blumfeld cluster`: what kafka-cluster does. Brokers of a ZooKeeper cluster register themselves, and cannot be
//! unregistered by a request; that is said, as Kafka's tool says it.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;
use wire::api::ApiKey;

use super::{block_on, connect};
use crate::cluster::Topics;
use crate::cluster::settings::ConnectOptions;
use crate::error::VerbError;
use crate::output::{Format, FormatOption, stdout, write_json};

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterOptions {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the id of the cluster
    ClusterId(ClusterIdOptions),
    /// Unregister a broker (not in ZooKeeper mode)
    Unregister(UnregisterOptions),
}

#[derive(Debug, clap::Args)]
struct ClusterIdOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    format: FormatOption,
    /// A file of client properties
    #[arg(long, short, value_name = "FILE", conflicts_with = "command_config")]
    config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct UnregisterOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    /// The broker
    #[arg(long, short, value_name = "ID")]
    id: i32,
    /// A file of client properties
    #[arg(long, short, value_name = "FILE", conflicts_with = "command_config")]
    config: Option<PathBuf>,
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &ClusterOptions) -> Result<(), VerbError> {
    match &options.action {
        Action::ClusterId(options) => cluster_id(options),
        Action::Unregister(options) => unregister(options),
    }
}

/// The options with the file that `--config` names.
fn with_config(connect: &ConnectOptions, config: Option<&PathBuf>) -> ConnectOptions {
    let mut connect = connect.clone();
    connect.command_config = config.cloned().or(connect.command_config);
    connect
}

fn cluster_id(options: &ClusterIdOptions) -> Result<(), VerbError> {
    block_on(async {
        let options_of_client = with_config(&options.connect, options.config.as_ref());
        let mut cluster = connect(&options_of_client, "blumfeld-cluster").await?;
        let metadata = cluster.metadata(Topics::None).await?;
        let mut out = stdout();
        print_id(metadata.cluster_id.as_deref(), options.format.get(), &mut out)?;
        Ok(out.flush()?)
    })
}

fn print_id(id: Option<&str>, format: Format, out: &mut dyn Write) -> Result<(), VerbError> {
    match (format, id) {
        (Format::Json, id) => write_json(out, &json!({ "clusterId": id }))?,
        (_, Some(id)) => writeln!(out, "Cluster ID: {id}")?,
        (_, None) => writeln!(out, "No cluster ID found. The Kafka version is probably too old.")?,
    }
    Ok(())
}

fn unregister(options: &UnregisterOptions) -> Result<(), VerbError> {
    block_on(async {
        let options_of_client = with_config(&options.connect, options.config.as_ref());
        let mut cluster = connect(&options_of_client, "blumfeld-cluster").await?;
        let broker = cluster.brokers().iter().next().map(|(_, address)| address.clone());
        let Some(address) = broker else { return Ok(()) };
        let client = cluster
            .take_connection(&address)
            .await
            .map_err(|error| crate::cluster::ClusterError::Client { address: address.clone(), error })?;
        if client.all_versions().contains_key(&ApiKey::UnregisterBroker.code()) {
            return Err(VerbError::Failed(format!(
                "broker {} belongs to a KRaft cluster: unregister it with the tools of that release",
                options.id
            )));
        }
        let mut out = stdout();
        writeln!(out, "The target cluster does not support the broker unregistration API.")?;
        Ok(out.flush()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_told_in_kafkas_line_or_as_json() {
        let print = |id, format| {
            let mut out = Vec::new();
            print_id(id, format, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(print(Some("x"), Format::Kafka), "Cluster ID: x\n");
        assert_eq!(print(Some("x"), Format::Json), "{\"clusterId\":\"x\"}\n");
        assert!(print(None, Format::Table).starts_with("No cluster ID found."));
    }
}

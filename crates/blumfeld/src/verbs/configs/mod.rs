//! `blumfeld configs`: describes and alters configs of topics and brokers, with the options of Kafka's tool.

mod alter;
mod changes;
mod describe;
mod entity;

use std::path::PathBuf;

use clap::ArgGroup;

use crate::client::{ClientSettings, Cluster, ConnectArgs};
use crate::failure::Failure;
use crate::output::Format;
use entity::EntityArgs;

/// Describe and alter configs of topics and brokers
#[derive(Clone, Debug, clap::Args)]
#[command(group = ArgGroup::new("action").required(true).args(["describe", "alter"]))]
pub(crate) struct Args {
    #[command(flatten)]
    connect: ConnectArgs,
    /// A properties file with client configs
    #[arg(long, value_name = "FILE")]
    command_config: Option<PathBuf>,
    /// The form of the output
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    output: Format,

    /// Show the configs that are set; with --all those at their defaults too
    #[arg(long, help_heading = "Actions")]
    describe: bool,
    /// Change configs
    #[arg(long, help_heading = "Actions", requires = "change")]
    alter: bool,
    #[command(flatten)]
    entity: EntityArgs,

    /// Show configs at their defaults too
    #[arg(long, conflicts_with = "alter")]
    all: bool,
    #[command(flatten)]
    changes: changes::ChangeArgs,
    /// Accepted for Kafka's sake; nothing is asked here
    #[arg(long, hide = true)]
    force: bool,
}

/// Runs the verb.
pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let entity = args.entity.entity()?;
    let changes = if args.alter { Some(args.changes.read()?) } else { None };
    let settings =
        ClientSettings::read(&args.connect, "blumfeld-configs", args.command_config.as_deref(), &[])?;
    let mut cluster = Cluster::connect(settings).await?;
    match changes {
        Some(changes) => alter::run(args.output, &mut cluster, &entity, &changes).await,
        None => describe::run(args.output, args.all, &mut cluster, &entity).await,
    }
}

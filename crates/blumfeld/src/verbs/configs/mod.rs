//! `blumfeld configs`: what kafka-configs does for topics and brokers, with its options and its lines.
//!
//! Changes go out as IncrementalAlterConfigs (KIP-339), so that nothing else of the entity is touched.

mod alter;
pub(crate) mod describe;
mod entity;
pub(crate) mod resource;

use std::io::Write;
use std::path::PathBuf;

use super::{block_on, connect};
use crate::cluster::settings::ConnectOptions;
use crate::error::VerbError;
use crate::output::{FormatOption, stdout};
use entity::EntityOptions;

/// The options of the verb.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("action").required(true).args(["alter", "describe"]))]
pub(crate) struct ConfigsOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    format: FormatOption,
    #[command(flatten)]
    entity: EntityOptions,
    /// Change configs
    #[arg(long)]
    alter: bool,
    /// Show configs
    #[arg(long)]
    describe: bool,
    /// Show defaults too, not only what was set for the entity
    #[arg(long)]
    all: bool,
    /// Configs to set; values with commas in square brackets
    #[arg(long, value_name = "K=V,K=[A,B],...")]
    add_config: Option<String>,
    /// A properties file of configs to set
    #[arg(long, value_name = "FILE")]
    add_config_file: Option<PathBuf>,
    /// Configs to remove
    #[arg(long, value_name = "K,...")]
    delete_config: Option<String>,
    /// Accepted for compatibility; nothing is asked
    #[arg(long, hide = true)]
    force: bool,
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &ConfigsOptions) -> Result<(), VerbError> {
    let entity = options.entity.get()?;
    let changes = alter::Changes::read(options)?;
    block_on(async {
        let mut cluster = connect(&options.connect, "blumfeld-configs").await?;
        let mut out = stdout();
        match changes {
            Some(changes) => {
                alter::alter(&mut cluster, &entity, &changes, options.format.get(), &mut out).await?;
            }
            None => {
                describe::describe(&mut cluster, &entity, options.all, options.format.get(), &mut out)
                    .await?;
            }
        }
        Ok(out.flush()?)
    })
}

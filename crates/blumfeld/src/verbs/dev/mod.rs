//! `blumfeld dev`: a cluster in one process, for trying things out: several brokers, each with a port and a folder of
//! its own, over one metadata tree.
//!
//! Without `--data` everything is gone at the end: the tree is in memory, the folders lie in a temporary one. With
//! it both are kept, and the next start with as many brokers goes on where this one ended.

mod brokers;
mod folder;
mod known;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use metadata::DEFAULT_STORE_FILE;
use metadata::embedded::EmbeddedStore;
use server::run::Serving;

use crate::allocator;
use crate::error::VerbError;
use crate::logging;
use crate::verbs::server::{overrides, stay_small};

use brokers::Brokers;
use folder::TemporaryFolder;
use known::until_all_known;

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct DevOptions {
    /// How many brokers
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=32))]
    brokers: u8,
    /// Port of the first broker, the others have the next ones [default: free ports]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Where to keep logs and metadata [default: a temporary folder, removed at the end]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// So many racks, among which the brokers are spread
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=32))]
    racks: Option<u8>,
    /// A property of every broker, such as log.segment.bytes=1000000
    #[arg(long = "override", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

/// Serves until the process is asked to stop.
///
/// # Errors
/// If the options are refused or a broker does not start.
pub(crate) fn run(options: &DevOptions) -> Result<(), VerbError> {
    stay_small();
    let overrides = overrides(&options.overrides)?;
    // Its folder is removed when all brokers have ended.
    let temporary = match options.data {
        Some(_) => None,
        None => Some(TemporaryFolder::make()?),
    };
    let data = options.data.as_deref().or(temporary.as_ref().map(TemporaryFolder::path));
    let data = data.unwrap_or_else(|| Path::new("."));
    let brokers = Brokers {
        count: options.brokers,
        port: options.port,
        racks: options.racks,
        data,
        overrides: &overrides,
    };
    let (configs, warnings) = brokers.configs()?;
    let loggers = logging::init();
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let _reminder = allocator::give_back_freed_memory()
        .map_err(|error| VerbError::Failed(format!("no thread can be started: {error}")))?;
    let store = open_store(options.data.as_deref())?;
    let kept = options.data.is_some();
    server::serve::serve_several(configs, &loggers, store, |serving| {
        if let Err(error) = until_all_known(serving) {
            tracing::warn!(%error, "the cluster is not whole yet");
        }
        print(serving, data, kept, &mut io::stdout().lock())
    })
    .map_err(|error| VerbError::Failed(error.to_string()))
}

fn open_store(data: Option<&Path>) -> Result<EmbeddedStore, VerbError> {
    let opened = match data {
        None => EmbeddedStore::open_memory(),
        Some(data) => {
            std::fs::create_dir_all(data).map_err(|error| VerbError::file(data, error))?;
            EmbeddedStore::open_file(&data.join(DEFAULT_STORE_FILE))
        }
    };
    opened.map_err(|error| VerbError::Failed(format!("the metadata store cannot be opened: {error}")))
}

/// What is said when all brokers serve: where they are, and how they are tried.
fn print(serving: &[Serving], data: &Path, kept: bool, out: &mut impl Write) -> io::Result<()> {
    let addresses: Vec<_> =
        serving.iter().filter_map(|broker| broker.addresses.first()).map(ToString::to_string).collect();
    let bootstrap = addresses.join(",");
    writeln!(out, "Blumfeld {}, a cluster of {} in one process", env!("CARGO_PKG_VERSION"), serving.len())?;
    for (broker, address) in serving.iter().zip(&addresses) {
        let watch = broker.http.map(|http| format!("  watch http://{http}/readyz")).unwrap_or_default();
        writeln!(out, "  broker {:<3} {address}{watch}", broker.id)?;
    }
    let fate = if kept { "kept" } else { "removed at the end" };
    writeln!(out, "  data       {} ({fate})", data.display())?;
    let copies = serving.len().min(3);
    writeln!(
        out,
        "  try        blumfeld topics --bootstrap-server {} --create --topic t --partitions 6 \
         --replication-factor {copies}",
        addresses.first().map_or("", String::as_str)
    )?;
    writeln!(out, "bootstrap.servers={bootstrap}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_ends_with_the_line_that_clients_need() {
        let serving: Vec<_> = (1..=2)
            .map(|id| Serving {
                id,
                addresses: vec![([127, 0, 0, 1], 9000 + u16::try_from(id).unwrap()).into()],
                http: Some(([127, 0, 0, 1], 80).into()),
            })
            .collect();
        let mut out = Vec::new();
        print(&serving, Path::new("/d"), false, &mut out).unwrap();
        expect_test::expect![[r"
            Blumfeld 0.1.0, a cluster of 2 in one process
              broker 1   127.0.0.1:9001  watch http://127.0.0.1:80/readyz
              broker 2   127.0.0.1:9002  watch http://127.0.0.1:80/readyz
              data       /d (removed at the end)
              try        blumfeld topics --bootstrap-server 127.0.0.1:9001 --create --topic t --partitions 6 --replication-factor 2
            bootstrap.servers=127.0.0.1:9001,127.0.0.1:9002
        "]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }
}

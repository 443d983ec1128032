//! `blumfeld server`: the broker, from a `server.properties` of Kafka or from nothing.

use std::path::PathBuf;

use node::config::KafkaConfig;

use crate::allocator;
use crate::cluster::settings::parse_properties;
use crate::error::VerbError;
use crate::logging;

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerOptions {
    /// A server.properties; without one the broker serves localhost:9092 from ./blumfeld-data
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// A property that wins over the file's, such as log.dirs=/data
    #[arg(long = "override", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

/// Serves until the process is asked to stop.
///
/// # Errors
/// If the configuration is refused or the broker does not start.
pub(crate) fn run(options: &ServerOptions) -> Result<(), VerbError> {
    stay_small();
    let overrides = overrides(&options.overrides)?;
    let (config, warnings) = match &options.file {
        None => KafkaConfig::without_file(&overrides),
        Some(path) => KafkaConfig::from_properties(&parse_properties(path)?, &overrides),
    }
    .map_err(|error| VerbError::Usage(error.to_string()))?;
    let loggers = logging::init();
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let _reminder = allocator::give_back_freed_memory()
        .map_err(|error| VerbError::Failed(format!("no thread can be started: {error}")))?;
    server::serve(config, loggers).map_err(|error| VerbError::Failed(error.to_string()))
}

/// A broker's own memory is small and scattered: in pages of 2 MiB an idle one would take 10 MB more.
pub(crate) fn stay_small() {
    // A kernel that knows no such pages has nothing to switch off.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// The keys and values of `--override`.
///
/// # Errors
/// If one has no key or no sign of equality.
pub(crate) fn overrides(given: &[String]) -> Result<Vec<(String, String)>, VerbError> {
    let pair = |text: &String| match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(VerbError::Usage(format!("--override {text}: expected key=value"))),
    };
    given.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_is_a_key_and_a_value_which_may_hold_further_signs() {
        let given = ["a=b".to_owned(), "c=d=e".to_owned(), "empty=".to_owned()];
        let pairs = overrides(&given).unwrap();
        assert_eq!(pairs[1], ("c".to_owned(), "d=e".to_owned()));
        assert_eq!(pairs[2].1, "");
        assert!(overrides(&["novalue".to_owned()]).is_err());
        assert!(overrides(&["=x".to_owned()]).is_err());
    }

    #[test]
    fn an_invalid_configuration_stops_the_start_with_one_line() {
        let options = ServerOptions { file: None, overrides: vec!["num.io.threads=x".to_owned()] };
        let error = run(&options).unwrap_err().to_string();
        assert!(error.contains("num.io.threads") && !error.contains('\n'), "{error}");
    }
}

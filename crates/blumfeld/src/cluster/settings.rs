//! The options by which a tool reaches a cluster, and the properties of Kafka's clients that it honours.
//!
//! A property is taken out when it is understood; what is left at the end has no effect and is told.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use node::config::Properties;

use crate::error::VerbError;

/// Where the cluster is.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ConnectOptions {
    /// Brokers to ask first, separated by commas
    #[arg(long, alias = "broker-list", value_name = "HOST:PORT,...", default_value = "localhost:9092")]
    pub(crate) bootstrap_server: String,
    /// A file of client properties
    #[arg(
        long,
        aliases = ["admin.config", "consumer.config", "producer.config"],
        value_name = "FILE"
    )]
    pub(crate) command_config: Option<PathBuf>,
}

impl ConnectOptions {
    /// The properties of the file, with `overrides` (`key=value`) on top, and `defaults` below.
    ///
    /// # Errors
    /// If the file cannot be read or an override has no `=`.
    pub(crate) fn properties(&self, overrides: &[String]) -> Result<ClientProperties, VerbError> {
        let mut values = BTreeMap::new();
        if let Some(path) = &self.command_config {
            values = read_properties(path)?;
        }
        for pair in overrides {
            let (key, value) = key_and_value(pair)?;
            values.insert(key, value);
        }
        Ok(ClientProperties { values })
    }

    /// The addresses.
    ///
    /// # Errors
    /// If one is not `host:port`.
    pub(crate) fn servers(&self) -> Result<Vec<String>, VerbError> {
        let servers = self.bootstrap_server.split(',').map(str::trim).filter(|server| !server.is_empty());
        let servers: Vec<String> = servers.map(str::to_owned).collect();
        for server in &servers {
            let port = server.rsplit_once(':').filter(|(host, _)| !host.is_empty());
            if port.and_then(|(_, port)| port.parse::<u16>().ok()).is_none() {
                return Err(VerbError::Usage(format!(
                    "--bootstrap-server {server}: a broker is given as HOST:PORT, such as localhost:9092"
                )));
            }
        }
        if servers.is_empty() {
            return Err(VerbError::Usage("--bootstrap-server names no broker".to_owned()));
        }
        Ok(servers)
    }
}

/// A properties file with the lines of its entries.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn parse_properties(path: &Path) -> Result<Properties, VerbError> {
    let bytes = fs::read(path).map_err(|error| VerbError::file(path, error))?;
    Properties::parse(&bytes).map_err(|error| VerbError::Usage(format!("{}: {error}", path.display())))
}

/// A properties file as plain keys and values.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn read_properties(path: &Path) -> Result<BTreeMap<String, String>, VerbError> {
    let properties = parse_properties(path)?;
    Ok(properties.iter().map(|(key, entry)| (key.to_owned(), entry.value.clone())).collect())
}

/// Splits `key=value`.
///
/// # Errors
/// If there is no `=`.
pub(crate) fn key_and_value(pair: &str) -> Result<(String, String), VerbError> {
    match pair.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err(VerbError::Usage(format!("{pair}: KEY=VALUE is expected"))),
    }
}

/// Properties of a client, to be taken out one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientProperties {
    values: BTreeMap<String, String>,
}

impl ClientProperties {
    /// Sets a property that was not given.
    pub(crate) fn set_default(&mut self, key: &str, value: impl Into<String>) {
        self.values.entry(key.to_owned()).or_insert_with(|| value.into());
    }

    /// Takes a property as text.
    pub(crate) fn take(&mut self, key: &str) -> Option<String> {
        self.values.remove(key)
    }

    /// Takes a property as a number or whatever else can be read from text.
    ///
    /// # Errors
    /// If the text cannot be read so.
    pub(crate) fn take_as<T: std::str::FromStr>(&mut self, key: &str, default: T) -> Result<T, VerbError> {
        let Some(text) = self.take(key) else { return Ok(default) };
        text.trim().parse().map_err(|_| invalid(key, &text))
    }

    /// Takes a property in milliseconds.
    ///
    /// # Errors
    /// If it is no number, or negative.
    pub(crate) fn take_millis(&mut self, key: &str, default: Duration) -> Result<Duration, VerbError> {
        let Some(text) = self.take(key) else { return Ok(default) };
        let millis: i32 = text.trim().parse().map_err(|_| invalid(key, &text))?;
        u64::try_from(millis).map(Duration::from_millis).map_err(|_| invalid(key, &text))
    }

    /// Takes a property that is true or false; as in Java, whatever is not `true` is false.
    pub(crate) fn take_flag(&mut self, key: &str, default: bool) -> bool {
        self.take(key).map_or(default, |text| text.trim().eq_ignore_ascii_case("true"))
    }

    /// The names of what was not taken.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// Tells on stderr which properties have no effect.
    pub(crate) fn warn_rest(&self) {
        let rest: Vec<&str> = self.rest().collect();
        if !rest.is_empty() {
            eprintln!("WARNING: these client properties have no effect here: {}", rest.join(", "));
        }
    }
}

/// The error of a property whose value cannot be used.
pub(crate) fn invalid(key: &str, value: &str) -> VerbError {
    VerbError::Usage(format!("{value} is no valid value of the client property {key}"))
}

/// How a tool talks to a cluster.
#[derive(Clone, Debug)]
pub(crate) struct ClientSettings {
    /// `client.id`
    pub(crate) client_id: String,
    /// `request.timeout.ms`: for one request.
    pub(crate) request_timeout: Duration,
    /// `default.api.timeout.ms`: for all attempts at one thing.
    pub(crate) api_timeout: Duration,
    /// `retry.backoff.ms`: between two attempts.
    pub(crate) retry_backoff: Duration,
    /// How long brokers that cannot be connected to are tried again.
    pub(crate) connect_patience: Duration,
}

impl ClientSettings {
    /// Takes what concerns every client. `client_id` is the default of `client.id`.
    ///
    /// # Errors
    /// If a value cannot be used, or the cluster is to be reached by TLS or SASL.
    pub(crate) fn take(properties: &mut ClientProperties, client_id: &str) -> Result<Self, VerbError> {
        if let Some(protocol) = properties.take("security.protocol")
            && protocol.trim() != "PLAINTEXT"
        {
            return Err(VerbError::Usage(format!(
                "security.protocol {protocol}: only PLAINTEXT is supported by these tools for now"
            )));
        }
        properties.take("bootstrap.servers");
        let api_timeout = properties.take_millis("default.api.timeout.ms", Duration::from_secs(60))?;
        Ok(Self {
            client_id: properties.take("client.id").unwrap_or_else(|| client_id.to_owned()),
            request_timeout: properties.take_millis("request.timeout.ms", Duration::from_secs(30))?,
            retry_backoff: properties.take_millis("retry.backoff.ms", Duration::from_millis(100))?,
            connect_patience: api_timeout.min(Duration::from_secs(10)),
            api_timeout,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(servers: &str) -> ConnectOptions {
        ConnectOptions { bootstrap_server: servers.to_owned(), command_config: None }
    }

    #[test]
    fn servers_are_hosts_with_ports() {
        assert_eq!(options("a:1, [::1]:9092,").servers().unwrap(), ["a:1", "[::1]:9092"]);
        for wrong in ["a", "a:x", ":9", "a:70000", ",", ""] {
            assert!(matches!(options(wrong).servers(), Err(VerbError::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn properties_are_taken_once_and_the_rest_is_told() {
        let overrides = ["request.timeout.ms=5".to_owned(), "linger=a=b".to_owned()];
        let mut properties = options("a:1").properties(&overrides).unwrap();
        properties.set_default("request.timeout.ms", "6");
        let settings = ClientSettings::take(&mut properties, "tool").unwrap();
        assert_eq!(settings.request_timeout, Duration::from_millis(5));
        assert_eq!(settings.client_id, "tool");
        assert_eq!(properties.rest().collect::<Vec<_>>(), ["linger"]);
        assert_eq!(properties.take("linger").as_deref(), Some("a=b"));
    }

    #[test]
    fn a_file_gives_properties_and_the_command_line_wins() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("client.properties");
        fs::write(&path, "client.id = of file\nretry.backoff.ms=7\n").unwrap();
        let options = ConnectOptions { command_config: Some(path), ..options("a:1") };
        let mut properties = options.properties(&["retry.backoff.ms=8".to_owned()]).unwrap();
        let settings = ClientSettings::take(&mut properties, "tool").unwrap();
        assert_eq!((settings.client_id.as_str(), settings.retry_backoff.as_millis()), ("of file", 8));
    }

    #[test]
    fn what_cannot_be_honoured_is_refused() {
        for pair in ["security.protocol=SSL", "request.timeout.ms=-1", "retry.backoff.ms=x"] {
            let mut properties = options("a:1").properties(&[pair.to_owned()]).unwrap();
            assert!(matches!(ClientSettings::take(&mut properties, "t"), Err(VerbError::Usage(_))), "{pair}");
        }
        assert!(options("a:1").properties(&["novalue".to_owned()]).is_err());
    }
}

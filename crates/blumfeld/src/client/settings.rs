//! The options that every client verb has, and the client configs that it reads from files and pairs.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use node::config::Properties;

use crate::failure::Failure;

/// How to reach the cluster.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ConnectArgs {
    /// The brokers to connect to first, separated by commas
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', default_value = "localhost:9092")]
    pub(crate) bootstrap_server: Vec<String>,
}

/// How to reach the cluster, read and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientSettings {
    /// `host:port` of each first broker.
    pub(crate) bootstrap_servers: Vec<String>,
    /// `client.id`.
    pub(crate) client_id: String,
    /// `request.timeout.ms`.
    pub(crate) request_timeout: Duration,
    /// All client configs that were given.
    pub(crate) configs: BTreeMap<String, String>,
}

impl ClientSettings {
    /// Reads the file, if there is one, and the pairs on top of it.
    pub(crate) fn read(
        connect: &ConnectArgs,
        client_id: &str,
        file: Option<&Path>,
        over: &[String],
    ) -> Result<Self, Failure> {
        let mut configs = match file {
            Some(file) => read_file(file)?,
            None => BTreeMap::new(),
        };
        configs.extend(pairs(over)?);
        let protocol = configs.get("security.protocol").map_or("PLAINTEXT", String::as_str);
        if protocol != "PLAINTEXT" {
            let hint = "Only PLAINTEXT is available: name a PLAINTEXT listener by --bootstrap-server.";
            return Err(Failure::new(format!("security.protocol={protocol} is not available")).hint(hint));
        }
        let timeout = configs.get("request.timeout.ms").map_or(Ok(30_000), |text| text.trim().parse());
        let timeout =
            timeout.map_err(|_| Failure::new("request.timeout.ms must be a number of milliseconds"))?;
        Ok(Self {
            bootstrap_servers: connect.bootstrap_server.iter().map(|address| with_port(address)).collect(),
            client_id: configs.get("client.id").cloned().unwrap_or_else(|| client_id.to_owned()),
            request_timeout: Duration::from_millis(timeout),
            configs,
        })
    }
}

fn read_file(file: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let cannot = |reason: String| Failure::new(format!("cannot read {}: {reason}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| cannot(error.to_string()))?;
    let properties = Properties::parse(&bytes).map_err(|error| cannot(error.to_string()))?;
    Ok(properties.iter().map(|(key, entry)| (key.to_owned(), entry.value.trim().to_owned())).collect())
}

/// The address with port 9092 if it names none.
fn with_port(address: &str) -> String {
    let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { address.to_owned() } else { format!("{address}:9092") }
}

/// Reads `key=value` texts.
pub(crate) fn pairs(texts: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |text: &String| match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(Failure::new(format!("'{text}' is not of the form key=value"))),
    };
    texts.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(over: &[&str]) -> Result<ClientSettings, Failure> {
        let connect = ConnectArgs { bootstrap_server: vec!["h".to_owned(), "[::1]:9093".to_owned()] };
        let over: Vec<_> = over.iter().map(|text| (*text).to_owned()).collect();
        ClientSettings::read(&connect, "tool", None, &over)
    }

    #[test]
    fn addresses_get_kafkas_port_and_configs_their_defaults() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.bootstrap_servers, ["h:9092", "[::1]:9093"]);
        assert_eq!((settings.client_id.as_str(), settings.request_timeout.as_secs()), ("tool", 30));
        let settings = read(&["client.id=me", "request.timeout.ms=5"]).unwrap();
        assert_eq!((settings.client_id.as_str(), settings.request_timeout.as_millis()), ("me", 5));
    }

    #[test]
    fn what_cannot_be_honoured_is_refused() {
        assert!(read(&["security.protocol=SSL"]).unwrap_err().to_string().contains("security.protocol=SSL"));
        assert!(read(&["request.timeout.ms=x"]).unwrap_err().to_string().contains("number of milliseconds"));
        assert!(read(&["novalue"]).unwrap_err().to_string().contains("key=value"));
    }
}

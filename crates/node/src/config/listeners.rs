//! Listeners: `listeners`, `advertised.listeners` and the security protocol of each (KIP-103, KIP-291).
//! An entry is `NAME://host:port`; names are upper-cased, an empty host means every interface when bound
//! and the machine's own name when advertised, port 0 means one that the system chooses.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// How a listener's connections are protected; the number is the one in znodes and requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecurityProtocol {
    /// TCP, no authentication.
    Plaintext,
    /// TLS.
    Ssl,
    /// TCP with SASL.
    SaslPlaintext,
    /// TLS with SASL.
    SaslSsl,
}

impl SecurityProtocol {
    /// Reads a protocol's name, in any case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Plaintext, Self::Ssl, Self::SaslPlaintext, Self::SaslSsl];
        all.into_iter().find(|protocol| protocol.name().eq_ignore_ascii_case(name))
    }

    /// Kafka's name of the protocol.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::SaslSsl => "SASL_SSL",
        }
    }

    /// The protocol of a number in control requests.
    #[must_use]
    pub fn from_id(id: i16) -> Option<Self> {
        let all = [Self::Plaintext, Self::Ssl, Self::SaslPlaintext, Self::SaslSsl];
        all.into_iter().find(|protocol| protocol.id() == id)
    }

    /// The number of the protocol in control requests.
    #[must_use]
    pub fn id(self) -> i16 {
        match self {
            Self::Plaintext => 0,
            Self::Ssl => 1,
            Self::SaslPlaintext => 2,
            Self::SaslSsl => 3,
        }
    }

    /// Whether connections authenticate by SASL.
    #[must_use]
    pub fn uses_sasl(self) -> bool {
        matches!(self, Self::SaslPlaintext | Self::SaslSsl)
    }
}

impl fmt::Display for SecurityProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One listener, as bound or as advertised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndPoint {
    /// The listener's name, upper-case.
    pub listener_name: String,
    /// Host name or address without brackets; empty means every interface (bound) or this machine (advertised).
    pub host: String,
    /// The port; 0 lets the system choose.
    pub port: u16,
    /// How its connections are protected.
    pub security_protocol: SecurityProtocol,
}

impl fmt::Display for EndPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listener_name, host, port, .. } = self;
        if host.contains(':') {
            return write!(f, "{listener_name}://[{host}]:{port}");
        }
        write!(f, "{listener_name}://{host}:{port}")
    }
}

/// Listener name to security protocol.
pub type SecurityProtocolMap = BTreeMap<String, SecurityProtocol>;

/// Parses `listener.security.protocol.map`.
///
/// # Errors
/// What is wrong with it, to stand behind the key's name.
pub fn parse_protocol_map(text: &str) -> Result<SecurityProtocolMap, String> {
    let mut map = SecurityProtocolMap::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let Some((name, protocol)) = entry.rsplit_once(':') else {
            return Err(format!("'{entry}' is not of the form NAME:PROTOCOL"));
        };
        let Some(protocol) = SecurityProtocol::parse(protocol.trim()) else {
            let allowed = "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL";
            return Err(format!("'{}' is not a security protocol; it must be {allowed}", protocol.trim()));
        };
        map.insert(name.trim().to_uppercase(), protocol);
    }
    Ok(map)
}

/// Parses a list of listeners; their names must be in `protocols`.
///
/// # Errors
/// What is wrong with it, to stand behind the key's name.
pub fn parse_listeners(text: &str, protocols: &SecurityProtocolMap) -> Result<Vec<EndPoint>, String> {
    text.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .map(|e| parse_one(e, protocols))
        .collect()
}

fn parse_one(entry: &str, protocols: &SecurityProtocolMap) -> Result<EndPoint, String> {
    let form = || format!("'{entry}' is not of the form NAME://host:port");
    let (name, address) = entry.split_once("://").ok_or_else(form)?;
    let (host, port) = address.rsplit_once(':').ok_or_else(form)?;
    let host = host.strip_prefix('[').unwrap_or(host);
    let host = host.strip_suffix(']').unwrap_or(host);
    let is_host_char = |c: char| c.is_ascii_alphanumeric() || "-%._:".contains(c);
    if !host.chars().all(is_host_char) {
        return Err(form());
    }
    let port = port.parse().map_err(|_| format!("'{entry}': the port must be a number from 0 to 65535"))?;
    let listener_name = name.to_uppercase();
    let Some(security_protocol) = protocols.get(&listener_name).copied() else {
        return Err(format!("listener {listener_name} has no entry in listener.security.protocol.map"));
    };
    Ok(EndPoint { listener_name, host: host.to_owned(), port, security_protocol })
}

/// Checks that no name comes twice.
///
/// # Errors
/// The name that does.
pub fn check_names(listeners: &[EndPoint]) -> Result<(), String> {
    for (index, listener) in listeners.iter().enumerate() {
        if listeners.iter().take(index).any(|earlier| earlier.listener_name == listener.listener_name) {
            return Err(format!("the listener name {} is used twice", listener.listener_name));
        }
    }
    Ok(())
}

/// Checks that no port comes twice, except for one IPv4 and one IPv6 address that share it.
///
/// # Errors
/// The port that does.
pub fn check_ports(listeners: &[EndPoint]) -> Result<(), String> {
    for listener in listeners.iter().filter(|listener| listener.port != 0) {
        let hosts: Vec<&str> =
            listeners.iter().filter(|other| other.port == listener.port).map(|l| l.host.as_str()).collect();
        let allowed = match hosts.as_slice() {
            [_] => true,
            [a, b] => is_v4(a) && is_v6(b) || is_v6(a) && is_v4(b),
            _ => false,
        };
        if !allowed {
            let port = listener.port;
            return Err(format!(
                "port {port} is used twice (only one IPv4 and one IPv6 address may share a port)"
            ));
        }
    }
    Ok(())
}

fn is_v4(host: &str) -> bool {
    host.parse::<Ipv4Addr>().is_ok()
}

fn is_v6(host: &str) -> bool {
    host.parse::<Ipv6Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "PLAINTEXT:PLAINTEXT,SSL:SSL, inner : sasl_plaintext";

    fn parse(text: &str) -> Result<Vec<EndPoint>, String> {
        parse_listeners(text, &parse_protocol_map(MAP).unwrap())
    }

    #[test]
    fn a_listener_is_name_host_and_port() {
        let listeners = parse(" plaintext://host-1:9092 , SSL://[::1]:9093,INNER://:0").unwrap();
        let shown: Vec<_> = listeners.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["PLAINTEXT://host-1:9092", "SSL://[::1]:9093", "INNER://:0"]);
        assert_eq!(listeners[2].security_protocol, SecurityProtocol::SaslPlaintext);
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn malformed_listeners_are_told_apart() {
        for (text, part) in [
            ("PLAINTEXT", "not of the form"),
            ("PLAINTEXT://host", "not of the form"),
            ("PLAINTEXT://a b:1", "not of the form"),
            ("PLAINTEXT://h:65536", "from 0 to 65535"),
            ("PLAINTEXT://h:-1", "from 0 to 65535"),
            ("OTHER://h:1", "listener OTHER has no entry"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_protocol_map_takes_only_the_four_protocols() {
        assert!(parse_protocol_map("A:FOO").unwrap_err().contains("'FOO' is not a security protocol"));
        assert!(parse_protocol_map("A").unwrap_err().contains("NAME:PROTOCOL"));
        let last_wins = parse_protocol_map("A:SSL,a:PLAINTEXT").unwrap();
        assert_eq!(last_wins.get("A"), Some(&SecurityProtocol::Plaintext));
    }

    #[test]
    fn ports_and_names_are_unique() {
        let check = |text: &str| check_ports(&parse(text).unwrap());
        assert!(check("PLAINTEXT://:9092,SSL://:9092").is_err());
        assert!(check("PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.2:9092").is_err());
        assert!(check("PLAINTEXT://127.0.0.1:9092,SSL://[::1]:9092").is_ok());
        assert!(check("PLAINTEXT://127.0.0.1:9092,SSL://[::1]:9092,INNER://:9092").is_err());
        assert!(check("PLAINTEXT://h:0,SSL://h:0").is_ok());
        assert!(check_names(&parse("SSL://:1,ssl://:2").unwrap()).unwrap_err().contains("SSL"));
    }
}

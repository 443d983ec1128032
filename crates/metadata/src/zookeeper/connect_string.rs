//! `zookeeper.connect`: the servers of an ensemble, and the znode below which the cluster lives.

use crate::path;
use std::fmt;
use std::str::FromStr;

/// The port of a server that is named without one.
const DEFAULT_PORT: u16 = 2181;

/// The servers of an ensemble and a chroot, as in `host1:2181,host2:2181/kafka`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectString {
    /// Host (a name or an address without brackets) and port of each server; at least one.
    pub servers: Vec<(String, u16)>,
    /// The path below which everything lies; `None` is the root.
    pub chroot: Option<String>,
}

/// Why a text does not name an ensemble.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectStringError {
    /// It names no server.
    #[error("no server is named")]
    NoServer,
    /// A server is no `host:port`.
    #[error("{0:?} is no host:port")]
    Server(String),
    /// The chroot is no path of a znode.
    #[error("{0:?} is no path of a znode")]
    Chroot(String),
}

impl FromStr for ConnectString {
    type Err = ConnectStringError;

    fn from_str(text: &str) -> Result<Self, ConnectStringError> {
        let text = text.trim();
        let (servers, chroot) = match text.find('/') {
            None => (text, None),
            Some(at) => (text.get(..at).unwrap_or_default(), text.get(at..)),
        };
        let chroot = match chroot {
            None | Some(path::ROOT) => None,
            Some(path) if path::is_valid(path) => Some(path.to_owned()),
            Some(path) => return Err(ConnectStringError::Chroot(path.to_owned())),
        };
        let servers = servers.split(',').map(str::trim).filter(|server| !server.is_empty());
        let servers = servers.map(parse_server).collect::<Result<Vec<_>, _>>()?;
        if servers.is_empty() {
            return Err(ConnectStringError::NoServer);
        }
        Ok(Self { servers, chroot })
    }
}

/// `host`, `host:port`, `[address]` or `[address]:port`.
fn parse_server(text: &str) -> Result<(String, u16), ConnectStringError> {
    let malformed = || ConnectStringError::Server(text.to_owned());
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or_else(malformed)?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(digits) => digits.parse().map_err(|_| malformed())?,
        None if port.is_empty() => DEFAULT_PORT,
        None => return Err(malformed()),
    };
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err(malformed());
    }
    Ok((host.to_owned(), port))
}

impl fmt::Display for ConnectString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (host, port)) in self.servers.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            if host.contains(':') {
                write!(f, "{comma}[{host}]:{port}")?;
            } else {
                write!(f, "{comma}{host}:{port}")?;
            }
        }
        f.write_str(self.chroot.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String, ConnectStringError> {
        text.parse::<ConnectString>().map(|parsed| parsed.to_string())
    }

    #[test]
    fn servers_and_chroot_are_told_apart() {
        assert_eq!(shown("a:1").unwrap(), "a:1");
        assert_eq!(
            shown(" a:1 , b,[::1],[::1]:7/kafka/x ").unwrap(),
            "a:1,b:2181,[::1]:2181,[::1]:7/kafka/x"
        );
        assert_eq!(shown("a:1/").unwrap(), "a:1", "the root is no chroot");
        assert_eq!("h/k".parse::<ConnectString>().unwrap().chroot.as_deref(), Some("/k"));
    }

    #[test]
    fn what_names_no_ensemble_is_refused() {
        assert_eq!(shown(""), Err(ConnectStringError::NoServer));
        assert_eq!(shown("/kafka"), Err(ConnectStringError::NoServer));
        for text in ["a:", "a:x", "a:70000", ":1", "[::1:1", "[::1]x", "a b:1"] {
            assert!(matches!(shown(text), Err(ConnectStringError::Server(_))), "{text}");
        }
        for text in ["a:1//", "a:1/k/", "a:1/../k"] {
            assert!(matches!(shown(text), Err(ConnectStringError::Chroot(_))), "{text}");
        }
    }
}

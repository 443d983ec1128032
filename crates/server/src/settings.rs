//! What the server is told, and how it follows from the broker's configuration.

use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use net::ConnectionSettings;
use net::listener::ListenerSettings;
use net::table::{AddressRates, ConnectionLimits, RateWindows};
use node::config::{ConnectionRates, CurrentConfig, EndPoint, KafkaConfig};
use thiserror::Error;

use crate::node_trait::Wanted;

/// The key of the HTTP address.
const HTTP_ADDRESS: &str = "blumfeld.http.address";
/// Threads for cold reads and for what blocks at start and end.
const BLOCKING_THREADS: usize = 8;
/// How long requests in service may take when the server stops.
const DRAIN: Duration = Duration::from_secs(1);

/// What the server is told.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The listeners, in the order of the configuration.
    pub listeners: Vec<ListenerSettings>,
    /// The one of them whose connections have a thread of their own (`control.plane.listener.name`).
    pub control_plane: Option<Arc<str>>,
    /// How many connections there may be.
    pub limits: ConnectionLimits,
    /// Threads that serve sockets, for all listeners together.
    pub network_threads: usize,
    /// Threads for what blocks.
    pub blocking_threads: usize,
    /// The page for those who watch.
    pub http: HttpSettings,
    /// How long requests in service may take when the server stops.
    pub drain: Duration,
    /// Lines of the start block besides the server's own: what, and how it is.
    pub about: Vec<(String, String)>,
}

/// Where the HTTP page is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// Host and port; empty: no page.
    pub address: String,
    /// Whether just this address was asked for, so that another one will not do.
    pub asked: bool,
}

/// Why a configuration cannot be served.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SettingsError {
    /// A host of `max.connections.per.ip.overrides` has no address.
    #[error("max.connections.per.ip.overrides: the host {0:?} cannot be resolved")]
    Override(String),
    /// A host of which a rate of connections is stored has no address.
    #[error("connection_creation_rate: the host {0:?} cannot be resolved")]
    Rate(String),
}

impl ServerSettings {
    /// What a configuration means for the server.
    ///
    /// # Errors
    /// If it asks for what cannot be had.
    pub fn from_config(config: &KafkaConfig) -> Result<Self, SettingsError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // The rates of addresses are in the store, which is opened later.
        let (limits, unresolved) = limits(config, &ConnectionRates::default());
        if let Some(error) = unresolved {
            return Err(error);
        }
        Ok(Self {
            limits,
            listeners: listeners(config),
            control_plane: config.listeners.control_plane.as_deref().map(Arc::from),
            // As many as cores may write at once, and one more stays for the sockets when a disk stalls.
            network_threads: config.num_network_threads.min(cores.saturating_add(1)).max(2),
            blocking_threads: BLOCKING_THREADS,
            http: HttpSettings {
                address: config.blumfeld_http_address.clone(),
                asked: config.values().is_given(HTTP_ADDRESS),
            },
            drain: DRAIN,
            about: Vec::new(),
        })
    }
}

impl Wanted {
    /// What a configuration that comes in force while the server runs asks for: a host of the limits that has no address is
    /// told, and goes without a limit of its own.
    pub(crate) fn of(config: &CurrentConfig) -> Self {
        let (limits, unresolved) = limits(config, config.connection_rates());
        if let Some(error) = unresolved {
            tracing::warn!(%error, "a limit of connections has no effect");
        }
        Self { limits, listeners: listeners(config) }
    }
}

/// The listeners of a configuration, in its order.
fn listeners(config: &KafkaConfig) -> Vec<ListenerSettings> {
    let connection = ConnectionSettings {
        max_frame_bytes: config.socket_request_max_bytes,
        max_idle: u64::try_from(config.connections_max_idle_ms).ok().map(Duration::from_millis),
        ..ConnectionSettings::default()
    };
    let bound = &config.listeners.bound;
    let settings = |end_point: &EndPoint| ListenerSettings {
        name: Arc::from(end_point.listener_name.as_str()),
        host: end_point.host.clone(),
        port: end_point.port,
        // Only one IPv4 and one IPv6 address may have the same port.
        shares_port: end_point.port != 0
            && bound.iter().filter(|other| other.port == end_point.port).count() > 1,
        backlog: config.socket_listen_backlog_size,
        send_buffer: buffer(config, "socket.send.buffer.bytes", config.socket_send_buffer_bytes),
        receive_buffer: buffer(config, "socket.receive.buffer.bytes", config.socket_receive_buffer_bytes),
        connection,
    };
    bound.iter().map(settings).collect()
}

/// The size of a socket buffer, if one is asked for. Kafka's default, 100 KiB, would take from the system the
/// tuning by need, and costs a third more CPU per byte; -1 asks for that tuning in Kafka, too.
fn buffer(config: &KafkaConfig, key: &str, bytes: i32) -> Option<usize> {
    if config.values().is_given(key) { usize::try_from(bytes).ok() } else { None }
}

/// What is set of hosts, by their addresses, and a host that has none.
fn resolved<'a>(
    of_hosts: impl Iterator<Item = (&'a String, &'a usize)>,
) -> (HashMap<IpAddr, usize>, Option<String>) {
    let (mut of_addresses, mut unresolved) = (HashMap::new(), None);
    for (host, limit) in of_hosts {
        match (host.as_str(), 0).to_socket_addrs() {
            Ok(addresses) => {
                of_addresses.extend(addresses.map(|address| (address.ip().to_canonical(), *limit)));
            }
            Err(_) => unresolved = Some(host.clone()),
        }
    }
    (of_addresses, unresolved)
}

/// The limits of connections, and a host of them that has no address.
fn limits(config: &KafkaConfig, rates: &ConnectionRates) -> (ConnectionLimits, Option<SettingsError>) {
    let (per_ip_overrides, without_address) = resolved(config.max_connections_per_ip_overrides.iter());
    let unresolved = without_address.map(SettingsError::Override);
    let (own, without_address) = resolved(rates.own.iter());
    let unresolved = unresolved.or(without_address.map(SettingsError::Rate));
    let limits = ConnectionLimits {
        total: config.max_connections,
        protected: (config.listeners.bound.len() > 1)
            .then(|| Arc::from(config.listeners.inter_broker.as_str())),
        per_listener: of_listeners(config, "max.connections", config.max_connections),
        rate: config.max_connection_creation_rate,
        rate_per_listener: of_listeners(
            config,
            "max.connection.creation.rate",
            config.max_connection_creation_rate,
        ),
        address_rates: AddressRates { default: rates.default, own },
        rate_windows: RateWindows {
            count: u32::try_from(config.quota_window_num).unwrap_or(1),
            length: Duration::from_secs(u64::try_from(config.quota_window_size_seconds).unwrap_or(1)),
        },
        per_ip: config.max_connections_per_ip,
        per_ip_overrides,
    };
    (limits, unresolved)
}

/// What `listener.name.<listener>.<key>` says of each listener; where it says nothing, what the key says of the broker holds
/// for the listener, too, the protected one included.
fn of_listeners(config: &KafkaConfig, key: &str, of_broker: usize) -> HashMap<Arc<str>, usize> {
    let limit = |name: &str| {
        let own = config.values().originals().get(&format!("listener.name.{}.{key}", name.to_lowercase()));
        // The configuration has checked that it is a number.
        own.and_then(|value| value.trim().parse().ok()).unwrap_or(of_broker)
    };
    let names = config.listeners.bound.iter().map(|end_point| end_point.listener_name.as_str());
    names.map(|name| (Arc::from(name), limit(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(overrides: &[(&str, &str)]) -> Result<ServerSettings, SettingsError> {
        let overrides: Vec<_> =
            overrides.iter().map(|(key, value)| (String::from(*key), String::from(*value))).collect();
        ServerSettings::from_config(&KafkaConfig::without_file(&overrides).unwrap().0)
    }

    #[test]
    fn defaults_are_those_of_kafka() {
        let settings = settings(&[]).unwrap();
        assert_eq!(settings.listeners.len(), 1);
        let listener = &settings.listeners[0];
        assert_eq!((&*listener.name, listener.port), ("PLAINTEXT", 9092));
        assert_eq!(listener.backlog, 50);
        assert_eq!((listener.send_buffer, listener.receive_buffer), (None, None), "the system's choice");
        assert_eq!(listener.connection.max_frame_bytes, 104_857_600);
        assert_eq!(listener.connection.max_idle, Some(Duration::from_secs(600)));
        let of_listener = HashMap::from([(Arc::from("PLAINTEXT"), i32::MAX as usize)]);
        let limits = ConnectionLimits {
            per_listener: of_listener.clone(),
            rate_per_listener: of_listener,
            ..ConnectionLimits::default()
        };
        assert_eq!(settings.limits, limits, "and no listener is protected from itself");
        assert_eq!(settings.http, HttpSettings { address: String::from("127.0.0.1:9644"), asked: false });
    }

    #[test]
    fn negative_means_none_where_kafka_says_so() {
        let settings = settings(&[
            ("connections.max.idle.ms", "-1"),
            ("socket.send.buffer.bytes", "-1"),
            ("socket.receive.buffer.bytes", "-1"),
        ]);
        let listener = settings.unwrap().listeners.remove(0);
        assert_eq!(listener.connection.max_idle, None);
        assert_eq!((listener.send_buffer, listener.receive_buffer), (None, None));
    }

    #[test]
    fn buffers_that_are_asked_for_are_set() {
        let settings =
            settings(&[("socket.send.buffer.bytes", "102400"), ("socket.receive.buffer.bytes", "1")]);
        let listener = settings.unwrap().listeners.remove(0);
        assert_eq!((listener.send_buffer, listener.receive_buffer), (Some(102_400), Some(1)));
    }

    #[test]
    fn limits_are_read_for_listeners_and_addresses() {
        let settings = settings(&[
            ("listeners", "EXTERNAL://127.0.0.1:9092,INTERNAL://127.0.0.1:9093"),
            ("listener.security.protocol.map", "EXTERNAL:PLAINTEXT,INTERNAL:PLAINTEXT"),
            ("inter.broker.listener.name", "INTERNAL"),
            ("max.connections", "100"),
            ("listener.name.external.max.connections", "50"),
            ("max.connection.creation.rate", "30"),
            ("listener.name.external.max.connection.creation.rate", "20"),
            ("quota.window.num", "5"),
            ("max.connections.per.ip", "10"),
            ("max.connections.per.ip.overrides", "127.0.0.1:20"),
        ])
        .unwrap();
        assert_eq!(settings.limits.protected.as_deref(), Some("INTERNAL"));
        assert_eq!((settings.limits.total, settings.limits.per_ip), (100, 10));
        let of_each = |external, internal| {
            HashMap::from([(Arc::from("EXTERNAL"), external), (Arc::from("INTERNAL"), internal)])
        };
        assert_eq!(settings.limits.per_listener, of_each(50, 100));
        assert_eq!(settings.limits.rate, 30);
        assert_eq!(settings.limits.rate_per_listener, of_each(20, 30));
        assert_eq!(settings.limits.rate_windows, RateWindows { count: 5, length: Duration::from_secs(1) });
        assert_eq!(settings.limits.per_ip_overrides, HashMap::from([(IpAddr::from([127, 0, 0, 1]), 20)]));
    }

    #[test]
    fn rates_of_addresses_are_those_that_are_stored() {
        let stored = |rate: &str| [("connection_creation_rate".to_owned(), rate.to_owned())].into();
        let mut config = CurrentConfig::new(KafkaConfig::without_file(&[]).unwrap().0);
        for (ip, rate) in [(Some("127.0.0.1"), "5"), (Some("no.such.host.invalid"), "6"), (None, "7")] {
            config = config.with_connection_rate(ip, &stored(rate)).0;
        }
        let expected =
            AddressRates { default: Some(7), own: HashMap::from([(IpAddr::from([127, 0, 0, 1]), 5)]) };
        assert_eq!(Wanted::of(&config).limits.address_rates, expected);
    }

    #[test]
    fn a_limit_for_a_host_without_an_address_stops_the_start() {
        let error = settings(&[("max.connections.per.ip.overrides", "no.such.host.invalid:1")]).unwrap_err();
        assert!(error.to_string().contains("no.such.host.invalid"), "{error}");
    }

    #[test]
    fn an_address_for_the_page_that_was_asked_for_is_told_apart() {
        let settings = settings(&[("blumfeld.http.address", "127.0.0.1:9644")]).unwrap();
        assert!(settings.http.asked);
    }
}

//! The rules that join several broker keys, and the refusal of what Blumfeld does not have. Each function
//! answers with one line that names the keys and values at fault. Classes of Java plug-ins are accepted only
//! where their behaviour is built in; a security or policy class is never ignored silently.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::broker_values::BrokerValues;
use super::listeners::{
    EndPoint, SecurityProtocol, SecurityProtocolMap, check_names, check_ports, parse_listeners,
    parse_protocol_map,
};
use super::metadata_version::MetadataVersion;
use super::typed::BrokerKeys;

/// The listeners of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listeners {
    /// `listeners`: what is bound.
    pub bound: Vec<EndPoint>,
    /// `advertised.listeners`, else `listeners`: what other brokers and clients are told. An empty host stands
    /// for this machine's own name.
    pub advertised: Vec<EndPoint>,
    /// `listener.security.protocol.map`.
    pub protocols: SecurityProtocolMap,
    /// The name of the listener that brokers use among themselves; it is one of the advertised.
    pub inter_broker: String,
    /// `control.plane.listener.name`, upper-case.
    pub control_plane: Option<String>,
}

impl Listeners {
    /// Reads and checks all keys that concern listeners.
    pub(super) fn read(values: &BrokerValues) -> Result<Self, String> {
        let of_key = |key: &'static str| move |reason: String| format!("{key}: {reason}");
        let map_key = "listener.security.protocol.map";
        let protocols =
            parse_protocol_map(values.text(map_key).unwrap_or_default()).map_err(of_key(map_key))?;
        let bound = values.text("listeners").unwrap_or_default();
        let bound = parse_listeners(bound, &protocols).map_err(of_key("listeners"))?;
        check_names(&bound).and_then(|()| check_ports(&bound)).map_err(of_key("listeners"))?;
        if bound.is_empty() {
            return Err("listeners is empty: at least one listener is needed".to_owned());
        }
        let advertised = match values.is_given("advertised.listeners") {
            true => {
                let text = values.text("advertised.listeners").unwrap_or_default();
                parse_listeners(text, &protocols).map_err(of_key("advertised.listeners"))?
            }
            false => bound.clone(),
        };
        let inter_broker = inter_broker_name(values, &protocols)?;
        let control_plane = values.text("control.plane.listener.name").map(str::to_uppercase);
        let listeners = Self { bound, advertised, protocols, inter_broker, control_plane };
        listeners.check_advertised()?;
        listeners.check_roles(values)?;
        listeners.check_protocols()?;
        Ok(listeners)
    }

    /// The advertised endpoint of a listener.
    #[must_use]
    pub fn advertised(&self, listener_name: &str) -> Option<&EndPoint> {
        self.advertised.iter().find(|endpoint| endpoint.listener_name == listener_name)
    }

    /// The name of the listener that controllers and brokers use between them: the control plane if there is one, else
    /// where brokers talk to each other (KIP-291).
    #[must_use]
    pub fn of_control(&self) -> &str {
        self.control_plane.as_deref().unwrap_or(&self.inter_broker)
    }

    fn check_advertised(&self) -> Result<(), String> {
        if self.advertised.is_empty() {
            return Err("advertised.listeners is empty: at least one listener must be advertised".to_owned());
        }
        check_names(&self.advertised).map_err(|reason| format!("advertised.listeners: {reason}"))?;
        for endpoint in &self.advertised {
            let name = &endpoint.listener_name;
            if endpoint.host == "0.0.0.0" {
                return Err(format!(
                    "advertised.listeners must not contain {endpoint}: clients cannot reach 0.0.0.0; \
                     set advertised.listeners to {name}://<name of this machine>:{}",
                    endpoint.port
                ));
            }
            if !self.bound.iter().any(|bound| bound.listener_name == *name) {
                return Err(format!("advertised.listeners contains {name}, which is not in listeners"));
            }
        }
        Ok(())
    }

    fn check_roles(&self, values: &BrokerValues) -> Result<(), String> {
        let names: Vec<&str> = self.advertised.iter().map(|e| e.listener_name.as_str()).collect();
        let names = names.join(", ");
        if self.advertised(&self.inter_broker).is_none() {
            return Err(format!(
                "inter.broker.listener.name or security.inter.broker.protocol asks for the listener {}, which is \
                 not advertised; advertised are: {names}",
                self.inter_broker
            ));
        }
        if let Some(control_plane) = &self.control_plane {
            if self.advertised(control_plane).is_none() {
                return Err(format!(
                    "control.plane.listener.name is {control_plane}, which is not advertised; advertised are: {names}"
                ));
            }
            if *control_plane == self.inter_broker {
                return Err(format!(
                    "control.plane.listener.name must differ from the inter-broker listener; both are {control_plane}"
                ));
            }
        }
        let early = values.text("early.start.listeners").unwrap_or_default();
        for name in early.split(',').map(|name| name.trim().to_uppercase()).filter(|name| !name.is_empty()) {
            if !self.bound.iter().any(|bound| bound.listener_name == name) {
                return Err(format!("early.start.listeners contains {name}, which is not in listeners"));
            }
        }
        let protocol = self.protocols.get(&self.inter_broker);
        let mechanism = values.text("sasl.mechanism.inter.broker.protocol").unwrap_or_default();
        let enabled = values.list("sasl.enabled.mechanisms");
        if protocol.is_some_and(|protocol| protocol.uses_sasl()) && !enabled.iter().any(|m| m == mechanism) {
            return Err(format!(
                "sasl.mechanism.inter.broker.protocol is {mechanism}, which is not in sasl.enabled.mechanisms ({})",
                enabled.join(",")
            ));
        }
        Ok(())
    }

    fn check_protocols(&self) -> Result<(), String> {
        match self.bound.iter().find(|endpoint| endpoint.security_protocol != SecurityProtocol::Plaintext) {
            Some(endpoint) => Err(format!(
                "listeners contains {endpoint} with the security protocol {}, which Blumfeld does not have; \
                 only PLAINTEXT is available",
                endpoint.security_protocol
            )),
            None => Ok(()),
        }
    }
}

/// The inter-broker listener by name, or the one that is called like `security.inter.broker.protocol`.
fn inter_broker_name(values: &BrokerValues, protocols: &SecurityProtocolMap) -> Result<String, String> {
    let Some(name) = values.text("inter.broker.listener.name") else {
        return Ok(values.text("security.inter.broker.protocol").unwrap_or_default().to_uppercase());
    };
    if values.is_given("security.inter.broker.protocol") {
        return Err(
            "only one of inter.broker.listener.name and security.inter.broker.protocol may be set".to_owned()
        );
    }
    let name = name.to_uppercase();
    match protocols.contains_key(&name) {
        true => Ok(name),
        false => Err(format!(
            "inter.broker.listener.name is {name}, which has no entry in listener.security.protocol.map"
        )),
    }
}

/// Refuses what Blumfeld does not have.
pub(super) fn check_support(values: &BrokerValues) -> Result<(), String> {
    if !values.list("process.roles").is_empty() {
        let roles = values.list("process.roles").join(",");
        return Err(format!("process.roles={roles}: KRaft mode is not available; leave the key out"));
    }
    for key in ["zookeeper.metadata.migration.enable", "remote.log.storage.system.enable"] {
        if values.boolean(key) {
            return Err(format!("{key}=true is not available; it must be false"));
        }
    }
    if let Some(providers) = values.originals().get("config.providers").filter(|list| !list.trim().is_empty())
    {
        return Err(format!(
            "config.providers={providers}: config providers are not available; leave the key out"
        ));
    }
    if let Some(names) = values.text("controller.listener.names") {
        return Err(format!(
            "controller.listener.names={names}: it must be empty on a broker that is not in KRaft mode"
        ));
    }
    check_classes(values)
}

const DEFAULT_PRINCIPAL_BUILDER: &str =
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder";

fn check_classes(values: &BrokerValues) -> Result<(), String> {
    const JMX: &[&str] = &["org.apache.kafka.common.metrics.JmxReporter"];
    const CLASSES: [(&str, &[&str]); 12] = [
        ("alter.config.policy.class.name", &[]),
        ("authorizer.class.name", &[]),
        ("client.quota.callback.class", &[]),
        ("create.topic.policy.class.name", &[]),
        ("principal.builder.class", &[DEFAULT_PRINCIPAL_BUILDER]),
        ("replica.selector.class", &["org.apache.kafka.common.replica.RackAwareReplicaSelector"]),
        ("sasl.client.callback.handler.class", &[]),
        ("sasl.login.callback.handler.class", &[]),
        ("sasl.login.class", &[]),
        ("sasl.server.callback.handler.class", &[]),
        ("security.providers", &[]),
        ("ssl.engine.factory.class", &[]),
    ];
    for (key, known) in CLASSES {
        if let Some(class) = values.text(key) {
            check_class(key, class, known)?;
        }
    }
    for (key, known) in [("metric.reporters", JMX), ("kafka.metrics.reporters", &[])] {
        for class in values.list(key) {
            check_class(key, class, known)?;
        }
    }
    Ok(())
}

fn check_class(key: &str, class: &str, known: &[&str]) -> Result<(), String> {
    if known.contains(&class) {
        return Ok(());
    }
    let allowed = match known {
        [] => "leave the key out".to_owned(),
        known => format!("it may be {} or left out", known.join(", ")),
    };
    Err(format!("{key}={class}: Java classes cannot be loaded; {allowed}"))
}

/// Checks `broker.id` against the range that generated ids leave to it.
pub(super) fn check_identity(keys: &BrokerKeys) -> Result<(), String> {
    let (id, most) = (keys.broker_id, keys.reserved_broker_max_id);
    match keys.broker_id_generation_enable {
        true if (-1..=most).contains(&id) => Ok(()),
        true => Err(format!(
            "broker.id={id}: it must be from -1 to {most} (reserved.broker.max.id) while broker.id.generation.enable \
             is true"
        )),
        false if id >= 0 => Ok(()),
        false => {
            Err(format!("broker.id={id}: it must be at least 0 while broker.id.generation.enable is false"))
        }
    }
}

/// Checks the two ids against each other and all numbers that bound one another.
pub(super) fn check_numbers(values: &BrokerValues) -> Result<(), String> {
    let number = |key: &str| values.integer(key).unwrap_or_default();
    if number("broker.id") != number("node.id") {
        let (broker, node) = (number("broker.id"), number("node.id"));
        return Err(format!("broker.id={broker} and node.id={node}: both must be the same if both are set"));
    }
    at_most(values, "replica.fetch.wait.max.ms", "replica.socket.timeout.ms")?;
    at_most(values, "replica.fetch.wait.max.ms", "replica.lag.time.max.ms")?;
    at_most(values, "offsets.commit.required.acks", "offsets.topic.replication.factor")?;
    check_times(values)?;
    let (acks, codec) = (number("offsets.commit.required.acks"), number("offsets.topic.compression.codec"));
    if acks < -1 {
        return Err(format!("offsets.commit.required.acks={acks}: it must be at least -1"));
    }
    if !(0..=4).contains(&codec) {
        return Err(format!("offsets.topic.compression.codec={codec}: it must be from 0 to 4"));
    }
    let (queued, request) = (number("queued.max.request.bytes"), number("socket.request.max.bytes"));
    if queued > 0 && queued < request {
        return Err(format!(
            "queued.max.request.bytes={queued}: it must be at least socket.request.max.bytes={request}, or 0 or less \
             for no limit"
        ));
    }
    let (delay, idle) =
        (number("connection.failed.authentication.delay.ms"), number("connections.max.idle.ms"));
    if idle >= 0 && delay >= idle {
        return Err(format!(
            "connection.failed.authentication.delay.ms={delay}: it must be below connections.max.idle.ms={idle}"
        ));
    }
    let (buffer, threads) = (number("log.cleaner.dedupe.buffer.size"), number("log.cleaner.threads"));
    if threads > 0 && buffer / threads <= 1024 * 1024 {
        return Err(format!(
            "log.cleaner.dedupe.buffer.size={buffer}: it must be more than 1048576 for each of the \
             log.cleaner.threads={threads}"
        ));
    }
    Ok(())
}

fn check_times(values: &BrokerValues) -> Result<(), String> {
    for (key, least) in [("log.roll.ms", 1), ("log.roll.jitter.ms", 0)] {
        if let Some(value) = values.integer(key).filter(|value| *value < least) {
            return Err(format!("{key}={value}: it must be at least {least}"));
        }
    }
    for key in ["log.retention.ms", "log.retention.minutes", "log.retention.hours"] {
        match values.integer(key) {
            Some(0) => return Err(format!("{key}=0: it must be at least 1, or -1 for no limit")),
            Some(_) => return Ok(()),
            None => {}
        }
    }
    Ok(())
}

fn at_most(values: &BrokerValues, lower: &str, upper: &str) -> Result<(), String> {
    let number = |key: &str| values.integer(key).unwrap_or_default();
    let (low, high) = (number(lower), number(upper));
    if low <= high { Ok(()) } else { Err(format!("{lower}={low}: it must not be above {upper}={high}")) }
}

/// Checks the ranges of the newer group protocols, which have no effect, and `group.coordinator.*`.
pub(super) fn check_group_ranges(values: &BrokerValues) -> Result<(), String> {
    for group in ["group.consumer", "group.share"] {
        for time in ["session.timeout.ms", "heartbeat.interval.ms"] {
            let (least, most) = (format!("{group}.min.{time}"), format!("{group}.max.{time}"));
            let value = format!("{group}.{time}");
            at_most(values, &least, &most)?;
            at_most(values, &least, &value)?;
            at_most(values, &value, &most)?;
        }
    }
    let protocols = values.list("group.coordinator.rebalance.protocols");
    let has = |name: &str| protocols.iter().any(|protocol| protocol == name);
    if !has("classic") || has("consumer") {
        return Err(format!(
            "group.coordinator.rebalance.protocols={}: it must contain classic and not consumer",
            protocols.join(",")
        ));
    }
    Ok(())
}

/// `log.dirs`, else `log.dir`, without repetitions.
pub(super) fn log_dirs(values: &BrokerValues) -> Result<Vec<PathBuf>, String> {
    let key = if values.is_given("log.dirs") { "log.dirs" } else { "log.dir" };
    let list = values.text(key).unwrap_or_default();
    let mut dirs = Vec::new();
    for dir in list.split(',').map(str::trim).filter(|dir| !dir.is_empty()).map(PathBuf::from) {
        if dirs.contains(&dir) {
            return Err(format!("{key}={list}: {} is listed twice", dir.display()));
        }
        dirs.push(dir);
    }
    if dirs.is_empty() {
        return Err(format!("{key} is empty: at least one log directory is needed"));
    }
    Ok(dirs)
}

/// `inter.broker.protocol.version`, at most the newest that a 3.9 broker speaks.
pub(super) fn inter_broker_version(values: &BrokerValues) -> Result<MetadataVersion, String> {
    let key = "inter.broker.protocol.version";
    let newest = MetadataVersion::LATEST_PRODUCTION;
    match values.text(key).and_then(MetadataVersion::parse) {
        Some(version) if version <= newest => Ok(version),
        _ => Err(format!("{key}={}: it must not be above {newest}", values.text(key).unwrap_or_default())),
    }
}

/// `max.connections.per.ip.overrides`: a list of `host:limit`.
pub(super) fn per_ip_overrides(values: &BrokerValues) -> Result<BTreeMap<String, usize>, String> {
    let key = "max.connections.per.ip.overrides";
    let text = values.text(key).unwrap_or_default();
    let mut overrides = BTreeMap::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let is_host = |host: &str| !host.is_empty() && !host.contains(char::is_whitespace);
        let parsed = entry.rsplit_once(':').filter(|(host, _)| is_host(host.trim()));
        let parsed = parsed.and_then(|(host, limit)| Some((host.trim(), limit.trim().parse::<i32>().ok()?)));
        match parsed.and_then(|(host, limit)| Some((host, usize::try_from(limit).ok()?))) {
            Some((host, limit)) => overrides.insert(host.to_owned(), limit),
            None => return Err(format!("{key}={text}: '{entry}' is not of the form host:limit")),
        };
    }
    if values.integer("max.connections.per.ip") == Some(0) && overrides.is_empty() {
        return Err(format!("max.connections.per.ip=0: it may be 0 only if {key} is set"));
    }
    Ok(overrides)
}

#[cfg(test)]
mod tests;

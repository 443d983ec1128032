//! A broker under measurement.

use anyhow::Result;
use interop::broker::{Broker, Kind, Options};

/// The flags of Kafka's own start script.
const KAFKA_FLAGS: [&str; 9] = [
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
];

/// A running broker.
#[derive(Debug)]
pub(crate) struct Contender {
    /// The broker.
    pub(crate) broker: Broker,
}

impl Contender {
    /// Starts a fresh broker with the settings that both kinds get.
    pub(crate) fn start(kind: Kind) -> Result<Self> {
        Ok(Self { broker: Broker::start(kind, options())? })
    }

    /// Which broker this is.
    pub(crate) fn kind(&self) -> Kind {
        self.broker.kind()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        self.broker.bootstrap()
    }

    /// Processor time that the broker has used so far, in seconds.
    pub(crate) fn cpu_seconds(&mut self) -> Result<f64> {
        self.broker.process()?.cpu_seconds()
    }

    /// Resident memory, in MB.
    pub(crate) fn resident_mb(&mut self) -> Result<f64> {
        Ok(self.broker.process()?.resident_bytes()? as f64 / 1e6)
    }
}

/// Both brokers' settings: their defaults, and Kafka's flags.
pub(crate) fn options() -> Options {
    Options { java_options: KAFKA_FLAGS.map(str::to_owned).to_vec(), ..Options::default() }
}

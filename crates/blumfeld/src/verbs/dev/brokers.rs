//! The configurations of a cluster in one process: Kafka's defaults, except that copies are as many as there are
//! brokers for, and groups do not wait for members that are not expected.

use std::path::Path;

use node::config::{KafkaConfig, Warning};

use crate::error::VerbError;

/// Copies of a partition when there are brokers enough.
const COPIES: u8 = 3;

/// What the brokers are made from.
pub(super) struct Brokers<'a> {
    /// How many; the first has id 1.
    pub(super) count: u8,
    /// Port of the first; none: free ports.
    pub(super) port: Option<u16>,
    /// Racks among which they are spread.
    pub(super) racks: Option<u8>,
    /// The folder of their folders.
    pub(super) data: &'a Path,
    /// Properties of all of them, which win over all others but ids, ports and folders.
    pub(super) overrides: &'a [(String, String)],
}

impl Brokers<'_> {
    /// A configuration for each, and what is to be warned of, once.
    ///
    /// # Errors
    /// If a property is refused, or there are not ports enough.
    pub(super) fn configs(&self) -> Result<(Vec<KafkaConfig>, Vec<Warning>), VerbError> {
        let mut configs = Vec::with_capacity(usize::from(self.count));
        let mut warnings = Vec::new();
        for index in 0..self.count {
            let (config, warned) = KafkaConfig::without_file(&self.properties(index)?)
                .map_err(|error| VerbError::Usage(error.to_string()))?;
            configs.push(config);
            warnings = warned;
        }
        Ok((configs, warnings))
    }

    fn properties(&self, index: u8) -> Result<Vec<(String, String)>, VerbError> {
        let id = u16::from(index) + 1;
        let port = match self.port {
            None => 0,
            Some(first) => first.checked_add(u16::from(index)).ok_or_else(|| {
                VerbError::Usage(format!("--port {first}: {} brokers need as many ports", self.count))
            })?,
        };
        let copies = self.count.min(COPIES).to_string();
        let mut properties = vec![
            ("default.replication.factor".to_owned(), copies.clone()),
            ("offsets.topic.replication.factor".to_owned(), copies.clone()),
            ("transaction.state.log.replication.factor".to_owned(), copies),
            ("transaction.state.log.min.isr".to_owned(), self.count.min(2).to_string()),
            ("group.initial.rebalance.delay.ms".to_owned(), "0".to_owned()),
            // All stop together: there is nobody to hand leaderships over to, and waiting for him takes ten seconds.
            ("controlled.shutdown.enable".to_owned(), "false".to_owned()),
            ("blumfeld.http.address".to_owned(), "127.0.0.1:0".to_owned()),
        ];
        if let Some(racks) = self.racks {
            properties.push(("broker.rack".to_owned(), format!("rack-{}", index % racks.max(1) + 1)));
        }
        properties.extend(self.overrides.iter().cloned());
        let folder = self.data.join(format!("broker-{id}"));
        properties.push(("broker.id".to_owned(), id.to_string()));
        properties.push(("listeners".to_owned(), format!("PLAINTEXT://127.0.0.1:{port}")));
        properties.push(("log.dirs".to_owned(), folder.to_string_lossy().into_owned()));
        Ok(properties)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brokers<'a>(overrides: &'a [(String, String)]) -> Brokers<'a> {
        Brokers { count: 3, port: None, racks: None, data: Path::new("/d"), overrides }
    }

    #[test]
    fn each_broker_has_its_id_port_folder_and_rack() {
        let configs = Brokers { port: Some(9092), racks: Some(2), ..brokers(&[]) }.configs().unwrap().0;
        let ports: Vec<_> = configs.iter().map(|config| config.listeners.bound[0].port).collect();
        assert_eq!(ports, [9092, 9093, 9094]);
        let folders: Vec<_> = configs.iter().map(|config| config.log_dirs[0].display().to_string()).collect();
        assert_eq!(folders, ["/d/broker-1", "/d/broker-2", "/d/broker-3"]);
        let racks: Vec<_> = configs.iter().map(|config| config.values().text("broker.rack")).collect();
        assert_eq!(racks, [Some("rack-1"), Some("rack-2"), Some("rack-1")]);
    }

    #[test]
    fn copies_are_as_many_as_there_are_brokers_for_and_overrides_win() {
        let one = Brokers { count: 1, ..brokers(&[]) }.configs().unwrap().0;
        assert_eq!(one[0].default_replication_factor, 1);
        let own = [("default.replication.factor".to_owned(), "2".to_owned())];
        let three = brokers(&own).configs().unwrap().0;
        assert!(three.iter().all(|config| config.default_replication_factor == 2));
    }

    #[test]
    fn ports_that_do_not_exist_and_refused_properties_are_told() {
        let error = Brokers { port: Some(65_534), ..brokers(&[]) }.configs().unwrap_err();
        assert!(error.to_string().contains("--port 65534"), "{error}");
        let bad = [("num.io.threads".to_owned(), "x".to_owned())];
        assert!(brokers(&bad).configs().unwrap_err().to_string().contains("num.io.threads"));
    }
}

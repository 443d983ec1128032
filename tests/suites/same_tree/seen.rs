//! What a step has left: lines that can be compared between clusters.

use std::collections::BTreeMap;

use anyhow::Result;
use interop::cluster::Cluster;
use interop::process::Finished;
use serde_json::Value;

/// What nobody can foresee: the time, and the id of a cluster.
const MASKED: [&str; 2] = ["timestamp", "id"];

/// What was seen after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) step: String,
    lines: Vec<String>,
}

impl Seen {
    /// The first lines in which two clusters differ; none if they do not.
    pub(crate) fn differs(&self, other: &Self) -> Option<String> {
        if self == other {
            return None;
        }
        let mut text = format!("{}:\n", self.step);
        for line in self.lines.iter().filter(|line| !other.lines.contains(line)) {
            text += &format!("  Kafka:    {line}\n");
        }
        for line in other.lines.iter().filter(|line| !self.lines.contains(line)) {
            text += &format!("  Blumfeld: {line}\n");
        }
        if self.lines.len() == other.lines.len() && text.lines().count() == 1 {
            text += "  another order\n";
        }
        Some(text)
    }
}

/// Names for what differs between clusters by nature: topic ids and ports.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    /// Knows the ports of a cluster.
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let mut names = Self::default();
        for (id, address) in (1..).zip(cluster.addresses()) {
            let port = address.rsplit(':').next().unwrap_or_default();
            names.0.insert(port.to_owned(), format!("PORT-{id}"));
        }
        names
    }

    /// Learns the ids of the topics that there are.
    fn learn(&mut self, cluster: &Cluster) -> Result<()> {
        let mut tree = cluster.tree()?;
        for topic in tree.client().children("/brokers/topics")? {
            let json = tree.json(&format!("/brokers/topics/{topic}"))?.unwrap_or_default();
            if let Some(id) = json.get("topic_id").and_then(Value::as_str) {
                self.0.insert(id.to_owned(), format!("ID-OF-{topic}"));
            }
        }
        Ok(())
    }

    fn replace(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }
}

/// What a tool said and how it ended.
pub(crate) fn output(step: &str, finished: &Finished, cluster: &Cluster, names: &mut Names) -> Result<Seen> {
    names.learn(cluster)?;
    let mut lines = vec![format!("{}", finished.status)];
    lines.extend(finished.stdout.lines().map(|line| names.replace(line)));
    Ok(Seen { step: format!("output of {step}"), lines })
}

/// All nodes with their data and its version.
pub(crate) fn tree(step: &str, cluster: &Cluster, names: &mut Names) -> Result<Seen> {
    names.learn(cluster)?;
    let mut tree = cluster.tree()?;
    let mut lines = Vec::new();
    for node in tree.client().tree("/")? {
        if node.path.starts_with("/zookeeper") {
            continue;
        }
        let Some((data, version)) = tree.client().versioned_data(&node.path)? else { continue };
        let data = data.map_or("null".to_owned(), |data| shown(&data));
        lines.push(names.replace(&format!("{} = {data}, version {version}", node.path)));
    }
    lines.sort();
    Ok(Seen { step: format!("tree after {step}"), lines })
}

/// JSON in one order, without what is masked; other data as it is.
fn shown(data: &[u8]) -> String {
    match serde_json::from_slice::<Value>(data) {
        Ok(mut value) => {
            if let Some(fields) = value.as_object_mut() {
                for (key, value) in fields.iter_mut().filter(|(key, _)| MASKED.contains(&key.as_str())) {
                    *value = Value::from(format!("a {key}"));
                }
                fields.sort_keys();
            }
            value.to_string()
        }
        Err(_) => String::from_utf8_lossy(data).into_owned(),
    }
}

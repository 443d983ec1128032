//! Altering configs: what is to be set and removed, checked against what is there, in one request.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::json;
use wire::Str;
use wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use wire::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

use super::ConfigsOptions;
use super::describe::{ConfigEntry, configs_of, own_source};
use super::entity::Entity;
use super::resource::{Resource, ResourceKind};
use crate::cluster::settings::read_properties;
use crate::cluster::{Cluster, ClusterError};
use crate::error::VerbError;
use crate::output::{Format, write_json};

const SET: i8 = 0;
const DELETE: i8 = 1;

/// What is to be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    set: BTreeMap<String, String>,
    delete: Vec<String>,
}

impl Changes {
    /// The changes that the options ask for; `None` if they ask for a description.
    ///
    /// # Errors
    /// If the options contradict each other or cannot be read.
    pub(super) fn read(options: &ConfigsOptions) -> Result<Option<Self>, VerbError> {
        let usage = |text: &str| Err(VerbError::Usage(text.to_owned()));
        let named = options.add_config.is_some()
            || options.add_config_file.is_some()
            || options.delete_config.is_some();
        if options.describe {
            return if named { usage("--add-config and --delete-config go with --alter") } else { Ok(None) };
        }
        if options.all {
            return usage("--all goes with --describe");
        }
        if options.add_config.is_some() && options.add_config_file.is_some() {
            return usage("--add-config and --add-config-file exclude each other");
        }
        if !named {
            return usage("--alter needs --add-config, --add-config-file or --delete-config");
        }
        let mut changes = Self::default();
        if let Some(text) = &options.add_config {
            changes.set = parse_pairs(text)?;
        }
        if let Some(path) = &options.add_config_file {
            changes.set = read_properties(path)?;
        }
        if let Some(text) = &options.delete_config {
            let keys = text.split(',').map(str::trim).filter(|key| !key.is_empty());
            changes.delete = keys.map(str::to_owned).collect();
        }
        match changes.delete.iter().find(|key| changes.set.contains_key(*key)) {
            Some(key) => Err(VerbError::Usage(format!("{key} is both to be set and to be removed"))),
            None => Ok(Some(changes)),
        }
    }

    fn request(&self, resource: &Resource) -> IncrementalAlterConfigsRequest {
        let set = self.set.iter().map(|(key, value)| (key, SET, Some(Str::from(value))));
        let delete = self.delete.iter().map(|key| (key, DELETE, None));
        let config = |(name, config_operation, value): (&String, i8, Option<Str>)| AlterableConfig {
            name: Str::from(name),
            config_operation,
            value,
        };
        IncrementalAlterConfigsRequest {
            resources: vec![AlterConfigsResource {
                resource_type: resource.kind.id(),
                resource_name: Str::from(resource.name.as_str()),
                configs: set.chain(delete).map(config).collect(),
            }],
            validate_only: false,
        }
    }
}

/// Reads `k=v,k2=[a,b]`.
fn parse_pairs(text: &str) -> Result<BTreeMap<String, String>, VerbError> {
    let mut pairs = BTreeMap::new();
    let (mut start, mut depth) = (0, 0_u32);
    let mut ends: Vec<(usize, usize)> = Vec::new();
    for (at, letter) in text.char_indices() {
        match letter {
            '[' => depth = depth.saturating_add(1),
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                ends.push((start, at));
                start = at + 1;
            }
            _ => {}
        }
    }
    ends.push((start, text.len()));
    for (start, end) in ends {
        let part = text.get(start..end).unwrap_or_default().trim();
        if part.is_empty() {
            continue;
        }
        let (key, value) =
            part.split_once('=').filter(|(key, _)| !key.trim().is_empty()).ok_or_else(|| {
                VerbError::Usage(format!(
                    "{part}: KEY=VALUE is expected; values with commas go in square brackets"
                ))
            })?;
        let value = value.trim();
        let bare = value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).unwrap_or(value);
        pairs.insert(key.trim().to_owned(), bare.to_owned());
    }
    Ok(pairs)
}

/// Makes the changes.
pub(super) async fn alter(
    cluster: &mut Cluster,
    entity: &Entity,
    changes: &Changes,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let resource = match entity {
        Entity::One(resource) => resource.clone(),
        Entity::BrokerDefaults => Resource { kind: ResourceKind::Broker, name: String::new() },
        Entity::All(kind) => {
            let text = format!("--alter needs the name of one {}", kind.word());
            return Err(VerbError::Usage(text));
        }
    };
    refuse_unknown_deletions(cluster, &resource, &changes.delete).await?;
    let request = changes.request(&resource);
    let broker = resource.name.parse::<i32>().ok().filter(|_| resource.kind != ResourceKind::Topic);
    let code = |response: &IncrementalAlterConfigsResponse| {
        response.responses.first().map_or(0, |response| response.error_code)
    };
    let response = match broker {
        Some(id) => cluster.call_broker(id, &request).await?,
        None => cluster.call_controller(&request, code).await?,
    };
    if let Some(result) = response.responses.iter().find(|result| result.error_code != 0) {
        let what = format!("configs of {} {}", resource.kind.word(), resource.name);
        return Err(ClusterError::refused(what, result.error_code, result.error_message.as_deref()).into());
    }
    match (format, resource.name.as_str()) {
        (Format::Json, name) => write_json(
            out,
            &json!({
                "entityType": format!("{}s", resource.kind.word()),
                "entityName": (!name.is_empty()).then_some(name),
                "set": changes.set,
                "deleted": changes.delete,
            }),
        )?,
        (_, "") => writeln!(out, "Completed updating default config for brokers in the cluster.")?,
        (_, name) => writeln!(out, "Completed updating config for {} {name}.", resource.kind.word())?,
    }
    Ok(())
}

/// As Kafka's tool does: a config to be removed must have been set for this entity.
async fn refuse_unknown_deletions(
    cluster: &mut Cluster,
    resource: &Resource,
    delete: &[String],
) -> Result<(), VerbError> {
    if delete.is_empty() {
        return Ok(());
    }
    let described = configs_of(cluster, std::slice::from_ref(resource), false).await?;
    let is_set = |key: &String| {
        let mut entries = described.iter().flat_map(|(_, entries)| entries);
        entries.any(|entry: &ConfigEntry| entry.name == *key && entry.source == own_source(resource))
    };
    let unset: Vec<&str> = delete.iter().filter(|key| !is_set(key)).map(String::as_str).collect();
    if unset.is_empty() {
        return Ok(());
    }
    let (word, name) = (resource.kind.word(), &resource.name);
    Err(VerbError::Failed(format!("Invalid config(s): {} (not set for {word} {name})", unset.join(","))))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: ConfigsOptions,
    }

    fn changes(line: &str) -> Result<Option<Changes>, VerbError> {
        let line = Line::try_parse_from(std::iter::once("configs").chain(line.split(' '))).unwrap();
        Changes::read(&line.options)
    }

    #[test]
    fn square_brackets_hold_lists_together() {
        let pairs = parse_pairs("a=1, b=[x,y],c=[z],d=,e=f=g").unwrap();
        let expected = [("a", "1"), ("b", "x,y"), ("c", "z"), ("d", ""), ("e", "f=g")];
        assert_eq!(pairs, expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
        for wrong in ["a", "a=1,b", "=1", "a=1,=2"] {
            assert!(parse_pairs(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_request_sets_and_removes() {
        let changes = changes("--alter --topic t --add-config a=1 --delete-config b,c").unwrap().unwrap();
        let request = changes.request(&Resource { kind: ResourceKind::Topic, name: "t".into() });
        let configs = request.resources[0].configs.iter();
        let configs: Vec<_> =
            configs.map(|c| (c.name.as_str(), c.config_operation, c.value.as_deref())).collect();
        assert_eq!(configs, [("a", SET, Some("1")), ("b", DELETE, None), ("c", DELETE, None)]);
    }

    #[test]
    fn a_file_gives_configs_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, "a=1,2\n# no\nb = x\n").unwrap();
        let changes = changes(&format!("--alter --topic t --add-config-file {}", path.display()));
        let expected = [("a", "1,2"), ("b", "x")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(changes.unwrap().unwrap().set, expected.into());
    }

    #[test]
    fn options_that_do_not_go_together_are_refused() {
        assert_eq!(changes("--describe --topic t").unwrap(), None);
        for line in [
            "--alter --topic t",
            "--describe --topic t --add-config a=1",
            "--alter --topic t --all --add-config a=1",
            "--alter --topic t --add-config a=1 --add-config-file f",
            "--alter --topic t --add-config a=1 --delete-config a",
        ] {
            assert!(matches!(changes(line), Err(VerbError::Usage(_))), "{line}");
        }
    }
}

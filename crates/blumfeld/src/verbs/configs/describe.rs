//! Describing configs: asked of the broker that is meant, printed as kafka-configs does.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::{Value, json};
use wire::Str;
use wire::messages::describe_configs_request::DescribeConfigsResource;
use wire::messages::describe_configs_response::{DescribeConfigsResourceResult, DescribeConfigsSynonym};
use wire::messages::{DescribeConfigsRequest, DescribeConfigsResponse};

use super::entity::Entity;
use super::resource::{Resource, ResourceKind};
use crate::cluster::{Cluster, ClusterError, Topics};
use crate::error::VerbError;
use crate::output::{Format, Table, write_json};

/// The sources of configs, by the numbers of the protocol.
const SOURCES: [(i8, &str); 7] = [
    (1, "DYNAMIC_TOPIC_CONFIG"),
    (2, "DYNAMIC_BROKER_CONFIG"),
    (3, "DYNAMIC_DEFAULT_BROKER_CONFIG"),
    (4, "STATIC_BROKER_CONFIG"),
    (5, "DEFAULT_CONFIG"),
    (6, "DYNAMIC_BROKER_LOGGER_CONFIG"),
    (7, "DYNAMIC_CLIENT_METRICS_CONFIG"),
];
const OF_TOPIC: i8 = 1;
const OF_BROKER: i8 = 2;
const OF_BROKER_DEFAULTS: i8 = 3;
const DEFAULT: i8 = 5;
const OF_LOGGER: i8 = 6;

fn source_name(source: i8) -> &'static str {
    SOURCES.iter().find(|(id, _)| *id == source).map_or("UNKNOWN", |(_, name)| name)
}

/// One config of an entity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfigEntry {
    /// The key.
    pub(crate) name: String,
    /// The value; none if it is null or secret.
    pub(crate) value: Option<String>,
    /// Where the value comes from, as a number of the protocol.
    pub(crate) source: i8,
    /// Whether the value is secret.
    pub(crate) sensitive: bool,
    /// Whether it cannot be altered.
    pub(crate) read_only: bool,
    /// All places that give a value, the one in effect first: source, key, value.
    pub(crate) synonyms: Vec<(i8, String, Option<String>)>,
}

impl ConfigEntry {
    /// Reads an entry of a response; `of_resource` is the source of what is set for the entity itself, which
    /// old brokers do not tell.
    fn read(result: DescribeConfigsResourceResult, of_resource: i8) -> Self {
        let told = |source: i8| match source {
            -1 if result.is_default => DEFAULT,
            -1 => of_resource,
            source => source,
        };
        let source = told(result.config_source);
        let text = |value: Option<Str>| value.map(|value| value.as_str().to_owned());
        let synonym = |it: DescribeConfigsSynonym| (it.source, it.name.as_str().to_owned(), text(it.value));
        Self {
            name: result.name.as_str().to_owned(),
            value: text(result.value),
            source,
            sensitive: result.is_sensitive,
            read_only: result.read_only,
            synonyms: result.synonyms.into_iter().map(synonym).collect(),
        }
    }

    /// Whether the value is the default of the release.
    pub(crate) fn is_default(&self) -> bool {
        self.source == DEFAULT
    }

    /// `key=value`
    pub(crate) fn pair(&self) -> String {
        format!("{}={}", self.name, self.shown())
    }

    fn shown(&self) -> &str {
        self.value.as_deref().unwrap_or("null")
    }

    fn line(&self) -> String {
        let synonym = |(source, name, value): &(i8, String, Option<String>)| {
            format!("{}:{name}={}", source_name(*source), value.as_deref().unwrap_or("null"))
        };
        let synonyms: Vec<String> = self.synonyms.iter().map(synonym).collect();
        format!("  {} sensitive={} synonyms={{{}}}", self.pair(), self.sensitive, synonyms.join(", "))
    }
}

/// The source of what is set for this very resource.
pub(super) fn own_source(resource: &Resource) -> i8 {
    match resource.kind {
        ResourceKind::Topic => OF_TOPIC,
        ResourceKind::Broker if resource.name.is_empty() => OF_BROKER_DEFAULTS,
        ResourceKind::Broker => OF_BROKER,
        ResourceKind::BrokerLogger => OF_LOGGER,
    }
}

/// The configs of resources, each asked of the broker that is meant, or of any if that makes no difference.
///
/// # Errors
/// If a broker refuses or is not there.
pub(crate) async fn configs_of(
    cluster: &mut Cluster,
    resources: &[Resource],
    synonyms: bool,
) -> Result<Vec<(Resource, Vec<ConfigEntry>)>, ClusterError> {
    let mut by_broker: BTreeMap<Option<i32>, Vec<&Resource>> = BTreeMap::new();
    for resource in resources {
        let broker = if resource.kind == ResourceKind::Topic { None } else { resource.name.parse().ok() };
        by_broker.entry(broker).or_default().push(resource);
    }
    let mut found = Vec::new();
    for (broker, resources) in by_broker {
        let asked = |resource: &&Resource| DescribeConfigsResource {
            resource_type: resource.kind.id(),
            resource_name: Str::from(resource.name.as_str()),
            configuration_keys: None,
        };
        let request = DescribeConfigsRequest {
            resources: resources.iter().map(asked).collect(),
            include_synonyms: synonyms,
            include_documentation: false,
        };
        let response = match broker {
            Some(id) => cluster.call_broker(id, &request).await?,
            None => cluster.call_any(&request).await?,
        };
        collect(&resources, response, &mut found)?;
    }
    Ok(found)
}

fn collect(
    asked: &[&Resource],
    response: DescribeConfigsResponse,
    found: &mut Vec<(Resource, Vec<ConfigEntry>)>,
) -> Result<(), ClusterError> {
    for result in response.results {
        let fits = |resource: &&&Resource| {
            resource.kind.id() == result.resource_type && resource.name == result.resource_name.as_str()
        };
        let Some(resource) = asked.iter().find(fits) else { continue };
        if result.error_code != 0 {
            let what = format!("configs of {} {}", resource.kind.word(), resource.name);
            return Err(ClusterError::refused(what, result.error_code, result.error_message.as_deref()));
        }
        let own = own_source(resource);
        let mut entries: Vec<ConfigEntry> =
            result.configs.into_iter().map(|config| ConfigEntry::read(config, own)).collect();
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        found.push(((*resource).clone(), entries));
    }
    Ok(())
}

/// Prints the configs of the entity.
pub(super) async fn describe(
    cluster: &mut Cluster,
    entity: &Entity,
    all: bool,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let resources = resources(cluster, entity).await?;
    if resources.is_empty() {
        return Ok(());
    }
    let mut described = configs_of(cluster, &resources, true).await?;
    for (resource, entries) in &mut described {
        let own = own_source(resource);
        entries.retain(|entry| all || resource.kind == ResourceKind::BrokerLogger || entry.source == own);
    }
    print(&described, all, format, out)
}

async fn resources(cluster: &mut Cluster, entity: &Entity) -> Result<Vec<Resource>, VerbError> {
    let resource = |kind, name: &str| Resource { kind, name: name.to_owned() };
    match entity {
        Entity::One(one) => Ok(vec![one.clone()]),
        Entity::BrokerDefaults => Ok(vec![resource(ResourceKind::Broker, "")]),
        Entity::All(ResourceKind::Topic) => {
            let metadata = cluster.metadata(Topics::All).await?;
            let names = metadata.topics.iter().filter_map(|topic| topic.name.as_deref());
            let mut all: Vec<_> = names.map(|name| resource(ResourceKind::Topic, name)).collect();
            all.sort_unstable();
            Ok(all)
        }
        Entity::All(kind) => {
            let ids = cluster.brokers().keys().map(|id| resource(*kind, &id.to_string()));
            Ok(ids.chain(std::iter::once(resource(*kind, ""))).collect())
        }
    }
}

fn heading(resource: &Resource, all: bool) -> String {
    let word = if all { "All" } else { "Dynamic" };
    match resource.name.as_str() {
        "" => "Default configs for brokers in the cluster are:".to_owned(),
        name => format!("{word} configs for {} {name} are:", resource.kind.word()),
    }
}

fn print(
    described: &[(Resource, Vec<ConfigEntry>)],
    all: bool,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    if format == Format::Json {
        return Ok(write_json(out, &described.iter().map(resource_json).collect::<Vec<_>>())?);
    }
    for (resource, entries) in described {
        writeln!(out, "{}", heading(resource, all))?;
        if format == Format::Kafka {
            for entry in entries {
                writeln!(out, "{}", entry.line())?;
            }
            continue;
        }
        let mut table = Table::new(["CONFIG", "VALUE", "SOURCE", "READ ONLY"]);
        for entry in entries {
            let value = if entry.sensitive { "(secret)" } else { entry.shown() };
            let read_only = if entry.read_only { "yes" } else { "" };
            let source = source_name(entry.source);
            table.push([entry.name.clone(), value.to_owned(), source.to_owned(), read_only.to_owned()]);
        }
        table.write(out)?;
    }
    Ok(())
}

fn resource_json((resource, entries): &(Resource, Vec<ConfigEntry>)) -> Value {
    let entry = |entry: &ConfigEntry| {
        let synonym = |(source, name, value): &(i8, String, Option<String>)| json!({ "source": source_name(*source), "name": name, "value": value });
        json!({
            "name": entry.name,
            "value": entry.value,
            "source": source_name(entry.source),
            "sensitive": entry.sensitive,
            "readOnly": entry.read_only,
            "synonyms": entry.synonyms.iter().map(synonym).collect::<Vec<_>>(),
        })
    };
    json!({
        "entityType": format!("{}s", resource.kind.word()),
        "entityName": (!resource.name.is_empty()).then_some(&resource.name),
        "configs": entries.iter().map(entry).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn described(kind: ResourceKind, name: &str) -> Vec<(Resource, Vec<ConfigEntry>)> {
        let synonyms = vec![
            (1, "retention.ms".into(), Some("5".into())),
            (5, "log.retention.hours".into(), Some("168".into())),
        ];
        let entries = vec![
            ConfigEntry {
                name: "retention.ms".into(),
                value: Some("5".into()),
                source: 1,
                synonyms,
                ..Default::default()
            },
            ConfigEntry {
                name: "secret".into(),
                source: 2,
                sensitive: true,
                read_only: true,
                ..Default::default()
            },
        ];
        vec![(Resource { kind, name: name.into() }, entries)]
    }

    fn check(kind: ResourceKind, name: &str, all: bool, format: Format, expected: &Expect) {
        let mut out = Vec::new();
        print(&described(kind, name), all, format, &mut out).unwrap();
        expected.assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn lines_are_those_that_scripts_expect() {
        check(
            ResourceKind::Topic,
            "t",
            false,
            Format::Kafka,
            &expect![[r#"
                Dynamic configs for topic t are:
                  retention.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5, DEFAULT_CONFIG:log.retention.hours=168}
                  secret=null sensitive=true synonyms={}
            "#]],
        );
        assert_eq!(
            heading(&Resource { kind: ResourceKind::Broker, name: "3".into() }, true),
            "All configs for broker 3 are:"
        );
        assert_eq!(
            heading(&Resource { kind: ResourceKind::Broker, name: String::new() }, false),
            "Default configs for brokers in the cluster are:"
        );
    }

    #[test]
    fn people_get_a_table_and_programs_json() {
        check(
            ResourceKind::Topic,
            "t",
            true,
            Format::Table,
            &expect![[r#"
                All configs for topic t are:
                CONFIG        VALUE     SOURCE                 READ ONLY
                retention.ms  5         DYNAMIC_TOPIC_CONFIG
                secret        (secret)  DYNAMIC_BROKER_CONFIG  yes
            "#]],
        );
        check(
            ResourceKind::Broker,
            "",
            true,
            Format::Json,
            &expect![[r#"
                [{"entityType":"brokers","entityName":null,"configs":[{"name":"retention.ms","value":"5","source":"DYNAMIC_TOPIC_CONFIG","sensitive":false,"readOnly":false,"synonyms":[{"source":"DYNAMIC_TOPIC_CONFIG","name":"retention.ms","value":"5"},{"source":"DEFAULT_CONFIG","name":"log.retention.hours","value":"168"}]},{"name":"secret","value":null,"source":"DYNAMIC_BROKER_CONFIG","sensitive":true,"readOnly":true,"synonyms":[]}]}]
            "#]],
        );
    }

    #[test]
    fn an_old_broker_that_tells_no_sources_is_understood() {
        let result = |is_default| DescribeConfigsResourceResult { is_default, ..Default::default() };
        assert_eq!(ConfigEntry::read(result(true), OF_TOPIC).source, DEFAULT);
        assert_eq!(ConfigEntry::read(result(false), OF_TOPIC).source, OF_TOPIC);
    }
}

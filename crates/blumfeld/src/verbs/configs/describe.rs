//! `configs --describe`.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde_json::{Value, json};
use wire::Str;
use wire::messages::describe_configs_request::DescribeConfigsResource;
use wire::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use wire::messages::{DescribeConfigsRequest, Request};

use super::entity::{Entity, Kind};
use crate::client::Cluster;
use crate::failure::Failure;
use crate::output::{Format, Table, print_json};

/// Prints the configs of an entity, or of all of its kind.
pub(super) async fn run(
    format: Format,
    all: bool,
    cluster: &mut Cluster,
    entity: &Entity,
) -> Result<(), Failure> {
    let names = match (&entity.name, entity.kind) {
        (Some(name), _) => vec![name.clone()],
        (None, Kind::Topic) => {
            let topics = cluster.metadata(None).await?.topics;
            let mut names: Vec<_> =
                topics.into_iter().filter_map(|topic| Some(topic.name?.to_string())).collect();
            names.sort_unstable();
            names
        }
        (None, _) => {
            let brokers = cluster.metadata(Some(&[])).await?.brokers;
            let ids = brokers.iter().map(|broker| broker.node_id.to_string());
            ids.chain([String::new()]).collect()
        }
    };
    let mut described = Vec::new();
    for name in names {
        let mut configs = fetch(cluster, entity.kind, &name).await?;
        configs.retain(|config| all || is_own(entity.kind, &name, config));
        described.push((name, configs));
    }
    let mut out = io::stdout().lock();
    if format == Format::Json {
        let values = described.iter().map(|(name, configs)| {
            let configs: Vec<Value> = configs.iter().map(to_json).collect();
            json!({ "entity": Entity::title(entity.kind, name), "configs": configs })
        });
        return Ok(print_json(&mut out, &values.collect())?);
    }
    for (name, configs) in &described {
        print(&mut out, entity.kind, name, all, configs)?;
    }
    Ok(())
}

/// Asks the broker that is concerned: any for topics and defaults, else the one that is named.
pub(super) async fn ask<R: Request>(
    cluster: &mut Cluster,
    kind: Kind,
    name: &str,
    request: &R,
) -> Result<R::Response, Failure> {
    if kind == Kind::Topic || name.is_empty() {
        return cluster.any(request).await;
    }
    let id = name.parse().map_err(|_| Failure::new(format!("'{name}' is not the id of a broker")))?;
    cluster.broker(id, request).await
}

async fn fetch(
    cluster: &mut Cluster,
    kind: Kind,
    name: &str,
) -> Result<Vec<DescribeConfigsResourceResult>, Failure> {
    let resource = DescribeConfigsResource {
        resource_type: kind.code(),
        resource_name: Str::from(name),
        configuration_keys: None,
        ..DescribeConfigsResource::default()
    };
    let request = DescribeConfigsRequest {
        resources: vec![resource],
        include_synonyms: true,
        ..DescribeConfigsRequest::default()
    };
    let result: DescribeConfigsResult =
        ask(cluster, kind, name, &request).await?.results.into_iter().next().unwrap_or_default();
    if result.error_code != 0 {
        let what = format!("The configs of {} are not known", Entity::title(kind, name));
        return Err(Failure::refused(&what, result.error_code, result.error_message.as_ref()));
    }
    let mut configs = result.configs;
    configs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(configs)
}

/// The keys that are set on the entity itself.
pub(super) async fn own_keys(
    cluster: &mut Cluster,
    kind: Kind,
    name: &str,
) -> Result<BTreeSet<String>, Failure> {
    let configs = fetch(cluster, kind, name).await?;
    Ok(configs
        .iter()
        .filter(|config| is_own(kind, name, config))
        .map(|config| config.name.to_string())
        .collect())
}

/// Whether the value was set on the entity itself, at run time.
fn is_own(kind: Kind, name: &str, config: &DescribeConfigsResourceResult) -> bool {
    let source = match kind {
        Kind::Topic => 1,
        Kind::Broker if name.is_empty() => 3,
        Kind::Broker => 2,
        Kind::BrokerLogger => 6,
    };
    config.config_source == source
}

fn source_name(source: i8) -> &'static str {
    match source {
        1 => "DYNAMIC_TOPIC_CONFIG",
        2 => "DYNAMIC_BROKER_CONFIG",
        3 => "DYNAMIC_DEFAULT_BROKER_CONFIG",
        4 => "STATIC_BROKER_CONFIG",
        5 => "DEFAULT_CONFIG",
        6 => "DYNAMIC_BROKER_LOGGER_CONFIG",
        _ => "UNKNOWN",
    }
}

fn to_json(config: &DescribeConfigsResourceResult) -> Value {
    let synonym = |synonym: &DescribeConfigsSynonym| {
        json!({
            "name": synonym.name.as_str(),
            "value": synonym.value.as_deref(),
            "source": source_name(synonym.source),
        })
    };
    json!({
        "name": config.name.as_str(),
        "value": config.value.as_deref(),
        "source": source_name(config.config_source),
        "sensitive": config.is_sensitive,
        "readOnly": config.read_only,
        "synonyms": config.synonyms.iter().map(synonym).collect::<Vec<_>>(),
    })
}

fn print(
    out: &mut impl Write,
    kind: Kind,
    name: &str,
    all: bool,
    configs: &[DescribeConfigsResourceResult],
) -> io::Result<()> {
    let title = Entity::title(kind, name);
    match (all, name) {
        (true, _) => writeln!(out, "All configs for {title} are:")?,
        (false, "") => writeln!(out, "Default configs for {title} are:")?,
        (false, _) => writeln!(out, "Dynamic configs for {title} are:")?,
    }
    if configs.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["CONFIG", "VALUE", "SOURCE", "SYNONYMS"]);
    for config in configs {
        let value = |value: Option<&str>| match value {
            None if config.is_sensitive => "(hidden)".to_owned(),
            None => "null".to_owned(),
            Some(value) => value.to_owned(),
        };
        let synonyms = config.synonyms.iter().skip(1).map(|synonym| {
            let value = value(synonym.value.as_deref());
            format!("{}:{}={value}", source_name(synonym.source), synonym.name)
        });
        table.row([
            config.name.to_string(),
            value(config.value.as_deref()),
            source_name(config.config_source).to_owned(),
            synonyms.collect::<Vec<_>>().join(", "),
        ]);
    }
    table.print(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn configs() -> Vec<DescribeConfigsResourceResult> {
        let synonym = |name: &str, value: &str, source| DescribeConfigsSynonym {
            name: Str::from(name),
            value: Some(Str::from(value)),
            source,
            ..DescribeConfigsSynonym::default()
        };
        let config =
            |name: &str, value: Option<&str>, config_source, is_sensitive| DescribeConfigsResourceResult {
                name: Str::from(name),
                value: value.map(Str::from),
                config_source,
                is_sensitive,
                ..DescribeConfigsResourceResult::default()
            };
        let synonyms =
            vec![synonym("segment.bytes", "100", 1), synonym("log.segment.bytes", "1073741824", 5)];
        vec![
            DescribeConfigsResourceResult { synonyms, ..config("segment.bytes", Some("100"), 1, false) },
            config("some.secret", None, 1, true),
        ]
    }

    #[test]
    fn configs_are_a_table_under_kafkas_title() {
        let mut out = Vec::new();
        print(&mut out, Kind::Topic, "t", false, &configs()).unwrap();
        print(&mut out, Kind::Broker, "", false, &[]).unwrap();
        expect![[r#"
            Dynamic configs for topic t are:
            CONFIG         VALUE     SOURCE                SYNONYMS
            segment.bytes  100       DYNAMIC_TOPIC_CONFIG  DEFAULT_CONFIG:log.segment.bytes=1073741824
            some.secret    (hidden)  DYNAMIC_TOPIC_CONFIG  -
            Default configs for brokers in the cluster are:
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn own_configs_are_those_set_on_the_entity() {
        let config = |config_source| DescribeConfigsResourceResult { config_source, ..Default::default() };
        assert!(is_own(Kind::Topic, "t", &config(1)));
        assert!(!is_own(Kind::Topic, "t", &config(4)));
        assert!(is_own(Kind::Broker, "", &config(3)));
        assert!(!is_own(Kind::Broker, "0", &config(3)));
        assert!(is_own(Kind::Broker, "0", &config(2)));
    }
}

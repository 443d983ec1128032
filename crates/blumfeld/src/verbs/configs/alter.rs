//! `configs --alter`.

use std::io::{self, Write};

use wire::Str;
use wire::messages::IncrementalAlterConfigsRequest;
use wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};

use super::changes::Changes;
use super::describe;
use super::entity::{Entity, Kind};
use crate::client::Cluster;
use crate::failure::Failure;
use crate::output::{Format, print_json};

const SET: i8 = 0;
const DELETE: i8 = 1;

/// Sends the changes of one entity.
pub(super) async fn run(
    format: Format,
    cluster: &mut Cluster,
    entity: &Entity,
    changes: &Changes,
) -> Result<(), Failure> {
    let Some(name) = &entity.name else {
        return Err(Failure::new("--alter needs the name of an entity").hint("Name it by --entity-name."));
    };
    check_deleted(cluster, entity.kind, name, changes).await?;
    let set = changes.set.iter().map(|(key, value)| change(key, SET, Some(value)));
    let delete = changes.delete.iter().map(|key| change(key, DELETE, None));
    let resource = AlterConfigsResource {
        resource_type: entity.kind.code(),
        resource_name: Str::from(name.as_str()),
        configs: set.chain(delete).collect(),
        ..AlterConfigsResource::default()
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let response = describe::ask(cluster, entity.kind, name, &request).await?;
    let title = Entity::title(entity.kind, name);
    if let Some(refused) = response.responses.iter().find(|response| response.error_code != 0) {
        let what = format!("The configs of {title} were not altered");
        return Err(Failure::refused(&what, refused.error_code, refused.error_message.as_ref()));
    }
    let mut out = io::stdout().lock();
    if format == Format::Json {
        let value = serde_json::json!({ "entity": title, "set": changes.set, "deleted": changes.delete });
        return Ok(print_json(&mut out, &value)?);
    }
    match name.as_str() {
        "" => writeln!(out, "Completed updating default config for {title}.")?,
        _ => writeln!(out, "Completed updating config for {title}.")?,
    }
    Ok(())
}

fn change(name: &str, config_operation: i8, value: Option<&String>) -> AlterableConfig {
    AlterableConfig {
        name: Str::from(name),
        config_operation,
        value: value.map(|value| Str::from(value.as_str())),
        ..AlterableConfig::default()
    }
}

/// A key that is not set cannot be deleted; it is a typing error more often than not.
async fn check_deleted(
    cluster: &mut Cluster,
    kind: Kind,
    name: &str,
    changes: &Changes,
) -> Result<(), Failure> {
    if changes.delete.is_empty() || kind == Kind::BrokerLogger {
        return Ok(());
    }
    let set = describe::own_keys(cluster, kind, name).await?;
    let missing: Vec<&str> =
        changes.delete.iter().map(String::as_str).filter(|key| !set.contains(*key)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let title = Entity::title(kind, name);
    Err(Failure::new(format!("{} is not set on {title}", missing.join(", "))))
}

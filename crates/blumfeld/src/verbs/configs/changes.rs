//! What is to change: `--add-config`, `--add-config-file`, `--delete-config`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::ArgGroup;
use node::config::Properties;

use crate::failure::Failure;

/// The options that change configs.
#[derive(Clone, Debug, clap::Args)]
#[command(group = ArgGroup::new("change").multiple(true)
    .args(["add_config", "add_config_file", "delete_config"]).conflicts_with("describe"))]
pub(super) struct ChangeArgs {
    /// Set configs: `k1=v1,k2=[v2,v3]`, brackets for values that contain commas
    #[arg(long, value_name = "CONFIGS")]
    add_config: Option<String>,
    /// Set the configs of a properties file
    #[arg(long, value_name = "FILE", conflicts_with = "add_config")]
    add_config_file: Option<PathBuf>,
    /// Put configs back to their defaults: `k1,k2`
    #[arg(long, value_name = "KEYS")]
    delete_config: Option<String>,
}

/// Configs to set and to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) set: BTreeMap<String, String>,
    pub(super) delete: BTreeSet<String>,
}

impl ChangeArgs {
    /// The changes that the options ask for.
    pub(super) fn read(&self) -> Result<Changes, Failure> {
        let mut changes = Changes::default();
        if let Some(text) = &self.add_config {
            changes.set = parse(text)?;
        }
        if let Some(file) = &self.add_config_file {
            let cannot = |reason: String| Failure::new(format!("cannot read {}: {reason}", file.display()));
            let bytes = std::fs::read(file).map_err(|error| cannot(error.to_string()))?;
            let properties = Properties::parse(&bytes).map_err(|error| cannot(error.to_string()))?;
            changes.set = properties.iter().map(|(key, it)| (key.to_owned(), it.value.clone())).collect();
        }
        if let Some(text) = &self.delete_config {
            changes.delete =
                text.split(',').map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()).collect();
        }
        match changes.delete.iter().find(|key| changes.set.contains_key(*key)) {
            Some(both) => Err(Failure::new(format!("{both} cannot be both set and deleted"))),
            None if changes.set.is_empty() && changes.delete.is_empty() => {
                Err(Failure::new("No config is given")
                    .hint("Name some by --add-config k=v or --delete-config k."))
            }
            None => Ok(changes),
        }
    }
}

/// Splits `k1=v1,k2=[v2,v3]` at the commas outside brackets.
fn parse(text: &str) -> Result<BTreeMap<String, String>, Failure> {
    let mut depth = 0_usize;
    let outside = |c: char| {
        match c {
            '[' => depth = depth.saturating_add(1),
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    let mut configs = BTreeMap::new();
    for part in text.split(outside).map(str::trim).filter(|part| !part.is_empty()) {
        let Some((key, value)) = part.split_once('=') else {
            let hint = "Write key=value; a value that contains commas stands in brackets: key=[a,b]";
            return Err(Failure::new(format!("--add-config: '{part}' has no value")).hint(hint));
        };
        let value = value.trim();
        let bare = value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).unwrap_or(value);
        configs.insert(key.trim().to_owned(), bare.to_owned());
    }
    Ok(configs)
}

#[cfg(test)]
mod tests {
    use super::super::Args;
    use super::*;
    use crate::verbs::configs::entity::{Entity, Kind};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse_line(options: &str) -> Result<(Entity, Option<Changes>), String> {
        let words = std::iter::once("configs").chain(options.split_whitespace());
        let args = Line::try_parse_from(words).map_err(|error| error.to_string())?.args;
        let text = |failure: Failure| failure.to_string();
        let changes = if args.alter { Some(args.changes.read().map_err(text)?) } else { None };
        Ok((args.entity.entity().map_err(text)?, changes))
    }

    #[test]
    fn brackets_keep_the_commas_of_a_value() {
        let parsed = parse("a=1, b=[x,y],c=,d=p=q").unwrap();
        let parsed: Vec<_> = parsed.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(parsed, [("a", "1"), ("b", "x,y"), ("c", ""), ("d", "p=q")]);
        assert!(parse("a").unwrap_err().to_string().contains("'a' has no value"));
    }

    #[test]
    fn entities_have_long_and_short_options() {
        let entity = |options: &str| parse_line(&format!("--describe {options}")).unwrap().0;
        let topic = Entity { kind: Kind::Topic, name: Some("t".to_owned()) };
        assert_eq!(entity("--entity-type topics --entity-name t"), topic);
        assert_eq!(entity("--topic t"), topic);
        assert_eq!(entity("--entity-type topics"), Entity { kind: Kind::Topic, name: None });
        let defaults = Entity { kind: Kind::Broker, name: Some(String::new()) };
        assert_eq!(entity("--entity-type brokers --entity-default"), defaults);
        assert_eq!(entity("--broker-defaults"), defaults);
        assert_eq!(entity("--broker-logger 0").kind, Kind::BrokerLogger);
    }

    #[test]
    fn changes_come_from_options_and_files() {
        let (_, changes) = parse_line("--alter --topic t --add-config a=1 --delete-config b,c").unwrap();
        let changes = changes.unwrap();
        assert_eq!(changes.set.get("a").map(String::as_str), Some("1"));
        assert_eq!(changes.delete.into_iter().collect::<Vec<_>>(), ["b", "c"]);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("p");
        std::fs::write(&file, "x=1\ny=2\n").unwrap();
        let (_, changes) =
            parse_line(&format!("--alter --topic t --add-config-file {}", file.display())).unwrap();
        assert_eq!(changes.unwrap().set.len(), 2);
    }

    #[test]
    fn options_that_do_not_go_together_are_refused() {
        for options in [
            "",
            "--describe",
            "--alter --topic t",
            "--describe --topic t --add-config a=1",
            "--describe --topic t --broker 0",
            "--describe --entity-name t",
            "--describe --entity-type users",
            "--describe --entity-type topics --entity-default",
            "--describe --entity-type broker-loggers",
            "--alter --topic t --add-config a=1 --delete-config a",
            "--alter --topic t --all --add-config a=1",
        ] {
            assert!(parse_line(options).is_err(), "{options}");
        }
    }
}

//! Which groups there are: every broker tells those that it coordinates.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::{Value, json};
use wire::error_code::ErrorCode;
use wire::messages::{ListGroupsRequest, ListGroupsResponse};

use crate::cluster::{Cluster, ClusterError, is_retriable};
use crate::error::VerbError;
use crate::output::{Format, write_json};

const STATES: [&str; 7] =
    ["PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling"];
const TYPES: [&str; 2] = ["Consumer", "Classic"];

/// A group as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// Its id.
    pub(super) name: String,
    /// Its state; empty if the broker does not tell.
    state: String,
    /// Classic or Consumer.
    kind: String,
    protocol_type: String,
}

/// What is shown, and of which groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    show_state: bool,
    show_type: bool,
    states: Vec<&'static str>,
    types: Vec<&'static str>,
}

impl Filter {
    /// Reads `--state` and `--type`; the former means something else if groups are not listed.
    ///
    /// # Errors
    /// If a state or type does not exist.
    pub(super) fn read(state: Option<&str>, kind: Option<&str>, list: bool) -> Result<Self, VerbError> {
        if !list {
            return match state {
                Some(states) if !states.is_empty() => {
                    Err(VerbError::Usage(format!("--state {states}: states are chosen with --list only")))
                }
                _ => Ok(Self::default()),
            };
        }
        Ok(Self {
            show_state: state.is_some(),
            show_type: kind.is_some(),
            states: words("state", state.unwrap_or_default(), &STATES)?,
            types: words("type", kind.unwrap_or_default(), &TYPES)?,
        })
    }

    fn holds(&self, group: &Listed) -> bool {
        let among =
            |all: &[&str], one: &str| all.is_empty() || all.iter().any(|it| it.eq_ignore_ascii_case(one));
        among(&self.states, &group.state) && among(&self.types, &group.kind)
    }
}

fn words(what: &str, list: &str, known: &[&'static str]) -> Result<Vec<&'static str>, VerbError> {
    let word = |word: &str| known.iter().copied().find(|it| it.eq_ignore_ascii_case(word));
    let wrong = || {
        let known = known.join(", ");
        VerbError::Usage(format!("Invalid {what} list '{list}'. Valid {what}s are: {known}"))
    };
    let all = list.split(',').map(str::trim).filter(|word| !word.is_empty());
    all.map(|text| word(text).ok_or_else(wrong)).collect()
}

/// All groups of consumers, by name.
///
/// # Errors
/// If a broker does not answer or refuses.
pub(super) async fn all(cluster: &mut Cluster) -> Result<Vec<Listed>, ClusterError> {
    let ids: Vec<i32> = cluster.brokers().keys().copied().collect();
    let mut groups = BTreeMap::new();
    for id in ids {
        for group in of_broker(cluster, id).await?.groups {
            // Groups of other kinds, such as Connect's, are no consumers; offsets without a group have no type.
            let protocol_type = group.protocol_type.as_str().to_owned();
            if !matches!(protocol_type.as_str(), "consumer" | "") {
                continue;
            }
            let name = group.group_id.as_str().to_owned();
            let kind = TYPES.iter().find(|kind| kind.eq_ignore_ascii_case(&group.group_type));
            let kind = kind.unwrap_or(&"Classic").to_string();
            let state = group.group_state.as_str().to_owned();
            groups.insert(name.clone(), Listed { name, state, kind, protocol_type });
        }
    }
    Ok(groups.into_values().collect())
}

async fn of_broker(cluster: &mut Cluster, id: i32) -> Result<ListGroupsResponse, ClusterError> {
    let attempts = cluster.attempts();
    loop {
        let response = cluster.call_broker(id, &ListGroupsRequest::default()).await?;
        match response.error_code {
            0 => return Ok(response),
            // Such a broker coordinates nothing.
            code if code == ErrorCode::CoordinatorNotAvailable.code() => return Ok(response),
            code if is_retriable(code) && attempts.again().await => {}
            code => return Err(ClusterError::refused(format!("groups of broker {id}"), code, None)),
        }
    }
}

/// Lists the groups.
pub(super) async fn list(
    cluster: &mut Cluster,
    filter: &Filter,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let mut groups = all(cluster).await?;
    groups.retain(|group| filter.holds(group));
    print(&groups, filter, format, out)
}

fn print(groups: &[Listed], filter: &Filter, format: Format, out: &mut dyn Write) -> Result<(), VerbError> {
    if format == Format::Json {
        let group = |group: &Listed| -> Value {
            json!({
                "group": group.name,
                "type": group.kind,
                "state": group.state,
                "protocolType": group.protocol_type,
            })
        };
        return Ok(write_json(out, &groups.iter().map(group).collect::<Vec<_>>())?);
    }
    if !filter.show_state && !filter.show_type {
        for group in groups {
            writeln!(out, "{}", group.name)?;
        }
        return Ok(());
    }
    let width = groups.iter().map(|group| group.name.chars().count()).fold(15, usize::max) + 10;
    let mut line = |name: &str, kind: &str, state: &str| {
        let mut cells = vec![format!("{name:<width$}")];
        if filter.show_type {
            cells.push(format!("{kind:<20}"));
        }
        if filter.show_state {
            cells.push(format!("{state:<20}"));
        }
        writeln!(out, "{}", cells.join(" "))
    };
    line("GROUP", "TYPE", "STATE")?;
    groups.iter().try_for_each(|group| line(&group.name, &group.kind, &group.state))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups() -> [Listed; 2] {
        [("a", "Stable"), ("a-name-longer-than-15", "Empty")].map(|(name, state)| Listed {
            name: name.to_owned(),
            state: state.to_owned(),
            kind: "Classic".to_owned(),
            protocol_type: "consumer".to_owned(),
        })
    }

    fn text(state: Option<&str>, kind: Option<&str>) -> String {
        let filter = Filter::read(state, kind, true).unwrap();
        let chosen: Vec<Listed> = groups().into_iter().filter(|group| filter.holds(group)).collect();
        let mut out = Vec::new();
        print(&chosen, &filter, Format::Kafka, &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(|line| format!("{}|\n", line)).collect()
    }

    #[test]
    fn names_alone_or_with_columns_padded_as_kafka_pads_them() {
        assert_eq!(text(None, None), "a|\na-name-longer-than-15|\n");
        expect_test::expect![[r#"
            GROUP                           STATE               |
            a                               Stable              |
            a-name-longer-than-15           Empty               |
        "#]]
        .assert_eq(&text(Some(""), None));
        expect_test::expect![[r#"
            GROUP                     TYPE                 STATE               |
            a                         Classic              Stable              |
        "#]]
        .assert_eq(&text(Some("stable"), Some("classic")));
    }

    #[test]
    fn a_state_that_does_not_exist_is_refused_with_those_that_do() {
        let error = Filter::read(Some("bogus"), None, true).unwrap_err().to_string();
        let expected = "Invalid state list 'bogus'. Valid states are: PreparingRebalance, CompletingRebalance, \
                        Stable, Dead, Empty, Assigning, Reconciling";
        assert_eq!(error, expected);
        assert!(Filter::read(None, Some("odd"), true).is_err());
        assert!(Filter::read(Some("stable"), None, false).is_err());
    }
}

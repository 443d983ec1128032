//! `blumfeld api-versions`: which versions of which requests each broker serves, as kafka-broker-api-versions tells.
//!
//! A broker that cannot be asked is told in its place, and the verb fails at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::RangeInclusive;

use net::client::ClientError;
use serde_json::{Value, json};
use wire::api::ApiKey;

use super::{block_on, connect};
use crate::cluster::Topics;
use crate::cluster::settings::ConnectOptions;
use crate::error::VerbError;
use crate::output::{Format, FormatOption, Table, stdout, write_json};

/// Keys that clients of Kafka 3.9 know beside those that a broker of a ZooKeeper cluster serves.
const OF_KRAFT: [ApiKey; 17] = [
    ApiKey::DescribeQuorum,
    ApiKey::UnregisterBroker,
    ApiKey::GetTelemetrySubscriptions,
    ApiKey::PushTelemetry,
    ApiKey::ListClientMetricsResources,
    ApiKey::DescribeTopicPartitions,
    ApiKey::ShareGroupHeartbeat,
    ApiKey::ShareGroupDescribe,
    ApiKey::ShareFetch,
    ApiKey::ShareAcknowledge,
    ApiKey::AddRaftVoter,
    ApiKey::RemoveRaftVoter,
    ApiKey::InitializeShareGroupState,
    ApiKey::ReadShareGroupState,
    ApiKey::WriteShareGroupState,
    ApiKey::DeleteShareGroupState,
    ApiKey::ReadShareGroupStateSummary,
];

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct ApiVersionsOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    format: FormatOption,
}

/// A broker and what it serves.
#[derive(Debug)]
struct Told {
    id: i32,
    address: String,
    rack: Option<String>,
    versions: Result<BTreeMap<i16, RangeInclusive<i16>>, ClientError>,
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &ApiVersionsOptions) -> Result<(), VerbError> {
    block_on(async {
        let mut cluster = connect(&options.connect, "blumfeld-api-versions").await?;
        let metadata = cluster.metadata(Topics::None).await?;
        let racks: BTreeMap<i32, Option<String>> = metadata
            .brokers
            .iter()
            .map(|broker| (broker.node_id, broker.rack.as_ref().map(|rack| rack.as_str().to_owned())))
            .collect();
        let brokers = cluster.brokers().clone();
        let mut told = Vec::new();
        for (id, address) in brokers {
            let rack = racks.get(&id).cloned().flatten();
            let versions = match cluster.take_connection(&address).await {
                Ok(client) => {
                    let versions = client.all_versions().clone();
                    cluster.give_connection(&address, client);
                    Ok(versions)
                }
                Err(error) => Err(error),
            };
            told.push(Told { id, address, rack, versions });
        }
        let mut out = stdout();
        print(&told, options.format.get(), &mut out)?;
        out.flush()?;
        match told.iter().filter(|it| it.versions.is_err()).count() {
            0 => Ok(()),
            failed => Err(VerbError::Failed(format!("{failed} of {} brokers do not answer", told.len()))),
        }
    })
}

/// What can be said of a key: its name, the broker's versions, and which of them is the newest that we know.
struct Row {
    name: String,
    versions: Option<RangeInclusive<i16>>,
    usable: String,
}

fn rows(served: &BTreeMap<i16, RangeInclusive<i16>>) -> Vec<(i16, Row)> {
    let known = ApiKey::ALL.iter().filter(|key| !key.versions().is_empty() || OF_KRAFT.contains(key));
    let codes: BTreeSet<i16> = known.map(|key| key.code()).chain(served.keys().copied()).collect();
    let row = |code: i16| {
        let key = ApiKey::from_code(code);
        let name = key.map_or("UNKNOWN", ApiKey::name).to_owned();
        let versions = served.get(&code).cloned();
        let ours = key.map(ApiKey::versions).filter(|ours| !ours.is_empty());
        let usable = match (&versions, ours) {
            (Some(theirs), Some(ours)) => usable(theirs, &ours),
            _ => String::new(),
        };
        (code, Row { name, versions, usable })
    };
    codes.into_iter().map(row).collect()
}

fn usable(theirs: &RangeInclusive<i16>, ours: &RangeInclusive<i16>) -> String {
    if theirs.end() < ours.start() {
        "unusable: node too old".to_owned()
    } else if ours.end() < theirs.start() {
        "unusable: node too new".to_owned()
    } else {
        format!("usable: {}", theirs.end().min(ours.end()))
    }
}

fn range(versions: &RangeInclusive<i16>) -> String {
    match (versions.start(), versions.end()) {
        (start, end) if start == end => start.to_string(),
        (start, end) => format!("{start} to {end}"),
    }
}

fn print(told: &[Told], format: Format, out: &mut dyn Write) -> Result<(), VerbError> {
    match format {
        Format::Kafka => {
            for it in told {
                let rack = it.rack.as_deref().unwrap_or("null");
                write!(out, "{} (id: {} rack: {rack}) -> ", it.address, it.id)?;
                match &it.versions {
                    Ok(served) => {
                        let lines = rows(served).into_iter().map(|(code, row)| line(code, &row));
                        writeln!(out, "(\n{}\n)", lines.collect::<Vec<_>>().join(",\n"))?;
                    }
                    Err(error) => writeln!(out, "ERROR: {error}")?,
                }
            }
        }
        Format::Table => {
            let mut table = Table::new(["BROKER", "ADDRESS", "KEY", "REQUEST", "VERSIONS", "NEWEST"]);
            for it in told {
                let mut push = |key: &str, name: &str, versions: &str, newest: &str| {
                    let words = [key, name, versions, newest].map(str::to_owned);
                    let [key, name, versions, newest] = words;
                    table.push([it.id.to_string(), it.address.clone(), key, name, versions, newest]);
                };
                match &it.versions {
                    Ok(served) => {
                        for (code, row) in rows(served) {
                            let versions = row.versions.as_ref().map_or_else(|| "-".to_owned(), range);
                            push(&code.to_string(), &row.name, &versions, &row.usable);
                        }
                    }
                    Err(error) => push("", "", "", &error.to_string()),
                }
            }
            table.write(out)?;
        }
        Format::Json => write_json(out, &told.iter().map(to_json).collect::<Vec<_>>())?,
    }
    Ok(())
}

fn line(code: i16, row: &Row) -> String {
    let versions = row.versions.as_ref().map_or_else(|| "UNSUPPORTED".to_owned(), range);
    let usable = if row.usable.is_empty() { String::new() } else { format!(" [{}]", row.usable) };
    format!("\t{}({code}): {versions}{usable}", row.name)
}

fn to_json(told: &Told) -> Value {
    let api = |(code, versions): (&i16, &RangeInclusive<i16>)| {
        let name = ApiKey::from_code(*code).map(ApiKey::name);
        json!({ "key": code, "name": name, "min": versions.start(), "max": versions.end() })
    };
    let apis = told.versions.as_ref().ok().map(|served| served.iter().map(api).collect::<Vec<_>>());
    json!({
        "broker": told.id,
        "address": told.address,
        "rack": told.rack,
        "apis": apis,
        "error": told.versions.as_ref().err().map(ToString::to_string),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(versions: Result<BTreeMap<i16, RangeInclusive<i16>>, ClientError>) -> Told {
        Told { id: 3, address: "h:1".to_owned(), rack: None, versions }
    }

    fn text(told: &Told, format: Format) -> String {
        let mut out = Vec::new();
        print(std::slice::from_ref(told), format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_tells_versions_and_the_newest_that_both_sides_know() {
        let served = BTreeMap::from([(0, 0..=99), (1, 4..=11), (46, 0..=0), (56, 7..=9), (999, 2..=3)]);
        let text = text(&told(Ok(served)), Format::Kafka);
        for expected in [
            "h:1 (id: 3 rack: null) -> (\n\tProduce(0): 0 to 99 [usable: 11],\n",
            "\tFetch(1): 4 to 11 [usable: 11],\n",
            "\tMetadata(3): UNSUPPORTED,\n",
            "\tListPartitionReassignments(46): 0 [usable: 0],\n",
            "\tAlterPartition(56): 7 to 9 [unusable: node too new],\n",
            "\tReadShareGroupStateSummary(87): UNSUPPORTED,\n",
            "\tUNKNOWN(999): 2 to 3\n)\n",
        ] {
            assert!(text.contains(expected), "{expected}\nin {text}");
        }
        assert!(!text.contains("Vote(52)"));
    }

    #[test]
    fn a_broker_that_does_not_answer_is_told_in_its_place() {
        let silent = told(Err(ClientError::Closed));
        assert_eq!(
            text(&silent, Format::Kafka),
            "h:1 (id: 3 rack: null) -> ERROR: the broker closed the connection\n"
        );
        assert!(text(&silent, Format::Table).ends_with("the broker closed the connection\n"));
        assert!(text(&silent, Format::Json).contains(r#""error":"the broker closed the connection""#));
    }

    #[test]
    fn a_broker_may_be_too_old() {
        assert_eq!(usable(&(0..=1), &(2..=3)), "unusable: node too old");
    }
}

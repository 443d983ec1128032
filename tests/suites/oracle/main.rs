//! Every request that Blumfeld serves, in every version, valid and malformed, sent to a real Kafka 3.9 and to
//! Blumfeld: the answers are the same field by field, but for what `docs/compatibility.md` explains.

#![allow(clippy::type_complexity, reason = "a table of cases is read as it stands")]
#![allow(unreachable_pub, reason = "modules of one test share what they need")]
#![allow(clippy::indexing_slicing, reason = "a test that panics has failed")]

mod accepted;
mod cases;
mod lab;
mod requests;
mod tree;

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use wire::api::ApiKey;

use crate::lab::Lab;

/// A broker deletes nothing by age while a test looks at it.
const SETTINGS: [(&str, &str); 4] = [
    ("log.retention.ms", "-1"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("num.partitions", "2"),
    ("offsets.topic.num.partitions", "3"),
];

fn judge(lab: &Lab, name: &str) -> Result<BTreeSet<&'static str>> {
    let mut used = BTreeSet::new();
    let mut open = Vec::new();
    for siblings in
        lab.differences.chunk_by(|a, b| (&a.case, a.key, a.version) == (&b.case, b.key, b.version))
    {
        for difference in siblings {
            match accepted::reason(difference, siblings) {
                Some(title) => {
                    used.insert(title);
                }
                None => open.push(difference),
            }
        }
    }
    let text: Vec<String> = open
        .iter()
        .map(|d| {
            let api = ApiKey::from_code(d.key).map_or("?", ApiKey::name);
            format!(
                "{api} v{} {:?}: {}: Kafka {} Blumfeld {}",
                d.version, d.case, d.path, d.kafka, d.blumfeld
            )
        })
        .collect();
    let count: usize = lab.compared.values().sum();
    println!("{name}: {count} answers compared, {} accepted differences", lab.differences.len() - open.len());
    for (kind, silent) in [("Kafka", &lab.unanswered_by_kafka), ("Blumfeld", &lab.unanswered_by_blumfeld)] {
        ensure!(silent.is_empty(), "{name}: {kind} does not answer: {}", silent.join("; "));
    }
    ensure!(open.is_empty(), "{name}: {} fields differ\n{}", open.len(), text.join("\n"));
    Ok(used)
}

#[test]
fn the_same_answers_to_every_request_in_every_version() -> Result<()> {
    let mut lab = Lab::start(&SETTINGS)?;
    cases::setup(&mut lab)?;
    cases::metadata::run(&mut lab)?;
    cases::produce::run(&mut lab)?;
    cases::producers::run(&mut lab)?;
    cases::fetch::run(&mut lab)?;
    cases::offsets::run(&mut lab)?;
    cases::topics::run(&mut lab)?;
    cases::configs::run(&mut lab)?;
    cases::administration::run(&mut lab)?;
    cases::groups::run(&mut lab)?;
    cases::group_refusals::run(&mut lab)?;
    cases::static_members::run(&mut lab)?;
    cases::frames::run(&mut lab)?;
    let used = judge(&lab, "all requests")?;
    for entry in accepted::ACCEPTED {
        ensure!(used.contains(entry.title), "{:?} is no difference any more", entry.title);
    }
    for key in accepted::SERVED {
        for version in key.versions() {
            ensure!(lab.compared.contains_key(&(key.code(), version)), "{key} v{version} was not compared");
        }
    }
    Ok(())
}

#[test]
fn the_same_answers_about_dynamic_configs_of_brokers() -> Result<()> {
    let mut lab = Lab::start(&[("log.retention.hours", "100"), ("log.roll.jitter.hours", "1")])?;
    cases::broker_configs::run(&mut lab)?;
    judge(&lab, "configs of brokers")?;
    Ok(())
}

#[test]
fn the_same_answers_where_settings_forbid_things() -> Result<()> {
    let settings = [
        ("auto.create.topics.enable", "false"),
        ("delete.topic.enable", "false"),
        ("message.max.bytes", "2000"),
        ("log.message.timestamp.type", "LogAppendTime"),
        ("compression.type", "zstd"),
        ("min.insync.replicas", "2"),
        ("log.retention.ms", "-1"),
    ];
    let mut lab = Lab::start(&settings)?;
    cases::forbidden::run(&mut lab)?;
    judge(&lab, "settings that forbid")?;
    Ok(())
}

#[test]
fn every_accepted_difference_is_explained_for_users() -> Result<()> {
    let text = std::fs::read_to_string(interop::cache::workspace().join("docs/compatibility.md"))?;
    for entry in accepted::ACCEPTED {
        ensure!(
            text.contains(&format!("### {}\n", entry.title)),
            "docs/compatibility.md lacks {:?}",
            entry.title
        );
    }
    Ok(())
}

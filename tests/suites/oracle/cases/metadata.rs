//! ApiVersions, Metadata, DescribeCluster, DescribeLogDirs.

use anyhow::Result;
use wire::Str;
use wire::messages::describe_log_dirs_request::DescribableLogDirTopic;
use wire::messages::metadata_request::MetadataRequestTopic;
use wire::messages::{ApiVersionsRequest, DescribeClusterRequest, DescribeLogDirsRequest, MetadataRequest};
use wire::types::TopicId;

use super::all;
use crate::lab::{Lab, Side};

pub fn run(lab: &mut Lab) -> Result<()> {
    api_versions(lab)?;
    by_name(lab)?;
    by_id(lab)?;
    cluster(lab)?;
    auto_creation(lab)
}

fn api_versions(lab: &mut Lab) -> Result<()> {
    for (case, name, version) in [
        ("known software", "apache-kafka-java", "3.9.0"),
        ("no software name", "", "1"),
        ("bad software name", "-client", "1"),
        ("software name with a blank", "a b", "1"),
        ("bad software version", "client", "1.0-"),
        ("no software version", "client", ""),
    ] {
        lab.ask::<ApiVersionsRequest>(case, all::<ApiVersionsRequest>(), |_, version_asked| {
            let mut request = ApiVersionsRequest::default();
            if version_asked >= 3 {
                request.client_software_name = Str::from(name);
                request.client_software_version = Str::from(version);
            }
            request
        })?;
    }
    Ok(())
}

fn named(names: &[&str]) -> Option<Vec<MetadataRequestTopic>> {
    let topics = names
        .iter()
        .map(|name| MetadataRequestTopic { name: Some(Str::from(*name)), ..MetadataRequestTopic::default() });
    Some(topics.collect())
}

fn quiet(version: i16, topics: Option<Vec<MetadataRequestTopic>>) -> MetadataRequest {
    MetadataRequest { topics, allow_auto_topic_creation: version < 4, ..MetadataRequest::default() }
}

fn by_name(lab: &mut Lab) -> Result<()> {
    let versions = all::<MetadataRequest>();
    lab.ask("no topics asked for", versions.clone(), |_, v| quiet(v, named(&[])))?;
    lab.ask("all topics", 1..=12, |_, v| quiet(v, None))?;
    lab.ask("known topics", versions.clone(), |_, v| quiet(v, named(&["three", "one"])))?;
    lab.ask("a topic twice", versions.clone(), |_, v| quiet(v, named(&["one", "one"])))?;
    lab.ask("an unknown topic", 4..=12, |_, v| quiet(v, named(&["nobody", "one"])))?;
    let long = "n".repeat(250);
    for name in ["", ".", "..", "a b", "ä", "a/b", "a\0b", long.as_str()] {
        lab.ask(&format!("illegal name {name:?}"), versions.clone(), |_, v| quiet(v, named(&[name])))?;
        lab.ask(&format!("illegal name {name:?}, creating"), 4..=12, |_, v| MetadataRequest {
            allow_auto_topic_creation: true,
            ..quiet(v, named(&[name]))
        })?;
    }
    lab.ask("operations", 8..=12, |_, v| MetadataRequest {
        include_cluster_authorized_operations: v <= 10,
        include_topic_authorized_operations: true,
        ..quiet(v, named(&["one", "nobody"]))
    })
}

fn identified(ids: Vec<(TopicId, Option<&str>)>) -> Option<Vec<MetadataRequestTopic>> {
    let topics =
        ids.into_iter().map(|(topic_id, name)| MetadataRequestTopic { topic_id, name: name.map(Str::from) });
    Some(topics.collect())
}

fn by_id(lab: &mut Lab) -> Result<()> {
    let unknown = TopicId([7; 16]);
    let ask = |lab: &mut Lab, case: &str, ids: &dyn Fn(&Side) -> Vec<(TopicId, Option<&'static str>)>| {
        lab.ask(case, 10..=12, |side, v| quiet(v, identified(ids(side))))
    };
    ask(lab, "a known id", &|side| vec![(side.id("three"), None)])?;
    ask(lab, "a known id with its name", &|side| vec![(side.id("three"), Some("three"))])?;
    ask(lab, "a known id with another name", &|side| vec![(side.id("three"), Some("one"))])?;
    ask(lab, "an unknown id", &|_| vec![(unknown, None)])?;
    ask(lab, "an id and a name", &|side| vec![(side.id("three"), None), (TopicId::default(), Some("one"))])?;
    ask(lab, "neither id nor name", &|_| vec![(TopicId::default(), None)])
}

fn auto_creation(lab: &mut Lab) -> Result<()> {
    for version in all::<MetadataRequest>() {
        let name = format!("created-by-metadata-{version}");
        let request = MetadataRequest { topics: named(&[&name]), ..MetadataRequest::default() };
        lab.once("an unknown topic is created", version, |_| request.clone())?;
    }
    lab.learn_ids()?;
    lab.ask("created topics", 10..=12, |_, v| quiet(v, named(&["created-by-metadata-1"])))?;
    lab.once("a name that collides", 4, |_| MetadataRequest {
        topics: named(&["created.by.metadata.1"]),
        ..MetadataRequest::default()
    })?;
    Ok(())
}

fn cluster(lab: &mut Lab) -> Result<()> {
    for endpoint_type in [0, 1, 2, 3, -1] {
        for include in [false, true] {
            let versions = if endpoint_type == 1 { 0..=1 } else { 1..=1 };
            lab.ask(&format!("endpoints {endpoint_type}, operations {include}"), versions, |_, _| {
                DescribeClusterRequest { include_cluster_authorized_operations: include, endpoint_type }
            })?;
        }
    }
    let dirs = |topics: &[(&str, &[i32])]| DescribeLogDirsRequest {
        topics: Some(
            topics
                .iter()
                .map(|(topic, partitions)| DescribableLogDirTopic {
                    topic: Str::from(*topic),
                    partitions: partitions.to_vec(),
                })
                .collect(),
        ),
    };
    let versions = all::<DescribeLogDirsRequest>();
    lab.ask("all directories", versions.clone(), |_, _| DescribeLogDirsRequest { topics: None })?;
    lab.ask("no topics", versions.clone(), |_, _| dirs(&[]))?;
    lab.ask("some partitions", versions.clone(), |_, _| dirs(&[("three", &[0, 2, 9]), ("nobody", &[0])]))?;
    lab.ask("only unknown ones", versions, |_, _| dirs(&[("nobody", &[0])]))
}

//! The same requests where the broker's settings forbid what they ask for.

use anyhow::Result;
use wire::Str;
use wire::messages::delete_topics_request::DeleteTopicState;
use wire::messages::describe_configs_request::DescribeConfigsResource;
use wire::messages::metadata_request::MetadataRequestTopic;
use wire::messages::{DeleteTopicsRequest, DescribeConfigsRequest, MetadataRequest, ProduceRequest};

use super::all;
use super::produce::batch;
use crate::lab::Lab;
use crate::requests::{fetch, produce};

pub fn run(lab: &mut Lab) -> Result<()> {
    lab.create_topic("one", 1, &[])?;
    lab.create_topic("own", 1, &[("compression.type", "producer"), ("min.insync.replicas", "1")])?;
    for creating in [false, true] {
        lab.ask(&format!("unknown topic, creating {creating}"), 4..=12, |_, _| MetadataRequest {
            topics: Some(vec![MetadataRequestTopic { name: Some("nobody".into()), ..Default::default() }]),
            allow_auto_topic_creation: creating,
            ..MetadataRequest::default()
        })?;
    }
    for topic in ["one", "own"] {
        for acks in [1, -1] {
            lab.ask(&format!("acks {acks} to {topic}"), all::<ProduceRequest>(), |_, _| {
                produce(topic, 0, acks, Some(batch(&[b"a", b"b"])))
            })?;
        }
        lab.ask(&format!("too large for {topic}"), all::<ProduceRequest>(), |_, _| {
            produce(topic, 0, 1, Some(batch(&[&[3; 2_500]])))
        })?;
        lab.ask(&format!("end of {topic}"), 4..=17, |side, v| fetch(side, v, topic, 0, 5))?;
    }
    for version in all::<DeleteTopicsRequest>() {
        lab.once("delete", version, |_| {
            let mut request = DeleteTopicsRequest { timeout_ms: 60_000, ..DeleteTopicsRequest::default() };
            if version >= 6 {
                request.topics = vec![DeleteTopicState { name: Some("one".into()), ..Default::default() }];
            } else {
                request.topic_names = vec!["one".into(), "nobody".into()];
            }
            request
        })?;
    }
    for (kind, name) in [(2, "one"), (2, "own"), (4, "0")] {
        lab.ask(&format!("describe {kind} {name}"), 1..=4, |_, _| DescribeConfigsRequest {
            resources: vec![DescribeConfigsResource {
                resource_type: kind,
                resource_name: Str::from(name),
                configuration_keys: None,
            }],
            include_synonyms: true,
            ..DescribeConfigsRequest::default()
        })?;
    }
    Ok(())
}

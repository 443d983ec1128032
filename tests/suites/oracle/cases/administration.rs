//! DescribeProducers, ElectLeaders, names that collide, log levels.

use anyhow::Result;
use wire::Str;
use wire::messages::describe_configs_request::DescribeConfigsResource;
use wire::messages::describe_producers_request::TopicRequest;
use wire::messages::elect_leaders_request::TopicPartitions;
use wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use wire::messages::{
    CreateTopicsRequest, DescribeConfigsRequest, DescribeProducersRequest, ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
};

use super::{all, producers};
use crate::lab::Lab;
use crate::requests::{creatable, create_topics};

const BROKER_LOGGER: i8 = 8;

pub fn run(lab: &mut Lab) -> Result<()> {
    describe_producers(lab)?;
    elect(lab)?;
    collide(lab)?;
    levels(lab)
}

fn describe_producers(lab: &mut Lab) -> Result<()> {
    lab.create_topic("written", 2, &[])?;
    producers::write_some(lab, "written")?;
    let cases: [(&str, &[(&str, &[i32])]); 8] = [
        ("written", &[("written", &[0])]),
        ("not written", &[("written", &[1])]),
        ("both, and one too many", &[("written", &[1, 0, 2])]),
        ("unknown topic", &[("nobody", &[0])]),
        ("illegal topic", &[("a b", &[0]), ("", &[0])]),
        ("negative", &[("written", &[-1])]),
        ("no partitions", &[("written", &[])]),
        ("nothing", &[]),
    ];
    for (case, topics) in cases {
        lab.ask(&format!("producers: {case}"), all::<DescribeProducersRequest>(), |_, _| {
            let topics = topics.iter().map(|(name, partitions)| TopicRequest {
                name: Str::from(*name),
                partition_indexes: partitions.to_vec(),
            });
            DescribeProducersRequest { topics: topics.collect() }
        })?;
    }
    Ok(())
}

fn elect(lab: &mut Lab) -> Result<()> {
    let cases: [(&str, Option<&[(&str, &[i32])]>); 7] = [
        ("not needed", Some(&[("three", &[0, 2])])),
        ("one is unknown", Some(&[("three", &[0, 9])])),
        ("unknown topic", Some(&[("nobody", &[0])])),
        ("illegal topic", Some(&[("a b", &[0])])),
        ("no partitions", Some(&[("three", &[])])),
        ("nothing", Some(&[])),
        ("all", None),
    ];
    for (case, topics) in cases {
        for election_type in [0, 1, 2, -1] {
            let versions = if election_type == 0 { 0..=2 } else { 1..=2 };
            lab.ask(&format!("elect {election_type}: {case}"), versions, |_, _| ElectLeadersRequest {
                election_type,
                topic_partitions: topics.map(|topics| {
                    let each = topics.iter().map(|(topic, partitions)| TopicPartitions {
                        topic: Str::from(*topic),
                        partitions: partitions.to_vec(),
                    });
                    each.collect()
                }),
                timeout_ms: 10_000,
            })?;
        }
    }
    Ok(())
}

fn collide(lab: &mut Lab) -> Result<()> {
    let pair = || create_topics(vec![creatable("at.once", 1, 1, &[]), creatable("at_once", 1, 1, &[])]);
    // Which of the two is made if both are wanted is chance in Kafka.
    lab.ask("collide at once, dry", 1..=7, |_, _| CreateTopicsRequest { validate_only: true, ..pair() })
}

fn levels(lab: &mut Lab) -> Result<()> {
    let cases: [(&str, &[(&str, i8, Option<&str>)]); 12] = [
        ("0", &[("root", 0, Some("INFO"))]),
        ("0", &[("root", 0, Some("info"))]),
        ("0", &[("root", 0, Some("OFF"))]),
        ("0", &[("root", 0, None)]),
        ("0", &[("root", 1, None)]),
        ("0", &[("root", 2, Some("INFO"))]),
        ("0", &[("root", 3, Some("INFO"))]),
        ("0", &[("no.such.logger", 0, Some("INFO"))]),
        ("0", &[("no.such.logger", 1, None)]),
        ("1", &[("root", 0, Some("INFO"))]),
        ("", &[("root", 0, Some("INFO"))]),
        ("0", &[]),
    ];
    for (name, changes) in cases {
        for validate_only in [true, false] {
            let case = format!("levels of {name:?} {changes:?}, dry {validate_only}");
            lab.ask(&case, all::<IncrementalAlterConfigsRequest>(), |_, _| IncrementalAlterConfigsRequest {
                resources: vec![AlterConfigsResource {
                    resource_type: BROKER_LOGGER,
                    resource_name: Str::from(name),
                    configs: changes
                        .iter()
                        .map(|(name, operation, value)| AlterableConfig {
                            name: Str::from(*name),
                            config_operation: *operation,
                            value: value.map(Str::from),
                        })
                        .collect(),
                }],
                validate_only,
            })?;
        }
    }
    for name in ["0", "1", "x", ""] {
        lab.ask(&format!("root of broker {name:?}"), all::<DescribeConfigsRequest>(), |_, _| {
            DescribeConfigsRequest {
                resources: vec![DescribeConfigsResource {
                    resource_type: BROKER_LOGGER,
                    resource_name: Str::from(name),
                    configuration_keys: Some(vec![Str::from("root")]),
                }],
                ..DescribeConfigsRequest::default()
            }
        })?;
    }
    Ok(())
}

//! DescribeConfigs, AlterConfigs, IncrementalAlterConfigs.

use anyhow::Result;
use wire::Str;
use wire::messages::describe_configs_request::DescribeConfigsResource;
use wire::messages::{AlterConfigsRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest};
use wire::messages::{alter_configs_request as legacy, incremental_alter_configs_request as incremental};

use super::all;
use crate::lab::Lab;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

pub fn run(lab: &mut Lab) -> Result<()> {
    lab.create_topic("set", 1, &[("retention.ms", "5000"), ("max.message.bytes", "2000")])?;
    described(lab)?;
    replaced(lab)?;
    changed(lab)?;
    refused(lab)
}

fn describe(resources: &[(i8, &str, Option<&[&str]>)]) -> DescribeConfigsRequest {
    let resources = resources.iter().map(|(resource_type, name, keys)| DescribeConfigsResource {
        resource_type: *resource_type,
        resource_name: Str::from(*name),
        configuration_keys: keys.map(|keys| keys.iter().map(|key| Str::from(*key)).collect()),
    });
    DescribeConfigsRequest { resources: resources.collect(), ..DescribeConfigsRequest::default() }
}

fn described(lab: &mut Lab) -> Result<()> {
    let keys: &[&str] = &["retention.ms", "cleanup.policy", "no.such.key"];
    let cases: [(&str, &[(i8, &str, Option<&[&str]>)]); 18] = [
        ("a topic", &[(TOPIC, "set", None)]),
        ("some keys", &[(TOPIC, "set", Some(keys))]),
        ("no keys", &[(TOPIC, "set", Some(&[]))]),
        ("several", &[(TOPIC, "set", Some(keys)), (TOPIC, "one", Some(keys)), (BROKER, "0", Some(keys))]),
        ("the same twice", &[(TOPIC, "set", Some(keys)), (TOPIC, "set", Some(&["retention.bytes"]))]),
        ("unknown topic", &[(TOPIC, "nobody", None)]),
        ("illegal topic", &[(TOPIC, "a b", None)]),
        ("no topic", &[(TOPIC, "", None)]),
        ("this broker", &[(BROKER, "0", None)]),
        (
            "a broker's key",
            &[(BROKER, "0", Some(&["log.retention.ms", "num.io.threads", "log.cleanup.policy"]))],
        ),
        ("the brokers' defaults", &[(BROKER, "", None)]),
        ("another broker", &[(BROKER, "1", None)]),
        ("no broker", &[(BROKER, "x", None)]),
        ("unknown kind 0", &[(0, "set", None)]),
        ("unknown kind 1", &[(1, "set", None)]),
        ("unknown kind 99", &[(99, "set", None)]),
        ("client metrics", &[(16, "set", None)]),
        ("nothing", &[]),
    ];
    for (case, resources) in cases {
        let versions = all::<DescribeConfigsRequest>();
        lab.ask(&format!("describe {case}"), versions, |_, _| describe(resources))?;
        lab.ask(&format!("describe {case} with synonyms"), 1..=4, |_, _| DescribeConfigsRequest {
            include_synonyms: true,
            ..describe(resources)
        })?;
    }
    lab.ask("described in words", 3..=4, |_, _| DescribeConfigsRequest {
        include_documentation: true,
        ..describe(&[(TOPIC, "set", Some(keys))])
    })
}

fn replace(kind: i8, name: &str, configs: &[(&str, Option<&str>)]) -> AlterConfigsRequest {
    let configs = configs
        .iter()
        .map(|(name, value)| legacy::AlterableConfig { name: Str::from(*name), value: value.map(Str::from) });
    AlterConfigsRequest {
        resources: vec![legacy::AlterConfigsResource {
            resource_type: kind,
            resource_name: Str::from(name),
            configs: configs.collect(),
        }],
        validate_only: false,
    }
}

fn look(lab: &mut Lab, case: &str) -> Result<()> {
    lab.ask(&format!("after {case}"), 4..=4, |_, _| DescribeConfigsRequest {
        include_synonyms: true,
        ..describe(&[(TOPIC, "set", None)])
    })
}

fn replaced(lab: &mut Lab) -> Result<()> {
    let cases: [(&str, &[(&str, Option<&str>)]); 10] = [
        ("one key", &[("retention.bytes", Some("7"))]),
        ("two keys", &[("retention.ms", Some("1")), ("cleanup.policy", Some("compact"))]),
        ("blanks around", &[("retention.ms", Some(" 12 "))]),
        ("a list with blanks", &[("cleanup.policy", Some(" compact , delete "))]),
        ("throttles", &[("leader.replication.throttled.replicas", Some("0:0"))]),
        ("a null value", &[("retention.ms", None)]),
        ("a bad value", &[("retention.ms", Some("x"))]),
        ("an unknown key", &[("no.such.key", Some("x"))]),
        ("a key twice", &[("retention.ms", Some("1")), ("retention.ms", Some("2"))]),
        ("nothing", &[]),
    ];
    for (case, configs) in cases {
        lab.ask(&format!("replace {case}, dry"), all::<AlterConfigsRequest>(), |_, _| AlterConfigsRequest {
            validate_only: true,
            ..replace(TOPIC, "set", configs)
        })?;
        lab.ask(&format!("replace {case}"), all::<AlterConfigsRequest>(), |_, _| {
            replace(TOPIC, "set", configs)
        })?;
        look(lab, case)?;
    }
    Ok(())
}

fn change(kind: i8, name: &str, configs: &[(&str, i8, Option<&str>)]) -> IncrementalAlterConfigsRequest {
    let configs = configs.iter().map(|(name, operation, value)| incremental::AlterableConfig {
        name: Str::from(*name),
        config_operation: *operation,
        value: value.map(Str::from),
    });
    IncrementalAlterConfigsRequest {
        resources: vec![incremental::AlterConfigsResource {
            resource_type: kind,
            resource_name: Str::from(name),
            configs: configs.collect(),
        }],
        validate_only: false,
    }
}

fn changed(lab: &mut Lab) -> Result<()> {
    let cases: [(&str, &[(&str, i8, Option<&str>)]); 20] = [
        ("set", &[("retention.ms", 0, Some("9000"))]),
        ("set another", &[("retention.bytes", 0, Some("9"))]),
        ("append", &[("cleanup.policy", 2, Some("compact"))]),
        ("append what is there", &[("cleanup.policy", 2, Some("compact,delete"))]),
        ("subtract", &[("cleanup.policy", 3, Some("delete"))]),
        ("subtract the last", &[("cleanup.policy", 3, Some("compact"))]),
        ("subtract what is not there", &[("cleanup.policy", 3, Some("delete"))]),
        ("delete", &[("retention.ms", 1, None)]),
        ("delete what is not there", &[("retention.ms", 1, Some("5"))]),
        ("delete an unknown key", &[("no.such.key", 1, None)]),
        ("append to no list", &[("retention.ms", 2, Some("5"))]),
        ("subtract from no list", &[("retention.ms", 3, Some("5"))]),
        ("operation 4", &[("retention.ms", 4, Some("5"))]),
        ("operation -1", &[("retention.ms", -1, Some("5"))]),
        ("set null", &[("retention.ms", 0, None)]),
        ("append null", &[("cleanup.policy", 2, None)]),
        ("bad value", &[("retention.ms", 0, Some("x"))]),
        ("unknown key", &[("no.such.key", 0, Some("x"))]),
        ("key twice", &[("retention.ms", 0, Some("1")), ("retention.ms", 1, None)]),
        ("nothing", &[]),
    ];
    let versions = all::<IncrementalAlterConfigsRequest>();
    for (case, configs) in cases {
        lab.ask(&format!("change: {case}, dry"), versions.clone(), |_, _| IncrementalAlterConfigsRequest {
            validate_only: true,
            ..change(TOPIC, "set", configs)
        })?;
        lab.ask(&format!("change: {case}"), versions.clone(), |_, _| change(TOPIC, "set", configs))?;
        look(lab, case)?;
    }
    Ok(())
}

fn refused(lab: &mut Lab) -> Result<()> {
    for (case, kind, name) in [
        ("unknown topic", TOPIC, "nobody"),
        ("illegal topic", TOPIC, "a b"),
        ("no topic", TOPIC, ""),
        ("another broker", BROKER, "1"),
        ("no broker", BROKER, "x"),
        ("unknown kind", 99, "x"),
        ("kind 0", 0, "x"),
        ("kind 1", 1, "x"),
        ("client metrics", 16, "x"),
    ] {
        for validate_only in [false, true] {
            lab.ask(
                &format!("replace of {case}, dry {validate_only}"),
                all::<AlterConfigsRequest>(),
                |_, _| AlterConfigsRequest {
                    validate_only,
                    ..replace(kind, name, &[("retention.ms", Some("1"))])
                },
            )?;
            lab.ask(&format!("change of {case}, dry {validate_only}"), 0..=1, |_, _| {
                IncrementalAlterConfigsRequest {
                    validate_only,
                    ..change(kind, name, &[("retention.ms", 0, Some("1"))])
                }
            })?;
        }
    }
    lab.silent_kafka(|lab| {
        lab.ask("a resource twice", all::<AlterConfigsRequest>(), |_, _| {
            let mut request = replace(TOPIC, "set", &[("retention.ms", Some("1"))]);
            request.resources.push(request.resources[0].clone());
            request
        })
    })?;
    lab.ask("a resource changed twice", 0..=1, |_, _| {
        let mut request = change(TOPIC, "set", &[("retention.ms", 0, Some("1"))]);
        request.resources.push(request.resources[0].clone());
        request
    })?;
    lab.ask("one good, one bad", 0..=1, |_, _| {
        let mut request = change(TOPIC, "set", &[("retention.ms", 0, Some("77"))]);
        request.resources.extend(change(TOPIC, "nobody", &[("retention.ms", 0, Some("1"))]).resources);
        request
    })?;
    lab.ask("no resources", all::<AlterConfigsRequest>(), |_, _| AlterConfigsRequest::default())?;
    lab.ask("no resources", 0..=1, |_, _| IncrementalAlterConfigsRequest::default())?;
    look(lab, "all refusals")
}

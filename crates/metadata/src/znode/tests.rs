//! Every kind of znode against the bytes that Kafka 3.9.2 wrote, and against what older releases wrote.

use super::broker::{BrokerRegistration, Endpoint, SecurityProtocol};
use super::config::{ConfigEntity, EntityName};
use super::controller::Controller;
use super::feature::{Features, Format, Levels};
use super::partition_state::PartitionState;
use super::producer_id_block::ProducerIdBlock;
use super::topic::{PartitionAssignment, TopicAssignment};
use super::*;
use crate::embedded::EmbeddedStore;
use crate::store::{Blocking, Op, OpResult, Store};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use wire::types::{BrokerId, ControllerEpoch, LeaderEpoch, Millis, TopicId, TopicName, TopicPartition};

const RECORDED: [(&str, &str); 3] = [
    ("2.0", include_str!("recorded/ibp-2.0.txt")),
    ("2.6", include_str!("recorded/ibp-2.6.txt")),
    ("3.9", include_str!("recorded/ibp-3.9.txt")),
];

#[track_caller]
fn ok<T, E: Debug>(result: Result<T, E>) -> T {
    result.expect("it is understood")
}

/// Decodes a value by its path and encodes it again; `None` for a znode without data.
fn again(path: &str, value: &str) -> Option<Vec<u8>> {
    let data = Some(value.as_bytes());
    let names: Vec<&str> = path.split('/').skip(1).collect();
    Some(match names.as_slice() {
        ["brokers", "ids", _] => {
            let version = if value.contains("features") { 5 } else { 4 };
            ok(BrokerRegistration::decode(data)).encode(version)
        }
        ["brokers", "topics", topic] => {
            assert_eq!(topic::path(&TopicName::from(*topic)), path);
            ok(TopicAssignment::decode(data)).encode()
        }
        ["brokers", "topics", topic, "partitions", partition, "state"] => {
            assert_eq!(partition_state::path(&TopicPartition::new(*topic, ok(partition.parse()))), path);
            ok(PartitionState::decode(data)).encode()
        }
        ["cluster", "id"] => cluster_id::encode(&ok(cluster_id::decode(data))),
        ["config", "changes", _] => config_change::encode(&ok(config_change::decode(data))),
        ["config", entity @ ..] if !value.is_empty() => {
            let entity = ConfigEntity::parse(&entity.join("/")).expect("an entity");
            assert_eq!(entity.path(), path);
            config::encode(&ok(config::decode(data)))
        }
        ["controller"] => ok(Controller::decode(data)).encode(),
        ["controller_epoch"] => controller_epoch::encode(ok(controller_epoch::decode(data))),
        ["feature"] => ok(Features::decode(data)).encode(),
        ["latest_producer_id_block"] => ok(ProducerIdBlock::decode(data))?.encode(),
        _ => return None,
    })
}

#[test]
fn every_recorded_value_is_written_again_to_the_same_bytes() {
    for (release, recorded) in RECORDED {
        let mut with_data = 0;
        for line in recorded.lines().filter(|line| !line.starts_with('#')) {
            let (path, value) = line.split_once('\t').expect("path and value");
            match again(path, value) {
                Some(bytes) => {
                    assert_eq!(String::from_utf8_lossy(&bytes), value, "{release} {path}");
                    with_data += 1;
                }
                None => assert_eq!(value, "", "{release} {path} is not covered"),
            }
        }
        assert!(with_data >= 30, "{release}: {with_data}");
    }
}

#[test]
fn the_recorded_paths_are_what_a_start_makes_sure_of() {
    let recorded: Vec<&str> =
        RECORDED[2].1.lines().filter_map(|line| line.split_once('\t').map(|(path, _)| path)).collect();
    for path in persistent_paths::PERSISTENT_PATHS {
        assert!(recorded.contains(&path), "{path}");
    }
    let store = EmbeddedStore::open_memory().expect("it opens");
    let session = store.session(Arc::new(|_| {}));
    let calls = Blocking::new(&session);
    calls.ensure_path("/config/changes").expect("created");
    ensure_persistent_paths(&session).expect("created");
    let zxid = store.tree().zxid();
    for path in persistent_paths::PERSISTENT_PATHS {
        assert_eq!(calls.get(path).expect("it is there").0, None);
    }
    ensure_persistent_paths(&session).expect("nothing is missing");
    assert_eq!(store.tree().zxid(), zxid, "what is there is not written again");
    assert_eq!(store.tree().len(), 1 + persistent_paths::PERSISTENT_PATHS.len());
}

fn endpoint(listener_name: &str, host: &str, port: i32, security_protocol: SecurityProtocol) -> Endpoint {
    Endpoint { listener_name: listener_name.to_owned(), host: host.to_owned(), port, security_protocol }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

#[test]
fn a_registration_is_written_in_each_version() {
    let broker = BrokerRegistration {
        endpoints: vec![
            endpoint("INTERNAL", "::1", 9093, SecurityProtocol::SaslSsl),
            endpoint("CLIENT", "h", 9092, SecurityProtocol::Plaintext),
        ],
        rack: Some("r1".to_owned()),
        jmx_port: -1,
        timestamp_ms: Millis(1),
    };
    assert_eq!(
        text(broker.encode(5)),
        r#"{"features":{},"listener_security_protocol_map":{"INTERNAL":"SASL_SSL","CLIENT":"PLAINTEXT"},"endpoints":["INTERNAL://[::1]:9093","CLIENT://h:9092"],"rack":"r1","jmx_port":-1,"port":9092,"host":"h","version":5,"timestamp":"1"}"#
    );
    assert_eq!(
        text(broker.encode(2)),
        r#"{"endpoints":["SASL_SSL://[::1]:9093","PLAINTEXT://h:9092"],"jmx_port":-1,"port":9092,"host":"h","version":2,"timestamp":"1"}"#
    );
    for version in [4, 5] {
        assert_eq!(BrokerRegistration::decode(Some(&broker.encode(version))), Ok(broker.clone()));
    }
    let secured = BrokerRegistration {
        endpoints: vec![endpoint("S", "h", 1, SecurityProtocol::Ssl)],
        rack: None,
        ..broker
    };
    assert!(
        text(secured.encode(5)).contains(r#""port":-1,"host":null"#),
        "without a plaintext address there is none"
    );
    assert_eq!(BrokerRegistration::decode(Some(&secured.encode(5))), Ok(secured));
}

#[test]
fn registrations_of_older_and_later_releases_are_read() {
    let decode = |value: &str| BrokerRegistration::decode(Some(value.as_bytes()));
    let v1 = ok(decode(r#"{"version":1,"host":"h","port":9092,"jmx_port":9999,"timestamp":"2233345666"}"#));
    assert_eq!(v1.endpoints, [endpoint("PLAINTEXT", "h", 9092, SecurityProtocol::Plaintext)]);
    assert_eq!((v1.jmx_port, v1.timestamp_ms), (9999, Millis(2_233_345_666)));
    let v3 = ok(decode(
        r#"{"version":3,"host":"h","port":9092,"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://h:9092","SSL://:9093"],"rack":"dc1"}"#,
    ));
    assert_eq!(v3.endpoints[1], endpoint("SSL", "", 9093, SecurityProtocol::Ssl));
    assert_eq!(v3.rack.as_deref(), Some("dc1"));
    let v5 = ok(decode(
        r#"{"version":5,"host":null,"port":-1,"jmx_port":-1,"timestamp":"1","endpoints":["CLIENT://h:1"],"listener_security_protocol_map":{"CLIENT":"SSL"},"rack":null,"features":{"f":{"min_version":1,"max_version":2}},"new":[1]}"#,
    ));
    assert_eq!(v5.endpoints, [endpoint("CLIENT", "h", 1, SecurityProtocol::Ssl)]);
    for bad in [
        r#"{"version":0,"host":"h","port":1}"#,
        r#"{"version":1,"port":1}"#,
        r#"{"version":4,"endpoints":["CLIENT://h:1"],"listener_security_protocol_map":{}}"#,
        r#"{"version":2,"endpoints":["PLAINTEXT://h"]}"#,
        r#"{"version":2,"endpoints":["TELNET://h:1"]}"#,
        "null",
        "{",
    ] {
        assert!(decode(bad).is_err(), "{bad}");
    }
    assert!(BrokerRegistration::decode(None).is_err());
}

#[test]
fn registering_tells_the_broker_epoch() {
    let store = EmbeddedStore::open_memory().expect("it opens");
    let session = store.session(Arc::new(|_| {}));
    ensure_persistent_paths(&session).expect("created");
    let broker = ok(BrokerRegistration::decode(Some(br#"{"version":1,"host":"h","port":1}"#)));
    let results = Blocking::new(&session).multi(broker.register(BrokerId(5), 5)).expect("registered");
    let Some(OpResult::Set { stat }) = results.last() else { panic!("{results:?}") };
    let (data, found) = Blocking::new(&session).get("/brokers/ids/5").expect("it is there");
    assert_eq!(found, *stat);
    assert_eq!(Some(found.ephemeral_owner), session.session_id());
    assert_eq!(BrokerRegistration::decode(data.as_deref()), Ok(broker));
}

#[test]
fn a_topic_under_reassignment_lists_what_is_added_and_removed() {
    let ids = |ids: &[i32]| ids.iter().copied().map(BrokerId).collect::<Vec<_>>();
    let topic = TopicAssignment {
        topic_id: TopicId::parse("le-ACRm5S1yO8kh-_XTjTw"),
        partitions: BTreeMap::from([
            (
                0,
                PartitionAssignment {
                    replicas: ids(&[1, 2, 3]),
                    adding_replicas: ids(&[3]),
                    removing_replicas: ids(&[1]),
                },
            ),
            (10, PartitionAssignment::of(ids(&[2]))),
            (2, PartitionAssignment::of(ids(&[3]))),
        ]),
    };
    assert!(topic.topic_id.is_some());
    let value = r#"{"partitions":{"0":[1,2,3],"2":[3],"10":[2]},"topic_id":"le-ACRm5S1yO8kh-_XTjTw","adding_replicas":{"0":[3]},"removing_replicas":{"0":[1]},"version":3}"#;
    assert_eq!(text(topic.encode()), value);
    assert_eq!(TopicAssignment::decode(Some(value.as_bytes())), Ok(topic));
}

#[test]
fn topics_of_older_releases_are_read() {
    let decode = |value: &str| TopicAssignment::decode(Some(value.as_bytes()));
    let v1 = ok(decode(r#"{"version":1,"partitions":{"1":[2],"0":[1,2]}}"#));
    assert_eq!(v1.topic_id, None);
    assert_eq!(v1.partitions[&0], PartitionAssignment::of(vec![BrokerId(1), BrokerId(2)]));
    assert_eq!(ok(decode(r#"{"version":3}"#)), TopicAssignment::default());
    for bad in [
        r#"{"partitions":{"x":[1]}}"#,
        r#"{"partitions":{"0":["1"]}}"#,
        r#"{"partitions":{},"topic_id":"short"}"#,
    ] {
        assert!(decode(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_recovery_state_of_a_partition_is_written_only_while_it_recovers() {
    let state = PartitionState {
        leader: BrokerId(1),
        leader_epoch: LeaderEpoch(4),
        isr: vec![BrokerId(1)],
        controller_epoch: ControllerEpoch(7),
        is_recovering: true,
    };
    let value = r#"{"controller_epoch":7,"leader":1,"version":1,"leader_recovery_state":1,"leader_epoch":4,"isr":[1]}"#;
    assert_eq!(text(state.encode()), value);
    assert_eq!(PartitionState::decode(Some(value.as_bytes())), Ok(state));
    let old = r#"{"leader":-1,"leader_epoch":3,"isr":[],"controller_epoch":2,"version":9}"#;
    let old = ok(PartitionState::decode(Some(old.as_bytes())));
    assert_eq!((old.leader, old.is_recovering), (BrokerId::NONE, false));
    assert!(PartitionState::decode(Some(br#"{"leader":1}"#)).is_err());
}

#[test]
fn a_controller_of_3_3_has_no_kraft_epoch_and_one_of_a_migration_has() {
    let decode = |value: &str| ok(Controller::decode(Some(value.as_bytes())));
    let old = decode(r#"{"version":1,"brokerid":5,"timestamp":"1700000000000"}"#);
    assert_eq!(
        old,
        Controller {
            broker_id: BrokerId(5),
            timestamp_ms: Millis(1_700_000_000_000),
            kraft_controller_epoch: None
        }
    );
    let kraft = decode(r#"{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":9}"#);
    assert_eq!(kraft.kraft_controller_epoch, Some(9));
    assert_eq!(
        text(kraft.encode()),
        r#"{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":9}"#
    );
    assert!(controller_epoch::decode(Some(b"x")).is_err() && controller_epoch::decode(None).is_err());
}

#[test]
fn entities_have_paths_with_escaped_names() {
    let named = |name: &str| EntityName::Named(name.to_owned());
    let cases = [
        (ConfigEntity::Topic(TopicName::from("t")), "topics/t"),
        (ConfigEntity::Broker(BrokerId(1)), "brokers/1"),
        (ConfigEntity::DefaultBroker, "brokers/<default>"),
        (ConfigEntity::User(named("al ice")), "users/al%20ice"),
        (ConfigEntity::User(EntityName::Default), "users/<default>"),
        (ConfigEntity::Client(named("c*")), "clients/c%2A"),
        (
            ConfigEntity::UserClient { user: named("al ice"), client: EntityName::Default },
            "users/al%20ice/clients/<default>",
        ),
        (ConfigEntity::Ip(named("127.0.0.1")), "ips/127.0.0.1"),
    ];
    for (entity, entity_path) in cases {
        assert_eq!(entity.entity_path(), entity_path);
        assert_eq!(entity.path(), format!("/config/{entity_path}"));
        assert_eq!(ConfigEntity::parse(entity_path), Some(entity));
    }
    for bad in [
        "topics",
        "brokers/x",
        "users/%",
        "users/a/clients",
        "users/a/topics/b",
        "users/a/clients/b/c",
        "dogs/a",
    ] {
        assert_eq!(ConfigEntity::parse(bad), None, "{bad}");
    }
}

#[test]
fn configs_without_data_are_empty_and_other_versions_are_refused() {
    assert_eq!(config::decode(None), Ok(config::Configs::new()));
    assert_eq!(config::decode(Some(b"")), Ok(config::Configs::new()));
    for bad in [r#"{"version":2,"config":{}}"#, r#"{"version":1,"config":{"a":1}}"#, r#"{"version":1}"#, "[]"]
    {
        assert!(config::decode(Some(bad.as_bytes())).is_err(), "{bad}");
    }
}

#[test]
fn config_changes_of_version_1_are_read_and_unknown_ones_refused() {
    let decode = |value: &str| config_change::decode(Some(value.as_bytes()));
    let topic = ConfigEntity::Topic(TopicName::from("t"));
    assert_eq!(decode(r#"{"version":1,"entity_type":"topics","entity_name":"t"}"#), Ok(topic.clone()));
    for bad in [
        r#"{"version":1,"entity_type":"users","entity_name":"u"}"#,
        r#"{"version":2}"#,
        r#"{"version":3,"entity_path":"topics/t"}"#,
        r#"{"version":2,"entity_path":"topics"}"#,
    ] {
        assert!(decode(bad).is_err(), "{bad}");
    }
    let Op::Create { path, data, mode } = config_change::notify(&topic) else { panic!("no create") };
    assert_eq!((path.as_str(), mode.is_sequential()), ("/config/changes/config_change_", true));
    assert_eq!(data.as_deref(), Some(br#"{"version":2,"entity_path":"topics/t"}"#.as_slice()));
}

#[test]
fn notifications_and_requests_of_tools_are_written_and_read() {
    let partitions = [TopicPartition::new("t", 0), TopicPartition::new("u", 3)];
    let value = r#"{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"u","partition":3}]}"#;
    assert_eq!(text(isr_change::encode(&partitions)), value);
    assert_eq!(text(preferred_replica_election::encode(&partitions)), value);
    assert_eq!(isr_change::decode(Some(value.as_bytes())).as_deref(), Ok(partitions.as_slice()));
    assert_eq!(
        preferred_replica_election::decode(Some(value.as_bytes())).as_deref(),
        Ok(partitions.as_slice())
    );
    let targets = BTreeMap::from([(TopicPartition::new("t", 0), vec![BrokerId(2), BrokerId(3)])]);
    let value = r#"{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,3]}]}"#;
    assert_eq!(text(reassign_partitions::encode(&targets)), value);
    assert_eq!(reassign_partitions::decode(Some(value.as_bytes())), Ok(targets));
    let value = r#"{"version":1,"broker":5,"event":1}"#;
    assert_eq!(text(log_dir_event::encode(BrokerId(5))), value);
    assert_eq!(log_dir_event::decode(Some(value.as_bytes())), Ok(BrokerId(5)));
    assert_eq!(delete_topics::path(&TopicName::from("t")), "/admin/delete_topics/t");
}

#[test]
fn a_producer_id_block_has_bounds_as_text() {
    assert_eq!(ProducerIdBlock::decode(None), Ok(None));
    let value = br#"{"version":1,"broker":5,"block_start":"0","block_end":"999"}"#;
    assert_eq!(
        ProducerIdBlock::decode(Some(value)),
        Ok(Some(ProducerIdBlock { broker: BrokerId(5), start: 0, end: 999 }))
    );
    for bad in [
        r#"{"version":1,"broker":5,"block_start":0,"block_end":999}"#,
        r#"{"version":1,"broker":5,"block_start":"-1","block_end":"999"}"#,
        r#"{"version":1,"broker":5,"block_start":"0","block_end":"9223372036854775808"}"#,
    ] {
        assert!(ProducerIdBlock::decode(Some(bad.as_bytes())).is_err(), "{bad}");
    }
}

#[test]
fn features_keep_both_bounds_in_format_1_and_the_upper_in_format_2() {
    let levels = BTreeMap::from([("f".to_owned(), Levels { min: Some(1), max: 3 })]);
    let v1 = Features { format: Format::V1, is_enabled: true, features: levels };
    let value = r#"{"features":{"f":{"min_version_level":1,"max_version_level":3}},"version":1,"status":1}"#;
    assert_eq!(text(v1.encode()), value);
    assert_eq!(Features::decode(Some(value.as_bytes())), Ok(v1.clone()));
    let v2 = Features { format: Format::V2, ..v1 };
    let value = r#"{"features":{"f":{"max_version_level":3}},"version":2,"status":1}"#;
    assert_eq!(text(v2.encode()), value);
    assert_eq!(ok(Features::decode(Some(value.as_bytes()))).features["f"], Levels { min: None, max: 3 });
    assert_eq!(text(Features::none(Format::V2, true).encode()), r#"{"features":{},"version":2,"status":1}"#);
    for bad in [r#"{"features":{},"version":3,"status":1}"#, r#"{"features":{},"version":2,"status":2}"#] {
        assert!(Features::decode(Some(bad.as_bytes())).is_err(), "{bad}");
    }
}

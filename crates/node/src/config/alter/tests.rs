use super::super::kafka_config::KafkaConfig;
use super::*;

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// Decides a request against broker 0 with the one topic `t`; `stored` are the overrides of `t`, and what is stored for
/// the broker and for all brokers.
fn decide(way: Way, stored: &[(&str, &str)], request: &[Alteration<'_>]) -> Vec<Result<Plan, ResourceError>> {
    let (config, _) = KafkaConfig::without_file(&[]).unwrap();
    let config = CurrentConfig::new(config);
    let topic = |name: &str| (name == "t").then(|| pairs(stored));
    plan(way, request, &Current { config: &config, broker_id: 0, broker: &|_| pairs(stored), topic: &topic })
}

fn resource<'a>(resource_type: i8, resource_name: &'a str, changes: &[Change<'a>]) -> Alteration<'a> {
    Alteration { resource_type, resource_name, changes: changes.to_vec() }
}

fn change<'a>(name: &'a str, operation: i8, value: &'a str) -> Change<'a> {
    Change { name, operation, value: Some(value) }
}

fn null(name: &str, operation: i8) -> Change<'_> {
    Change { name, operation, value: None }
}

fn incremental(
    stored: &[(&str, &str)],
    resource_type: i8,
    name: &str,
    changes: &[Change<'_>],
) -> Result<Plan, ResourceError> {
    decide(Way::Incremental, stored, &[resource(resource_type, name, changes)]).remove(0)
}

fn code(decision: &Result<Plan, ResourceError>) -> i16 {
    decision.as_ref().map_or_else(|error| error.code.code(), |_| 0)
}

#[track_caller]
fn becomes(stored: &[(&str, &str)], changes: &[Change<'_>], expected: &[(&str, &str)]) {
    assert_eq!(incremental(stored, TOPIC, "t", changes), Ok(Plan::Topic(pairs(expected))));
}

#[test]
fn a_topic_keeps_what_an_incremental_request_does_not_name() {
    let stored = [("segment.bytes", "100"), ("retention.ms", "5")];
    becomes(
        &stored,
        &[change("segment.bytes", SET, "200")],
        &[("segment.bytes", "200"), ("retention.ms", "5")],
    );
    becomes(&stored, &[null("segment.bytes", DELETE)], &[("retention.ms", "5")]);
    becomes(&stored, &[null("flush.ms", DELETE), null("no.such", DELETE)], &stored);
    becomes(&stored, &[], &stored);
}

#[test]
fn a_topic_loses_what_a_replacing_request_does_not_name() {
    let stored = [("segment.bytes", "100"), ("retention.ms", "5")];
    let request = [resource(TOPIC, "t", &[change("flush.ms", SET, "9")])];
    assert_eq!(decide(Way::Replace, &stored, &request), [Ok(Plan::Topic(pairs(&[("flush.ms", "9")])))]);
    let request = [resource(TOPIC, "t", &[])];
    assert_eq!(decide(Way::Replace, &stored, &request), [Ok(Plan::Topic(BTreeMap::new()))]);
}

#[test]
fn append_starts_from_the_stored_list_or_else_from_the_default() {
    let key = "cleanup.policy";
    becomes(&[], &[change(key, APPEND, "compact")], &[(key, "delete,compact")]);
    becomes(
        &[(key, "delete,compact")],
        &[change(key, APPEND, "compact,compact,delete")],
        &[(key, "delete,compact")],
    );
    becomes(
        &[(key, "delete")],
        &[change(key, APPEND, "compact,compact")],
        &[(key, "delete,compact,compact")],
    );
    becomes(&[(key, "")], &[change(key, APPEND, "compact")], &[(key, "compact")]);
    let throttled = "leader.replication.throttled.replicas";
    becomes(&[], &[change(throttled, APPEND, "0:1")], &[(throttled, "0:1")]);
    becomes(&[(throttled, "0:1")], &[change(throttled, APPEND, "0:2,0:1")], &[(throttled, "0:1,0:2")]);
}

#[test]
fn subtract_takes_one_of_each_and_may_leave_nothing() {
    let key = "cleanup.policy";
    becomes(&[(key, "delete,compact")], &[change(key, SUBTRACT, "delete,foo")], &[(key, "compact")]);
    becomes(&[(key, "compact")], &[change(key, SUBTRACT, "compact")], &[(key, "")]);
    becomes(&[], &[change(key, SUBTRACT, "delete")], &[(key, "")]);
    becomes(
        &[(key, "delete,delete,compact")],
        &[change(key, SUBTRACT, "delete")],
        &[(key, "delete,compact")],
    );
    becomes(&[(key, "compact")], &[change(key, SUBTRACT, "")], &[(key, "compact")]);
}

#[test]
fn errors_of_a_topic_have_kafkas_codes() {
    let of = |name, changes: &[Change<'_>]| code(&incremental(&[], TOPIC, name, changes));
    for (name, change, expected) in [
        ("", change("segment.bytes", SET, "100"), 42),
        ("u", change("segment.bytes", SET, "100"), 3),
        ("u", change("no.such", SET, "1"), 3),
        ("a b", change("segment.bytes", SET, "100"), 3),
        ("t", change("no.such", SET, "1"), 40),
        ("t", change("segment.bytes", SET, "13"), 40),
        ("t", change("segment.bytes", SET, "x"), 40),
        ("t", null("segment.bytes", SET), 42),
        ("t", null("cleanup.policy", APPEND), 42),
        ("t", change("segment.bytes", APPEND, "1"), 40),
        ("u", change("segment.bytes", SUBTRACT, "1"), 40),
        ("t", change("no.such", APPEND, "1"), -1),
        ("t", change("segment.bytes", 9, "1"), -1),
        ("t", change("cleanup.policy", SET, "compact,"), 40),
        ("t", change("remote.storage.enable", SET, "true"), 40),
    ] {
        assert_eq!(of(name, &[change]), expected, "{name} {change:?}");
    }
    let lags = [change("min.compaction.lag.ms", SET, "5"), change("max.compaction.lag.ms", SET, "4")];
    assert_eq!(of("t", &lags), 40);
    assert_eq!(of("t", &[change("segment.bytes", SET, "100"), null("segment.bytes", DELETE)]), 42);
}

#[test]
fn a_resource_that_appears_twice_is_refused_both_times_and_others_go_on() {
    let set = change("segment.bytes", SET, "100");
    let request = [resource(TOPIC, "t", &[set]), resource(TOPIC, "u", &[set]), resource(TOPIC, "t", &[set])];
    let codes: Vec<_> = decide(Way::Incremental, &[], &request).iter().map(code).collect();
    assert_eq!(codes, [42, 3, 42]);
    let request = [resource(TOPIC, "t", &[set]), resource(0, "t", &[set])];
    let codes: Vec<_> = decide(Way::Replace, &[], &request).iter().map(code).collect();
    assert_eq!(codes, [0, 42]);
}

#[test]
fn other_resource_types_are_refused() {
    let set = change("interval.ms", SET, "1");
    for (resource_type, name) in [(0, "x"), (3, "x"), (CLIENT_METRICS, "m"), (32, "g")] {
        assert_eq!(code(&incremental(&[], resource_type, name, &[set])), 42);
    }
    let logger = [resource(BROKER_LOGGER, "0", &[change("root", SET, "INFO")])];
    assert_eq!(code(&decide(Way::Replace, &[], &logger)[0]), 42);
}

/// redpanda-data/redpanda#2645.
#[test]
fn broker_configs_that_break_a_rule_are_refused() {
    for (name, change, part) in [
        ("7", change("num.io.threads", SET, "4"), "not broker 7"),
        ("x", change("num.io.threads", SET, "4"), "must be an integer"),
        ("0", change("broker.rack", SET, "4"), "only be set by a restart: broker.rack"),
        ("", change("broker.rack", SET, "4"), "only be set by a restart: broker.rack"),
        ("0", change("log.retention.hours", SET, "9"), "only be set by a restart"),
        ("0", change("num.io.threads", SET, "0"), "Invalid value 0 for configuration num.io.threads"),
        ("", change("leader.replication.throttled.rate", SET, "-5"), "leader.replication.throttled.rate"),
        ("", change("listeners", SET, "PLAINTEXT://:1"), "single broker: listeners"),
        ("", change("listener.name.x.ssl.key.password", SET, "9"), "single broker"),
        ("0", change("ssl.keystore.type", SET, "JKS"), "listener prefix: ssl.keystore.type"),
        ("0", change("num.io.threads", 9, "9"), "Unknown operation 9"),
        ("0", null("num.io.threads", SET), "Null is no value"),
        ("0", change("num.io.threads", SET, "17"), "at most double the current value 8"),
        ("", change("num.io.threads", SET, "3"), "at least half the current value 8"),
        ("0", change("listeners", SET, "OTHER://localhost:1"), "OTHER has no entry"),
        ("", change("max.connections", SET, "0"), "at least 1"),
        ("0", change("metric.reporters", SET, "no.such.Class"), "no.such.Class"),
        ("", change("log.retention.ms", SET, "0"), "log.retention.ms=0"),
        ("", change("log.cleaner.dedupe.buffer.size", SET, "100"), "log.cleaner.dedupe.buffer.size"),
    ] {
        let error = incremental(&[], BROKER, name, &[change]).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest);
        let message = error.message.unwrap();
        assert!(message.contains(part), "{name} {change:?}: {message}");
    }
    assert_eq!(code(&incremental(&[], BROKER, "0", &[change("num.io.threads", APPEND, "9")])), 40);
    assert_eq!(code(&incremental(&[], BROKER, "0", &[change("no.such", APPEND, "9")])), -1);
}

#[test]
fn broker_configs_are_changed_for_one_broker_or_for_all() {
    let stored = [("num.io.threads", "9"), ("broker.rack", "r")];
    let threads = change("background.threads", SET, "5");
    for (name, level) in [("0", Level::OneBroker), ("", Level::AllBrokers)] {
        let all = pairs(&[("num.io.threads", "9"), ("background.threads", "5")]);
        // What may not be stored is dropped with the next change, as Kafka does.
        assert_eq!(incremental(&stored, BROKER, name, &[threads]), Ok(Plan::Broker(level, all)));
        let deleted = incremental(&stored, BROKER, name, &[null("num.io.threads", DELETE)]);
        assert_eq!(deleted, Ok(Plan::Broker(level, pairs(&[]))));
        let replaced = decide(Way::Replace, &stored, &[resource(BROKER, name, &[threads])]);
        assert_eq!(replaced, [Ok(Plan::Broker(level, pairs(&[("background.threads", "5")])))]);
        assert_eq!(
            incremental(&[], BROKER, name, &[null("broker.rack", DELETE)]),
            Ok(Plan::Broker(level, pairs(&[])))
        );
    }
    let policy = change("log.cleanup.policy", APPEND, "compact");
    let appended = incremental(&[], BROKER, "", &[policy]);
    assert_eq!(
        appended,
        Ok(Plan::Broker(Level::AllBrokers, pairs(&[("log.cleanup.policy", "delete,compact")])))
    );
    let plugin = incremental(&[], BROKER, "", &[change("some.plugin", SET, "x")]);
    assert_eq!(plugin, Ok(Plan::Broker(Level::AllBrokers, pairs(&[("some.plugin", "x")]))));
}

#[test]
fn passwords_are_checked_but_not_stored() {
    for key in
        ["sasl.jaas.config", "listener.name.x.plain.sasl.jaas.config", "listener.name.x.ssl.key.password"]
    {
        let planned = incremental(&[], BROKER, "0", &[change(key, SET, "secret")]);
        assert_eq!(planned, Ok(Plan::Password(key.to_owned())), "{key}");
        assert_eq!(code(&incremental(&[], BROKER, "", &[change(key, SET, "secret")])), 42, "{key}");
    }
    // One that another broker has stored stays when other keys change.
    let stored = [("sasl.jaas.config", "encrypted")];
    let planned = incremental(&stored, BROKER, "0", &[change("num.io.threads", SET, "9")]);
    let all = pairs(&[("num.io.threads", "9"), ("sasl.jaas.config", "encrypted")]);
    assert_eq!(planned, Ok(Plan::Broker(Level::OneBroker, all)));
}

#[test]
fn levels_of_loggers_are_set_and_deleted_and_what_is_no_level_is_refused() {
    let of = |name, change| code(&incremental(&[], BROKER_LOGGER, name, &[change]));
    for (change, expected) in [
        (change("nope", SET, "INFO"), 40),
        (change("root", SET, "info"), 40),
        (change("node", SET, ""), 40),
        (null("nope", DELETE), 40),
        (change("root", APPEND, "INFO"), 42),
        (change("nope", SUBTRACT, "INFO"), 42),
        (null("root", DELETE), 42),
        (change("root", 9, "INFO"), -1),
        (change("root", SET, "FATAL"), 0),
    ] {
        assert_eq!(of("0", change), expected, "{change:?}");
    }
    assert_eq!(of("1", change("root", SET, "INFO")), 42);
    assert_eq!(of("", change("root", SET, "INFO")), 42);
    let changes = [change("node", SET, "TRACE"), null("net", DELETE)];
    let levels = vec![("node".to_owned(), Some(LogLevel::Trace)), ("net".to_owned(), None)];
    assert_eq!(incremental(&[], BROKER_LOGGER, "0", &changes), Ok(Plan::Loggers(levels)));
}

use super::*;

const BROKER: &str = include_str!("../testdata/configs-broker.txt");
const TOPIC: &str = include_str!("../testdata/configs-topic.txt");

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn values(given: &[(&str, &str)]) -> BrokerValues {
    BrokerValues::parse(pairs(given)).unwrap()
}

/// The entries as Kafka's configs tool prints them.
fn shown(entries: &[ConfigEntry]) -> Vec<String> {
    let source = |source| match source {
        Source::Topic => "DYNAMIC_TOPIC_CONFIG",
        Source::DynamicBroker => "DYNAMIC_BROKER_CONFIG",
        Source::DynamicDefaultBroker => "DYNAMIC_DEFAULT_BROKER_CONFIG",
        Source::StaticBroker => "STATIC_BROKER_CONFIG",
        Source::Default => "DEFAULT_CONFIG",
        Source::DynamicBrokerLogger => "DYNAMIC_BROKER_LOGGER_CONFIG",
    };
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "null".to_owned());
    let synonym = |s: &Synonym| format!("{}:{}={}", source(s.source), s.name, value(&s.value));
    let line = |entry: &ConfigEntry| {
        let synonyms: Vec<_> = entry.synonyms.iter().map(synonym).collect();
        let synonyms = synonyms.join(", ");
        format!(
            "{}={} sensitive={} synonyms={{{synonyms}}}",
            entry.name,
            value(&entry.value),
            entry.is_sensitive
        )
    };
    entries.iter().map(line).collect()
}

fn recorded(file: &str) -> Vec<&str> {
    file.lines().filter(|line| !line.starts_with('#')).collect()
}

/// The settings of the broker that was asked.
const RECORDED_BROKER: [(&str, &str); 12] = [
    ("auto.leader.rebalance.enable", "false"),
    ("broker.id", "0"),
    ("controlled.shutdown.retry.backoff.ms", "500"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("listeners", "PLAINTEXT://127.0.0.1:19100"),
    ("log.dirs", "DIR"),
    ("offsets.topic.replication.factor", "3"),
    ("replica.lag.time.max.ms", "3000"),
    ("transaction.state.log.min.isr", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("zookeeper.connect", "127.0.0.1:2281"),
    ("zookeeper.session.timeout.ms", "6000"),
];

#[test]
fn a_broker_is_described_as_kafka_describes_it() {
    let values = values(&RECORDED_BROKER);
    let dynamic = DynamicConfigs { default: pairs(&[("background.threads", "6")]), ..Default::default() };
    let mut ours = shown(&Describer { values: &values, dynamic: &dynamic }.broker());
    let mut theirs = recorded(BROKER);
    ours.sort_unstable();
    theirs.sort_unstable();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn a_topic_is_described_as_kafka_describes_it() {
    let values = values(&RECORDED_BROKER);
    let config = TopicConfig::defaults(&values);
    let describer = Describer { values: &values, dynamic: &DynamicConfigs::default() };
    assert_eq!(shown(&describer.topic(&config, &BTreeMap::new())), recorded(TOPIC));
}

fn describe_topic(
    broker: &[(&str, &str)],
    dynamic: &DynamicConfigs,
    topic: &[(&str, &str)],
) -> Vec<ConfigEntry> {
    let values = values(broker);
    let overrides = pairs(topic);
    let (config, _) = TopicConfig::defaults(&values.with_dynamic(dynamic)).with_stored(&overrides);
    Describer { values: &values, dynamic }.topic(&config, &overrides)
}

fn one(entries: Vec<ConfigEntry>, name: &str) -> String {
    let entry = entries.into_iter().find(|entry| entry.name == name).unwrap();
    format!("{} {}", entry.source.code(), shown(&[entry])[0])
}

#[test]
fn an_override_stands_before_the_brokers_values() {
    let entries = describe_topic(
        &[("log.segment.bytes", "99")],
        &DynamicConfigs::default(),
        &[("segment.bytes", " 14 ")],
    );
    assert_eq!(
        one(entries, "segment.bytes"),
        "1 segment.bytes=14 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.bytes=14, \
         STATIC_BROKER_CONFIG:log.segment.bytes=99, DEFAULT_CONFIG:log.segment.bytes=1073741824}"
    );
}

#[test]
fn a_time_that_only_its_coarse_key_sets_has_no_synonyms() {
    let hours = [("log.retention.hours", "1")];
    let entries = describe_topic(&hours, &DynamicConfigs::default(), &[]);
    assert_eq!(one(entries, "retention.ms"), "5 retention.ms=3600000 sensitive=false synonyms={}");
    let dynamic = DynamicConfigs { of_broker: pairs(&[("log.retention.ms", "1000")]), ..Default::default() };
    assert_eq!(
        one(describe_topic(&hours, &dynamic, &[]), "retention.ms"),
        "2 retention.ms=1000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=1000, \
         STATIC_BROKER_CONFIG:log.retention.hours=1, DEFAULT_CONFIG:log.retention.hours=168}"
    );
}

#[test]
fn a_stored_key_that_is_unknown_is_told_but_not_its_value() {
    let entries = describe_topic(&[], &DynamicConfigs::default(), &[("some.key", "secret")]);
    assert_eq!(entries.len(), 37);
    assert_eq!(
        one(entries, "some.key"),
        "1 some.key=null sensitive=true synonyms={DYNAMIC_TOPIC_CONFIG:some.key=null}"
    );
}

#[test]
fn unknown_and_password_keys_of_a_broker_are_sensitive() {
    let values = values(&[("some.key", "x"), ("ssl.key.password", "y"), ("log.initial.task.delay.ms", "5")]);
    let describer = Describer { values: &values, dynamic: &DynamicConfigs::default() };
    let entry = |name: &str| describer.broker().into_iter().find(|entry| entry.name == name).unwrap();
    let unknown = entry("some.key");
    assert_eq!(
        (unknown.value, unknown.is_sensitive, unknown.read_only, unknown.kind),
        (None, true, true, None)
    );
    assert_eq!(unknown.source, Source::StaticBroker);
    let password = entry("ssl.key.password");
    assert_eq!((password.value, password.is_sensitive, password.read_only), (None, true, false));
    assert_eq!(password.synonyms[0].value, None);
    assert_eq!(entry("log.initial.task.delay.ms").value.as_deref(), Some("5"));
}

#[test]
fn listener_keys_hide_the_base_key_but_not_the_other_way_round() {
    let values = values(&[("listener.name.x.ssl.protocol", "TLSv1.2"), ("ssl.protocol", "TLSv1.3")]);
    let describer = Describer { values: &values, dynamic: &DynamicConfigs::default() };
    let entry = |name: &str| describer.broker().into_iter().find(|entry| entry.name == name).unwrap();
    let prefixed: Vec<_> =
        entry("listener.name.x.ssl.protocol").synonyms.into_iter().map(|s| s.name).collect();
    assert_eq!(prefixed, ["listener.name.x.ssl.protocol", "ssl.protocol", "ssl.protocol"]);
    assert_eq!(entry("ssl.protocol").value.as_deref(), Some("TLSv1.3"));
}

#[test]
fn dynamic_defaults_are_told_alone() {
    let values = values(&[]);
    let default =
        pairs(&[("num.io.threads", "9"), ("leader.replication.throttled.rate", "5"), ("some.custom", "z")]);
    let dynamic = DynamicConfigs { default, ..Default::default() };
    let entries = Describer { values: &values, dynamic: &dynamic }.broker_defaults();
    assert_eq!(
        shown(&entries),
        [
            "leader.replication.throttled.rate=5 sensitive=false \
             synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:leader.replication.throttled.rate=5}",
            "num.io.threads=9 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:num.io.threads=9}",
            "some.custom=null sensitive=true synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:some.custom=null}",
        ]
    );
    let read_only: Vec<_> = entries.iter().map(|entry| entry.read_only).collect();
    assert_eq!(read_only, [true, false, true]);
}

#[test]
fn a_request_without_names_selects_all() {
    let entries = describe_topic(&[], &DynamicConfigs::default(), &[]);
    let selected = |keys: Option<&[&str]>| select(entries.clone(), keys).len();
    assert_eq!(selected(None), 36);
    assert_eq!(selected(Some(&[])), 36);
    assert_eq!(selected(Some(&["segment.ms", "segment.bytes", "no.such"])), 2);
}

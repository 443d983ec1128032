//! The keys and versions against the list that a broker of Kafka 3.9 in a ZooKeeper cluster answers.

use wire::api::ApiKey;

#[test]
fn served_keys_and_versions_are_those_of_kafka_3_9() {
    let expected: Vec<_> = include_str!("../data/api_versions_3_9.txt").lines().collect();
    let served = ApiKey::ALL.iter().filter(|key| key.is_served());
    let ours: Vec<_> = served
        .map(|key| {
            let versions = key.versions();
            let range = match (versions.start(), versions.end()) {
                (first, last) if first == last => first.to_string(),
                (first, last) => format!("{first} to {last}"),
            };
            format!("{}({}): {range}", key.name(), key.code())
        })
        .collect();
    assert_eq!(ours, expected);
}

#[test]
fn codes_and_keys_are_one_to_one() {
    for code in i16::MIN..=i16::MAX {
        let key = ApiKey::from_code(code);
        assert_eq!(key.is_some(), (0..=87).contains(&code), "{code}");
        assert!(key.is_none_or(|key| key.code() == code));
    }
}

#[test]
fn keys_that_are_not_served_support_no_version() {
    for key in [ApiKey::Vote, ApiKey::BrokerRegistration, ApiKey::GetTelemetrySubscriptions] {
        assert!(!key.is_served());
        assert!((-1..=i16::MAX).all(|version| !key.supports(version)));
    }
    assert!(ApiKey::Fetch.supports(17) && !ApiKey::Fetch.supports(18) && !ApiKey::Fetch.supports(-1));
}

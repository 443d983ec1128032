use super::super::register::RegisterError;
use super::*;
use metadata::znode::broker;
use std::time::Instant;

#[test]
fn a_registration_tells_where_the_broker_is_and_its_czxid_is_the_broker_epoch() {
    let store = cluster();
    let session = session(&store);
    let epoch = registration(3, 9092).register(&session, None).unwrap();
    let (data, stat) = Blocking::new(&session).get("/brokers/ids/3").unwrap();
    assert_eq!(epoch, BrokerEpoch(stat.czxid));
    assert_eq!(Some(stat.ephemeral_owner), session.session_id());
    let told = broker::BrokerRegistration::decode(data.as_deref()).unwrap();
    assert_eq!((told.endpoints[0].host.as_str(), told.endpoints[0].port), ("here", 9092));
    assert_eq!(stat.version, 1, "made empty and then written, as Kafka does");
}

#[test]
fn the_form_is_one_that_brokers_of_the_protocol_version_read() {
    for (version, form) in [("3.9", 5), ("2.7-IV0", 5), ("2.6", 4), ("0.10.0-IV1", 4), ("0.10.0-IV0", 2)] {
        let config = config(&[("inter.broker.protocol.version", version)]);
        let registration = Registration::new(&config, &[], BrokerId(1), 0);
        assert_eq!(registration.version, form, "{version}");
    }
}

#[test]
fn a_registration_whose_answer_was_lost_is_found_again() {
    let store = cluster();
    let session = session(&store);
    let first = registration(1, 9092).register(&session, None).unwrap();
    assert_eq!(registration(1, 9092).register(&session, None).unwrap(), first);
}

/// KAFKA-7165.
#[test]
fn a_registration_of_the_previous_session_is_made_anew() {
    let store = cluster();
    let old = session(&store);
    let first = registration(1, 9092).register(&old, None).unwrap();
    let new = session(&store);
    let second = registration(1, 9092).register(&new, old.session_id()).unwrap();
    assert!(second > first);
    let (_, stat) = Blocking::new(&new).get("/brokers/ids/1").unwrap();
    assert_eq!(Some(stat.ephemeral_owner), new.session_id());
}

#[test]
fn a_foreign_registration_is_left_alone_and_named() {
    let store = cluster();
    let (other, mine) = (session(&store), session(&store));
    registration(1, 9092).register(&other, None).unwrap();
    let error = registration(1, 9093).register(&mine, mine.session_id()).unwrap_err();
    assert!(matches!(error, RegisterError::Foreign { owner } if Some(owner) == other.session_id()));
    let stat = Blocking::new(&mine).exists("/brokers/ids/1").unwrap().unwrap();
    assert_eq!(Some(stat.ephemeral_owner), other.session_id());
}

#[test]
fn the_start_waits_for_the_end_of_a_session_that_outlives_its_process() {
    let store = cluster();
    let (dead, mine) = (session(&store), session(&store));
    registration(1, 9092).register(&dead, None).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            registration(1, 9092).register_first(&mine, &SystemClock::new(), Duration::from_secs(60))
        });
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(300) {
            assert!(!waiting.is_finished());
            std::thread::yield_now();
        }
        store.expire(dead.session_id().unwrap());
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn an_address_of_another_broker_is_refused() {
    let store = cluster();
    let (other, mine) = (session(&store), session(&store));
    registration(1, 9092).register(&other, None).unwrap();
    registration(2, 9093).check_addresses(&mine).unwrap();
    let error = registration(2, 9092).check_addresses(&mine).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the advertised address here:9092 is registered by broker 1; set another one in advertised.listeners"
    );
    registration(1, 9092).check_addresses(&mine).unwrap();
}

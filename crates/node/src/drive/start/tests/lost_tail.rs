use super::super::lost_tail::wait_until_out_of_isrs;
use super::*;
use metadata::znode::partition_state::{self, PartitionState};
use metadata::znode::topic::{self, PartitionAssignment, TopicAssignment};
use std::time::Instant;
use wire::types::{ControllerEpoch, LeaderEpoch, TopicName};

const LONG: Duration = Duration::from_secs(600);

fn partition() -> TopicPartition {
    TopicPartition { topic: TopicName::from("t"), partition: 0 }
}

fn state(isr: &[i32]) -> Vec<u8> {
    PartitionState {
        leader: BrokerId(isr[0]),
        leader_epoch: LeaderEpoch(0),
        isr: isr.iter().copied().map(BrokerId).collect(),
        controller_epoch: ControllerEpoch(1),
        is_recovering: false,
    }
    .encode()
}

/// A cluster with one partition of brokers 1 and 2.
fn cluster_with(isr: &[i32]) -> EmbeddedStore {
    let store = cluster();
    let session = session(&store);
    let calls = Blocking::new(&session);
    let assignment = PartitionAssignment::of(vec![BrokerId(1), BrokerId(2)]);
    let topic = TopicAssignment { topic_id: None, partitions: BTreeMap::from([(0, assignment)]) };
    let path = topic::path(&partition().topic);
    calls.create(&path, topic.encode(), CreateMode::Persistent).unwrap();
    calls.ensure_path(&partition_state::partition_path(&partition())).unwrap();
    calls.create(&partition_state::path(&partition()), state(isr), CreateMode::Persistent).unwrap();
    store
}

/// Whether the wait ends at once, as broker 1.
fn is_free(store: &EmbeddedStore) -> bool {
    let (started, session) = (Instant::now(), session(store));
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| wait_until_out_of_isrs(&session, &SystemClock::new(), BrokerId(1), LONG));
        while !waiting.is_finished() && started.elapsed() < Duration::from_millis(500) {
            std::thread::yield_now();
        }
        let is_free = waiting.is_finished();
        // Whatever it waits for, this ends it.
        Blocking::new(&session).set(&partition_state::path(&partition()), state(&[2]), None).unwrap();
        waiting.join().unwrap().unwrap();
        is_free
    })
}

#[test]
fn a_broker_that_nobody_counts_on_may_come_at_once() {
    assert!(is_free(&cluster_with(&[2])));
    assert!(is_free(&cluster_with(&[1])), "alone it can take nothing away from others");
}

#[test]
fn a_broker_waits_until_it_is_taken_out_of_the_isrs_of_living_brokers() {
    let store = cluster_with(&[2, 1]);
    let other = session(&store);
    registration(2, 9092).register(&other, None).unwrap();
    assert!(!is_free(&store));
    let store = cluster_with(&[2, 1]);
    let other = session(&store);
    registration(2, 9092).register(&other, None).unwrap();
    create(&other, "/admin/delete_topics/t", "");
    assert!(is_free(&store), "a topic that is being deleted has nothing to lose");
}

#[test]
fn beside_dead_brokers_it_waits_for_a_while_and_goes_on() {
    assert!(!is_free(&cluster_with(&[2, 1])));
    let store = cluster_with(&[2, 1]);
    let started = Instant::now();
    wait_until_out_of_isrs(&session(&store), &SystemClock::new(), BrokerId(1), Duration::from_millis(250))
        .unwrap();
    assert!(started.elapsed() >= Duration::from_millis(250));
}

#[test]
fn a_partition_that_vanishes_is_waited_for_no_more() {
    let store = cluster_with(&[2, 1]);
    let session = session(&store);
    Blocking::new(&session).delete(&partition_state::path(&partition()), None).unwrap();
    wait_until_out_of_isrs(&session, &SystemClock::new(), BrokerId(1), LONG).unwrap();
}

#[test]
fn only_an_unclean_end_in_another_boot_can_have_lost_a_tail() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = [dir.path().join("a"), dir.path().join("b")];
    let config = config(&[("log.dirs", &format!("{},{}", dirs[0].display(), dirs[1].display()))]);
    let same_boot = Membership::Member { session_timeout: LONG, boot: Boot::Same };
    let another_boot = Membership::Member { session_timeout: LONG, boot: Boot::Another };
    assert_eq!(lost_tail(MEMBER, &config, &RealDisk), LostTail::Possible);
    assert_eq!(lost_tail(another_boot, &config, &RealDisk), LostTail::Possible);
    assert_eq!(lost_tail(same_boot, &config, &RealDisk), LostTail::No);
    assert_eq!(lost_tail(Membership::Alone, &config, &RealDisk), LostTail::No);
    for (dir, expected) in dirs.iter().zip([LostTail::Possible, LostTail::No]) {
        std::fs::create_dir(dir).unwrap();
        std::fs::write(dir.join(CLEAN_SHUTDOWN), "").unwrap();
        assert_eq!(
            lost_tail(MEMBER, &config, &RealDisk),
            expected,
            "every directory must have been closed in order"
        );
    }
}

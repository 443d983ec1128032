//! Many logs made at a time.

use std::collections::BTreeMap;

use super::*;

fn wanted(numbers: impl IntoIterator<Item = i32>) -> BTreeMap<TopicPartition, NewLog> {
    let new = NewLog { topic_id: TopicId([7; 16]), config: config(), is_new: true, leader_epoch: None };
    numbers.into_iter().map(|number| (partition(number), new.clone())).collect()
}

#[test]
fn many_logs_are_made_at_a_time_and_spread_over_the_directories() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a", "/b"]);
    let made = dirs.get_or_create_many(&wanted(0..200), NOW);
    for (log, number) in made.into_iter().zip(wanted(0..200).keys()) {
        assert_eq!(log.unwrap().partition(), number);
    }
    for dir in ["/a", "/b"] {
        let here = names_in(&disk, dir).into_iter().filter(|name| name.starts_with("t-")).count();
        assert!((99..=101).contains(&here), "{here} in {dir}");
    }
}

#[test]
fn the_epochs_of_those_that_this_broker_is_to_lead_are_entered() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    create(&dirs, 3);
    let mut wanted = wanted(0..40);
    for new in wanted.values_mut().take(20) {
        new.leader_epoch = Some(LeaderEpoch(2));
    }
    for (at, log) in dirs.get_or_create_many(&wanted, NOW).into_iter().enumerate() {
        let expected = if at < 20 { LeaderEpoch(2) } else { LeaderEpoch::UNKNOWN };
        assert_eq!(log.unwrap().latest_epoch(), expected);
    }
}

#[test]
fn those_that_are_there_are_found() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a"]);
    let before: Vec<_> = (0..50).map(|number| create(&dirs, number)).collect();
    let after = dirs.get_or_create_many(&wanted(0..100), NOW);
    let found = |log: &Arc<PartitionLog>| after.iter().flatten().any(|other| Arc::ptr_eq(log, other));
    assert!(before.iter().all(found));
    assert_eq!(dirs.all().len(), 100);
}

#[test]
fn what_one_directory_refuses_goes_into_the_other_and_a_failure_is_told_for_each() {
    let disk = CrashDisk::new();
    let dirs = loaded(&disk, &["/a", "/b"]);
    let fault = |path: &str| Fault {
        operation: Operation::CreateDir,
        path_contains: path.into(),
        skip: 30,
        times: usize::MAX,
        kind: io::ErrorKind::Other,
    };
    disk.fail(fault("/a/"));
    assert!(dirs.get_or_create_many(&wanted(0..100), NOW).iter().all(Result::is_ok));
    assert_eq!(dirs.offline_count(), 1);
    disk.fail(fault("/b/"));
    let more = dirs.get_or_create_many(&wanted(100..200), NOW);
    assert_eq!(more.iter().filter(|log| log.is_ok()).count(), 30);
    assert_eq!(dirs.all().len(), 130);
}

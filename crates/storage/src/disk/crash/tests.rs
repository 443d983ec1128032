//! The disk that forgets must forget exactly what it may.

use super::*;

fn path(text: &str) -> &Path {
    Path::new(text)
}

fn content(disk: &CrashDisk, name: &str) -> Option<Vec<u8>> {
    super::super::atomic::read_file(disk, path(name), 1 << 20).unwrap()
}

fn synced_file(disk: &CrashDisk, name: &str, bytes: &[u8]) -> Arc<dyn DiskFile> {
    let file = disk.open(path(name), OpenOptions::CREATE).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(path("/")).unwrap();
    file
}

#[test]
fn a_killed_process_loses_nothing_that_was_written() {
    let disk = CrashDisk::new();
    disk.create_dir_all(path("/a/b")).unwrap();
    disk.open(path("/a/b/f"), OpenOptions::CREATE).unwrap().write_at(b"abc", 2).unwrap();
    let after = disk.crash(CrashMode::ProcessKill);
    assert_eq!(content(&after, "/a/b/f").unwrap(), b"\0\0abc");
}

#[test]
fn a_lost_power_takes_what_was_not_synced() {
    let disk = CrashDisk::new();
    let file = synced_file(&disk, "/f", b"old");
    file.write_at(b"newer", 0).unwrap();
    disk.open(path("/g"), OpenOptions::CREATE).unwrap().sync_all().unwrap();
    disk.rename(path("/f"), path("/h")).unwrap();
    let after = disk.crash(CrashMode::LoseUnsynced);
    assert_eq!(content(&after, "/f").unwrap(), b"old");
    assert_eq!(content(&after, "/g"), None, "its name was never synced");
    assert_eq!(content(&after, "/h"), None);
}

#[test]
fn what_was_synced_survives_every_power_loss() {
    for seed in 0..200 {
        let disk = CrashDisk::new();
        let file = synced_file(&disk, "/f", &[7; 3000]);
        file.write_at(&[8; 3000], 3000).unwrap();
        let after = disk.crash(CrashMode::PowerLoss { seed });
        let found = content(&after, "/f").unwrap();
        assert!(found.len() >= 3000 && found[..3000].iter().all(|b| *b == 7));
        assert!(found[3000..].iter().all(|b| *b == 8 || *b == 0));
    }
}

#[test]
fn a_power_loss_drops_tears_and_reorders_and_the_seed_decides() {
    let image = |seed| {
        let disk = CrashDisk::new();
        let file = synced_file(&disk, "/f", &[]);
        file.write_at(&[1; 2000], 0).unwrap();
        file.write_at(&[2; 2000], 2000).unwrap();
        content(&disk.crash(CrashMode::PowerLoss { seed }), "/f").unwrap()
    };
    let images: Vec<Vec<u8>> = (0..200).map(image).collect();
    assert!(images.iter().any(Vec::is_empty), "all lost");
    assert!(images.iter().any(|i| i.len() == 4000 && !i.contains(&0)), "all kept");
    assert!(images.iter().any(|i| !i.is_empty() && i.len() < 2000 && i.len() % 512 != 0), "torn at a byte");
    let second_only = |i: &Vec<u8>| !i.contains(&1) && i.contains(&2);
    assert!(images.iter().any(second_only), "the later write without the earlier");
    assert_eq!(images, (0..200).map(image).collect::<Vec<_>>());
}

#[test]
fn an_unsynced_rename_is_kept_or_lost_as_a_whole() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let disk = CrashDisk::new();
        synced_file(&disk, "/a", b"1");
        disk.rename(path("/a"), path("/b")).unwrap();
        let after = disk.crash(CrashMode::PowerLoss { seed });
        outcomes.insert((content(&after, "/a").is_some(), content(&after, "/b").is_some()));
    }
    assert_eq!(outcomes, [(false, true), (true, false)].into());
}

#[test]
fn an_unsynced_removal_can_come_back() {
    let disk = CrashDisk::new();
    disk.create_dir_all(path("/d")).unwrap();
    disk.sync_dir(path("/")).unwrap();
    disk.open(path("/d/f"), OpenOptions::CREATE).unwrap();
    disk.sync_dir(path("/d")).unwrap();
    disk.remove_dir_all(path("/d")).unwrap();
    assert!(!disk.exists(path("/d")).unwrap());
    let after = disk.crash(CrashMode::LoseUnsynced);
    assert!(after.exists(path("/d/f")).unwrap());
}

#[test]
fn the_disk_dies_at_the_given_change_and_a_write_is_half_done_then() {
    let disk = CrashDisk::new();
    let file = synced_file(&disk, "/f", b"");
    disk.crash_at(1);
    file.write_at(b"first", 0).unwrap();
    assert!(file.write_at(b"2222", 5).is_err());
    assert!(file.sync_data().is_err());
    assert!(disk.list_dir(path("/")).is_err());
    assert_eq!(content(&disk.crash(CrashMode::ProcessKill), "/f").unwrap(), b"first22");
}

#[test]
fn an_injected_error_is_met_once_where_it_was_put() {
    let disk = CrashDisk::new();
    let (f, g) = (synced_file(&disk, "/f", b""), synced_file(&disk, "/g", b""));
    let kind = io::ErrorKind::StorageFull;
    let fault = Fault { operation: Operation::Write, path_contains: "f".into(), skip: 1, times: 1, kind };
    disk.fail(fault);
    g.write_at(b"x", 0).unwrap();
    f.write_at(b"x", 0).unwrap();
    assert_eq!(f.write_at(b"yy", 1).unwrap_err().kind(), kind);
    f.write_at(b"z", 2).unwrap();
    assert_eq!(content(&disk, "/f").unwrap(), b"xyz");
}

#[test]
fn after_a_failed_sync_the_data_is_visible_but_no_later_sync_saves_it() {
    let disk = CrashDisk::new();
    let file = synced_file(&disk, "/f", b"old");
    file.write_at(b"new", 0).unwrap();
    let kind = io::ErrorKind::Other;
    disk.fail(Fault { operation: Operation::Sync, path_contains: String::new(), skip: 0, times: 1, kind });
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    assert_eq!(content(&disk, "/f").unwrap(), b"new");
    assert_eq!(content(&disk.crash(CrashMode::LoseUnsynced), "/f").unwrap(), b"old");
}

#[test]
fn a_lock_is_exclusive_and_ends_with_its_holder_or_the_crash() {
    let disk = CrashDisk::new();
    let held = disk.try_lock(path("/.lock")).unwrap();
    assert!(held.is_some());
    assert!(disk.try_lock(path("/.lock")).unwrap().is_none());
    let after = disk.crash(CrashMode::ProcessKill);
    assert!(after.try_lock(path("/.lock")).unwrap().is_some());
    assert!(after.try_lock(path("/.lock")).unwrap().is_some(), "dropped at once");
}

#[test]
fn renaming_onto_a_directory_with_content_fails() {
    let disk = CrashDisk::new();
    disk.create_dir_all(path("/a")).unwrap();
    disk.create_dir_all(path("/b/c")).unwrap();
    assert!(disk.rename(path("/a"), path("/b")).is_err());
    disk.rename(path("/a"), path("/b/c")).unwrap();
    assert_eq!(disk.list_dir(path("/")).unwrap(), [DirEntry { name: "b".into(), is_dir: true }]);
}

#[test]
fn what_survived_the_death_of_the_process_can_still_be_lost_with_the_power() {
    let disk = CrashDisk::new();
    synced_file(&disk, "/f", b"old").write_at(b"new", 0).unwrap();
    let after = disk.crash(CrashMode::ProcessKill);
    assert_eq!(content(&after, "/f").unwrap(), b"new");
    assert_eq!(content(&after.crash(CrashMode::LoseUnsynced), "/f").unwrap(), b"old");
}

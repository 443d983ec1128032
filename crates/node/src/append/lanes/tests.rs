use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;

use super::*;

/// Keeps jobs until the test runs them.
#[derive(Default)]
struct Kept(Mutex<Vec<Job>>);

impl Kept {
    fn take(&self) -> Vec<Job> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Executor for Kept {
    fn submit(&self, job: Job) -> Result<(), Job> {
        self.0.lock().unwrap().push(job);
        Ok(())
    }
}

struct Setting {
    lanes: Lanes,
    kept: Arc<Kept>,
    asked_to_watch: Arc<AtomicUsize>,
    relieved: Arc<AtomicUsize>,
    dirs: Vec<Arc<DirHealth>>,
}

fn count(times: &AtomicUsize) {
    times.fetch_add(1, Ordering::SeqCst);
}

fn setting(on_sockets: usize) -> Setting {
    let kept = Arc::new(Kept::default());
    let (asked_to_watch, relieved) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (asked, relief) = (asked_to_watch.clone(), relieved.clone());
    let threads = AppendThreads {
        on_sockets,
        lanes: kept.clone(),
        watch_within: Box::new(move |_| count(&asked)),
        relieve: Box::new(move || count(&relief)),
    };
    let dirs: Vec<_> = ["/a", "/b"].map(|dir| DirHealth::new(dir, Box::new(|_| {}))).into();
    Setting { lanes: Lanes::new(threads, &dirs), kept, asked_to_watch, relieved, dirs }
}

#[test]
fn no_more_appends_than_slots_run_on_threads_of_sockets() {
    let Setting { lanes, dirs, .. } = &setting(2);
    let first = lanes.enter(&dirs[0]).unwrap();
    let _second = lanes.enter(&dirs[1]).unwrap();
    assert!(lanes.enter(&dirs[0]).is_none());
    drop(first);
    assert!(lanes.enter(&dirs[0]).is_some());
}

#[test]
fn a_lane_does_its_jobs_one_after_the_other_on_one_thread() {
    let Setting { lanes, dirs, kept, .. } = &setting(0);
    let (done, dones) = mpsc::channel();
    for number in 0..3 {
        let done = done.clone();
        lanes.hand_over(&dirs[0], Box::new(move || done.send(number).unwrap()));
    }
    let drainers = kept.take();
    assert_eq!(drainers.len(), 1);
    assert_eq!(dones.try_iter().count(), 0);
    for drainer in drainers {
        drainer();
    }
    assert_eq!(dones.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
    // An idle lane is served anew.
    lanes.hand_over(&dirs[0], Box::new(|| {}));
    assert_eq!(kept.take().len(), 1);
}

#[test]
fn each_directory_has_a_lane_of_its_own() {
    let Setting { lanes, dirs, kept, .. } = &setting(0);
    lanes.hand_over(&dirs[0], Box::new(|| {}));
    lanes.hand_over(&dirs[1], Box::new(|| {}));
    assert_eq!(kept.take().len(), 2);
}

#[test]
fn an_append_seen_at_two_looks_marks_its_directory_and_the_sockets_are_relieved() {
    let Setting { lanes, dirs, relieved, .. } = &setting(2);
    let caught = lanes.enter(&dirs[0]).unwrap();
    assert_eq!(lanes.watch(), Some(LOOK_EVERY));
    assert_eq!((lanes.stalled(), relieved.load(Ordering::SeqCst)), (0, 0));
    assert_eq!(lanes.watch(), Some(LOOK_EVERY));
    assert_eq!((lanes.stalled(), relieved.load(Ordering::SeqCst)), (1, 1));
    // Its disk catches no second thread, and the other directory is written as before.
    assert!(lanes.enter(&dirs[0]).is_none());
    assert!(lanes.enter(&dirs[1]).is_some());
    drop(caught);
    assert_eq!(lanes.stalled(), 0);
    assert!(lanes.enter(&dirs[0]).is_some());
}

#[test]
fn appends_that_follow_each_other_are_not_taken_for_one_that_does_not_end() {
    let Setting { lanes, dirs, .. } = &setting(1);
    for _ in 0..10 {
        let append = lanes.enter(&dirs[0]).unwrap();
        assert_eq!(lanes.watch(), Some(LOOK_EVERY));
        drop(append);
    }
    assert_eq!(lanes.stalled(), 0);
}

#[test]
fn nobody_looks_while_nothing_is_written_and_the_next_append_asks_for_it() {
    let Setting { lanes, dirs, asked_to_watch, .. } = &setting(1);
    let append = lanes.enter(&dirs[0]);
    assert_eq!(asked_to_watch.load(Ordering::SeqCst), 1);
    drop(append);
    assert!(lanes.enter(&dirs[0]).is_some());
    assert_eq!(asked_to_watch.load(Ordering::SeqCst), 1, "somebody looks already");
    assert_eq!(lanes.watch(), None);
    assert!(lanes.enter(&dirs[0]).is_some());
    assert_eq!(asked_to_watch.load(Ordering::SeqCst), 2);
}

#[test]
fn a_job_that_panics_does_not_end_its_lane() {
    let Setting { lanes, kept, dirs, .. } = &setting(0);
    let done = Arc::new(AtomicUsize::new(0));
    let job = || {
        let done = done.clone();
        Box::new(move || count(&done))
    };
    lanes.hand_over(&dirs[0], Box::new(|| panic!("by the test")));
    lanes.hand_over(&dirs[0], job());
    kept.take().into_iter().for_each(|job| job());
    assert_eq!(done.load(Ordering::SeqCst), 1);
    lanes.hand_over(&dirs[0], job());
    kept.take().into_iter().for_each(|job| job());
    assert_eq!(done.load(Ordering::SeqCst), 2);
}

//! Threads that come when they are needed and go when they are not: for work that seldom comes and may then block for
//! as long as a disk stalls, where no piece of work may wait for another.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::pool::{Job, run_job};

/// How long a thread waits for more work before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// A pool without a queue: work is begun at once or not at all.
#[derive(Debug)]
pub struct Elastic {
    shared: Arc<Shared>,
    most: usize,
}

#[derive(Debug)]
struct Shared {
    name: &'static str,
    threads: AtomicUsize,
    // No room: only a thread that waits takes a job.
    hand: Sender<Job>,
    waiting: Receiver<Job>,
}

impl Elastic {
    /// A pool of at most `most` threads, without any at first.
    pub fn new(name: &'static str, most: usize) -> Self {
        let (hand, waiting) = bounded(0);
        Self { shared: Arc::new(Shared { name, threads: AtomicUsize::new(0), hand, waiting }), most }
    }

    /// Begins a job on a thread that waits, or on a new one.
    ///
    /// # Errors
    /// Gives the job back when all threads are at work, or the system has none to give.
    pub fn submit(&self, job: Job) -> Result<(), Job> {
        let job = match self.shared.hand.try_send(job) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => job,
        };
        if self.shared.threads.fetch_add(1, Ordering::Relaxed) >= self.most {
            self.shared.threads.fetch_sub(1, Ordering::Relaxed);
            return Err(job);
        }
        self.spawn(job)
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.shared.threads.load(Ordering::Relaxed)
    }

    fn spawn(&self, job: Job) -> Result<(), Job> {
        let shared = Arc::clone(&self.shared);
        // Kept here too: it must not be lost with a thread that never was.
        let first = Arc::new(Mutex::new(Some(job)));
        let taken = Arc::clone(&first);
        let thread = std::thread::Builder::new().name(self.shared.name.to_owned());
        let Err(error) = thread.spawn(move || shared.run(take(&taken))) else { return Ok(()) };
        self.shared.threads.fetch_sub(1, Ordering::Relaxed);
        tracing::warn!(%error, pool = self.shared.name, "the system has no thread to give");
        take(&first).map_or(Ok(()), Err)
    }
}

fn take(job: &Mutex<Option<Job>>) -> Option<Job> {
    job.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Shared {
    fn run(&self, first: Option<Job>) {
        let mut next = first;
        while let Some(job) = next {
            run_job(job);
            next = self.waiting.recv_timeout(IDLE).ok();
        }
        self.threads.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A job that tells that it has begun and ends with the returned half.
    fn blocking(begun: &mpsc::Sender<()>) -> (Job, mpsc::Sender<()>) {
        let (hold, held) = mpsc::channel::<()>();
        let begun = begun.clone();
        let job = move || {
            begun.send(()).unwrap();
            // The end of the test's half lets it go.
            let _ = held.recv();
        };
        (Box::new(job), hold)
    }

    #[test]
    fn no_job_waits_for_another_and_one_too_many_is_given_back() {
        let pool = Elastic::new("test", 2);
        assert_eq!(pool.threads(), 0);
        let (begin, begun) = mpsc::channel();
        let (first, hold_first) = blocking(&begin);
        let (second, hold_second) = blocking(&begin);
        assert!(pool.submit(first).is_ok());
        assert!(pool.submit(second).is_ok());
        begun.recv().unwrap();
        begun.recv().unwrap();
        assert!(pool.submit(Box::new(|| {})).is_err());
        assert_eq!(pool.threads(), 2);
        drop((hold_first, hold_second));
    }

    #[test]
    fn a_thread_that_has_nothing_to_do_takes_the_next_job() {
        let pool = Elastic::new("test", 1);
        let (done, dones) = mpsc::channel();
        for _ in 0..100 {
            let done = done.clone();
            let mut job: Option<Job> =
                Some(Box::new(move || done.send(std::thread::current().id()).unwrap()));
            while let Some(again) = job.take() {
                job = pool.submit(again).err();
                std::thread::yield_now();
            }
        }
        let ids: std::collections::HashSet<_> = (0..100).map(|_| dones.recv().unwrap()).collect();
        assert_eq!(ids.len(), 1);
    }

    #[test]
    fn a_job_that_panics_ends_nothing_but_itself() {
        let pool = Elastic::new("test", 1);
        assert!(pool.submit(Box::new(|| panic!("for the test"))).is_ok());
        let (done, dones) = mpsc::channel();
        let mut job: Option<Job> = Some(Box::new(move || done.send(()).unwrap()));
        while let Some(again) = job.take() {
            job = pool.submit(again).err();
            std::thread::yield_now();
        }
        dones.recv().unwrap();
    }
}

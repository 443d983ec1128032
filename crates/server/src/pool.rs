//! Threads for work that may block for long: fsync, removals, recovery. The queue is bounded; whoever finds it
//! full gets the work back, and does it himself or lets it be.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

/// A piece of work.
pub type Job = Box<dyn FnOnce() + Send>;

/// A few threads and one queue.
#[derive(Debug)]
pub struct Pool {
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    busy: Arc<AtomicUsize>,
}

impl Pool {
    /// Starts `threads` threads before a queue of `capacity` jobs.
    ///
    /// # Errors
    /// If the system has no thread to give.
    pub fn start(name: &str, threads: usize, capacity: usize) -> io::Result<Self> {
        let (sender, receiver) = bounded(capacity);
        let busy = Arc::new(AtomicUsize::new(0));
        let spawn = |number| {
            let (receiver, busy) = (Receiver::clone(&receiver), Arc::clone(&busy));
            std::thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || run_jobs(&receiver, &busy))
        };
        let threads = (0..threads.max(1)).map(spawn).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { jobs: Some(sender), threads, busy })
    }

    /// Takes a job.
    ///
    /// # Errors
    /// Gives the job back when the queue is full or the pool has stopped.
    pub fn submit(&self, job: Job) -> Result<(), Job> {
        let Some(jobs) = &self.jobs else { return Err(job) };
        jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(job) | TrySendError::Disconnected(job) => job,
        })
    }

    /// Jobs that wait for a thread.
    pub fn queued(&self) -> usize {
        self.jobs.as_ref().map_or(0, Sender::len)
    }

    /// Jobs that are being done.
    pub fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }
}

impl Drop for Pool {
    /// Waits until all jobs are done, those in the queue included. A job may hold what owns the pool, and be the last
    /// to let it go: its own thread is not waited for.
    fn drop(&mut self) {
        self.jobs = None;
        let own = std::thread::current().id();
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != own) {
            if thread.join().is_err() {
                tracing::error!("a thread of a pool has panicked");
            }
        }
    }
}

fn run_jobs(jobs: &Receiver<Job>, busy: &AtomicUsize) {
    for job in jobs {
        busy.fetch_add(1, Ordering::Relaxed);
        run_job(job);
        busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A job that panics takes nobody along: its thread has others to do.
pub(crate) fn run_job(job: Job) {
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("a background job has panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn jobs_are_done_by_several_threads_at_once() {
        let pool = Pool::start("test", 2, 10).unwrap();
        let (meet, met) = (mpsc::channel::<()>(), mpsc::channel::<()>());
        let ((first_tx, first_rx), (second_tx, second_rx)) = (meet, met);
        let (done, dones) = mpsc::channel();
        let done_too = done.clone();
        // Each waits for the other, so one thread could never do both.
        let first = move || {
            first_tx.send(()).unwrap();
            second_rx.recv().unwrap();
            done.send(()).unwrap();
        };
        let second = move || {
            second_tx.send(()).unwrap();
            first_rx.recv().unwrap();
            done_too.send(()).unwrap();
        };
        assert!(pool.submit(Box::new(first)).is_ok());
        assert!(pool.submit(Box::new(second)).is_ok());
        dones.recv().unwrap();
        dones.recv().unwrap();
    }

    #[test]
    fn a_full_queue_gives_the_job_back() {
        let pool = Pool::start("test", 1, 2).unwrap();
        let (hold, held) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let block = move || {
            begin.send(()).unwrap();
            // The end of the test's half lets it go.
            let _ = held.recv();
        };
        assert!(pool.submit(Box::new(block)).is_ok());
        begun.recv().unwrap();
        let (done, dones) = mpsc::channel();
        let count = || {
            let done = done.clone();
            Box::new(move || done.send(()).unwrap())
        };
        assert!(pool.submit(count()).is_ok());
        assert!(pool.submit(count()).is_ok());
        assert_eq!((pool.queued(), pool.busy()), (2, 1));
        let back = pool.submit(count());
        back.expect_err("the job itself")();
        dones.recv().unwrap();
        drop(hold);
        drop(pool);
        assert_eq!(dones.try_iter().count(), 2, "what was queued is done before the pool ends");
    }

    #[test]
    fn a_pool_may_end_on_one_of_its_own_threads() {
        let pool = Arc::new(Pool::start("test", 2, 4).unwrap());
        let (let_go, held) = mpsc::channel::<()>();
        let (done, dones) = mpsc::channel();
        let owned = Arc::clone(&pool);
        let last_owner = move || {
            held.recv().unwrap();
            drop(owned);
            done.send(()).unwrap();
        };
        assert!(pool.submit(Box::new(last_owner)).is_ok());
        drop(pool);
        let_go.send(()).unwrap();
        assert_eq!(dones.recv(), Ok(()), "it did not wait for itself");
    }

    #[test]
    fn a_job_that_panics_ends_nothing_but_itself() {
        let pool = Pool::start("test", 1, 2).unwrap();
        let (done, dones) = mpsc::channel();
        assert!(pool.submit(Box::new(|| panic!("for the test"))).is_ok());
        while pool.submit(Box::new(|| {})).is_err() {
            std::thread::yield_now();
        }
        let last: Job = Box::new(move || done.send(()).unwrap());
        let mut job = Some(last);
        while let Some(retry) = job.take() {
            job = pool.submit(retry).err();
        }
        dones.recv().unwrap();
    }
}

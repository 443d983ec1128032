//! Work that may block for long (fsync, creating and removing files): handed to whoever lends a thread.

/// A piece of work.
pub type Job = Box<dyn FnOnce() + Send>;

/// Runs jobs, at once or later, here or elsewhere. Its queue is bounded.
pub trait Executor: Send + Sync {
    /// Takes a job.
    ///
    /// # Errors
    /// Gives the job back when the queue is full.
    fn submit(&self, job: Job) -> Result<(), Job>;
}

/// Runs each job where it is submitted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Executor for Inline {
    fn submit(&self, job: Job) -> Result<(), Job> {
        job();
        Ok(())
    }
}

/// Runs `job` on `executor`, or here when its queue is full: slower, but never lost.
pub(crate) fn run(executor: &dyn Executor, job: Job) {
    if let Err(job) = executor.submit(job) {
        job();
    }
}

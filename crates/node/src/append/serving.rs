//! Whoever serves the queue before a partition. A panic over one append ends that one: the others are told what became of
//! theirs, and the queue is served on, by somebody else.

use std::collections::VecDeque;
use std::sync::Arc;

use wire::error_code::ErrorCode;
use wire::types::Offset;

use super::{Answer, Batch};
use crate::broker::Broker;
use crate::one_by_one;
use crate::partition::{Effects, Partition};

/// Serves the queue until it is empty.
pub(super) fn serve(broker: &Arc<Broker>, partition: &Arc<Partition>) {
    Serving { broker, partition, work: Work::default(), is_idle: false }.run();
}

struct Serving<'a> {
    broker: &'a Arc<Broker>,
    partition: &'a Arc<Partition>,
    work: Work,
    /// Whether the queue was found empty, and is somebody else's now.
    is_idle: bool,
}

/// What was taken from the queue, as far as it is not done.
#[derive(Default)]
struct Work {
    /// What is being written.
    batch: Batch,
    answers: VecDeque<Answer>,
    /// The log ends here since it was written to.
    log_end: Option<Offset>,
    effects: Option<Effects>,
}

impl Serving<'_> {
    fn run(&mut self) {
        loop {
            self.tell();
            let queued = self.partition.take_queued();
            if queued.is_empty() {
                self.is_idle = true;
                return;
            }
            self.write(Batch::of(queued));
        }
    }

    fn write(&mut self, batch: Batch) {
        let (broker, partition, work) = (self.broker, self.partition, &mut self.work);
        work.batch = batch;
        match partition.while_leading(|leading| work.batch.write(broker, partition, leading)) {
            Ok(effects) => {
                work.log_end = Some(work.batch.positions.log_end);
                work.effects = Some(effects);
            }
            Err(error) => work.batch.refuse(error),
        }
        work.answers = std::mem::take(&mut work.batch).answers(broker, partition);
    }

    fn tell(&mut self) {
        let (broker, partition) = (self.broker, self.partition);
        while let Some((it, result)) = self.work.answers.pop_front() {
            it.sink.appended(broker, partition, it.place, result);
        }
        if let Some(log_end) = self.work.log_end.take() {
            partition.log_end_moved(broker, log_end);
        }
        if let Some(effects) = self.work.effects.take() {
            partition.carry_out(broker, effects);
        }
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        if self.is_idle {
            return;
        }
        let (broker, partition) = (self.broker.clone(), self.partition.clone());
        let mut work = std::mem::take(&mut self.work);
        // The panic came in the middle of the write: nobody knows what became of it.
        work.batch.refuse(ErrorCode::UnknownServerError);
        work.answers.extend(std::mem::take(&mut work.batch).answers(&broker, &partition));
        let go_on = move || Serving { broker: &broker, partition: &partition, work, is_idle: false }.run();
        one_by_one::go_on(self.broker, Box::new(go_on));
    }
}

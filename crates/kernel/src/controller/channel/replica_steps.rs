//! What one broker is told of one partition, without what later steps make void.
//!
//! A receiver follows a LeaderAndIsr only if its leader epoch is new, and, as a follower, only if it knows the leader to
//! be alive; otherwise it does no more than make the log. It obeys every StopReplica, for it knows no later epoch than
//! the controller: one who does has heard of a later controller, and refuses whatever waits here. From this follows
//! which of two steps decides.
//!
//! Steps are dropped, never moved. A dropped step's permission to place the log anywhere (`is_new`) passes to the one
//! that takes its place. No more than [`MAX_STEPS`] remain.

use wire::types::{LeaderEpoch, TopicId};

/// The most steps that remain of any number of steps: replica stopped or deleted, led, stopped, told of a leader that is
/// not there, stopped.
#[cfg(test)]
pub(super) const MAX_STEPS: usize = 5;

/// Whether a receiver acts on a LeaderAndIsr whose epoch is new to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applies {
    /// The receiver is the leader, or has been told that the leader is alive.
    Surely,
    /// There is no leader, or the receiver has been told that it is not alive.
    Never,
    /// Nothing is known of what the receiver was told.
    Perhaps,
}

/// One partition of a LeaderAndIsr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lead {
    /// The leader epoch.
    pub(super) epoch: LeaderEpoch,
    /// Whether it will be acted on.
    pub(super) applies: Applies,
    /// Whether the log may be placed anywhere.
    pub(super) is_new: bool,
    /// The id that comes with it.
    pub(super) topic_id: Option<TopicId>,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// From a LeaderAndIsr.
    Lead(Lead),
    /// From a StopReplica.
    Stop {
        /// The leader epoch.
        epoch: LeaderEpoch,
        /// Whether the log goes.
        delete: bool,
    },
}

/// A step, and the place in the queue of the request that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// The place.
    pub(super) at: usize,
    /// The step.
    pub(super) step: Step,
}

impl Placed {
    /// Whether it is a StopReplica, and one that deletes if it must.
    fn is_stop(&self, must_delete: bool) -> bool {
        matches!(self.step, Step::Stop { delete, .. } if delete || !must_delete)
    }
}

/// Adds the step that comes next to those that remained so far.
pub(super) fn add(remaining: &mut Vec<Placed>, next: Placed) {
    match next.step {
        Step::Lead(lead) => add_lead(remaining, next.at, lead),
        Step::Stop { delete: true, .. } => match remaining.iter().position(|placed| placed.is_stop(true)) {
            // The first one stays, for it is the one that fits the epoch of the replica that is there.
            Some(first) => remaining.truncate(first + 1),
            None => {
                remaining.clear();
                remaining.push(next);
            }
        },
        // A replica that was stopped, or is gone, is not stopped again.
        Step::Stop { delete: false, .. } => {
            if !remaining.last().is_some_and(|last| last.is_stop(false)) {
                remaining.push(next);
            }
        }
    }
}

/// How a replica stands before the next LeaderAndIsr, as far as the last steps tell: led, then perhaps stopped.
struct Tail {
    /// Where these steps begin.
    start: usize,
    lead: Option<Lead>,
    stop: Option<Placed>,
}

impl Tail {
    fn of(remaining: &[Placed]) -> Self {
        let mut tail = Self { start: remaining.len(), lead: None, stop: None };
        for placed in remaining.iter().rev() {
            match placed.step {
                Step::Stop { delete: false, .. } if tail.stop.is_none() => tail.stop = Some(*placed),
                Step::Lead(lead) => tail.lead = Some(lead),
                Step::Stop { .. } => break,
            }
            tail.start -= 1;
            if tail.lead.is_some() {
                break;
            }
        }
        tail
    }

    /// Whether a receiver that is told to lead or follow in `epoch`, and can, is as if it had not been told the tail.
    fn is_undone_by(&self, epoch: LeaderEpoch) -> bool {
        match (self.lead, self.stop.map(|placed| placed.step)) {
            (Some(led), stop) => led.epoch < epoch || (led.epoch == epoch && stop.is_none()),
            // The receiver's epoch is at most that of the stop; negative ones tell nothing of it.
            (None, Some(Step::Stop { epoch: stopped, .. })) => stopped.0 >= 0 && stopped < epoch,
            (None, _) => true,
        }
    }
}

fn add_lead(remaining: &mut Vec<Placed>, at: usize, mut next: Lead) {
    loop {
        let tail = Tail::of(remaining);
        let is_undone = next.applies == Applies::Surely && tail.is_undone_by(next.epoch);
        let Some(led) = tail.lead else {
            if is_undone {
                remaining.truncate(tail.start);
            }
            break;
        };
        if is_undone || (led.applies == Applies::Never && led.epoch <= next.epoch) {
            remaining.truncate(tail.start);
            next.is_new |= led.is_new;
            if let Some(stop) = tail.stop.filter(|_| !is_undone) {
                // All that the LeaderAndIsr did was to make the log, and this one does that too.
                add(remaining, stop);
            }
        } else if led.applies == Applies::Surely && led.topic_id == next.topic_id && next.epoch <= led.epoch {
            // The epoch will not be new.
            return;
        } else {
            break;
        }
    }
    remaining.push(Placed { at, step: Step::Lead(next) });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a receiver has of the partition: nothing, or a replica with the epoch it acted on last.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Replica {
        epoch: i32,
        is_running: bool,
    }

    fn receive(replica: &mut Option<Replica>, step: Step) {
        match step {
            Step::Lead(Lead { epoch, applies, .. }) => {
                let known = replica.get_or_insert(Replica { epoch: -1, is_running: false });
                if epoch.0 > known.epoch && applies == Applies::Surely {
                    *known = Replica { epoch: epoch.0, is_running: true };
                }
            }
            Step::Stop { epoch, delete } => {
                let Some(known) = replica else { return };
                assert!(epoch.0 < 0 || epoch.0 >= known.epoch, "a stop that would be refused");
                known.is_running = false;
                if delete {
                    *replica = None;
                }
            }
        }
    }

    fn remaining(steps: &[Step]) -> Vec<Step> {
        let mut remaining = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            add(&mut remaining, Placed { at, step: *step });
        }
        assert!(remaining.is_sorted_by_key(|placed| placed.at), "a step moved");
        remaining.iter().map(|placed| placed.step).collect()
    }

    fn lead(epoch: i32, applies: Applies) -> Step {
        Step::Lead(Lead { epoch: LeaderEpoch(epoch), applies, is_new: false, topic_id: None })
    }

    fn stop(epoch: i32, delete: bool) -> Step {
        Step::Stop { epoch: LeaderEpoch(epoch), delete }
    }

    /// Calls `check` with every row of `length` steps that a controller takes: leader epochs rise until the topic is
    /// deleted, and a stop carries the present one, or that of a deletion once the topic is queued for it.
    fn for_all_rows(
        length: usize,
        (epoch, is_queued): (i32, bool),
        row: &mut Vec<Step>,
        check: &mut impl FnMut(&[Step]),
    ) {
        if row.len() == length {
            return check(row);
        }
        let leads = [epoch, epoch + 1].into_iter().filter(|_| !is_queued).flat_map(|led| {
            let either = [Applies::Surely, Applies::Never, Applies::Perhaps];
            either.map(|applies| (lead(led, applies), (led, false)))
        });
        let stops = [false, true].into_iter().flat_map(|delete| {
            let kept = [epoch, epoch + 1].map(|bumped| (stop(epoch, delete), (bumped, false)));
            let gone = (stop(-2, delete), if delete { (0, false) } else { (epoch, true) });
            kept.into_iter().filter(|_| !is_queued).chain([gone])
        });
        for (step, then) in leads.chain(stops).collect::<Vec<_>>() {
            row.push(step);
            for_all_rows(length, then, row, check);
            row.pop();
        }
    }

    /// With what may apply or not decided one way.
    fn decided(steps: &[Step], perhaps: Applies) -> impl Iterator<Item = Step> {
        steps.iter().map(move |step| match *step {
            Step::Lead(lead) if lead.applies == Applies::Perhaps => {
                Step::Lead(Lead { applies: perhaps, ..lead })
            }
            step => step,
        })
    }

    #[test]
    fn any_receiver_ends_as_if_no_step_of_any_five_had_been_dropped() {
        let known =
            (-1..2).flat_map(|epoch| [false, true].map(|is_running| Some(Replica { epoch, is_running })));
        let receivers: Vec<Option<Replica>> = known.chain([None]).collect();
        for_all_rows(5, (1, false), &mut Vec::new(), &mut |row| {
            let remaining = remaining(row);
            for (receiver, perhaps) in
                receivers.iter().flat_map(|r| [Applies::Surely, Applies::Never].map(|perhaps| (r, perhaps)))
            {
                let (mut all, mut few) = (*receiver, *receiver);
                decided(row, perhaps).for_each(|step| receive(&mut all, step));
                decided(&remaining, perhaps).for_each(|step| receive(&mut few, step));
                assert_eq!(few, all, "{receiver:?} told {row:#?}, of which remain {remaining:#?}");
            }
        });
    }

    #[test]
    fn of_many_steps_a_few_remain_while_it_is_known_who_is_alive() {
        let mut most = Vec::new();
        let mut rows = 0;
        for_all_rows(6, (0, false), &mut Vec::new(), &mut |row| {
            let is_unknown =
                |step: &Step| matches!(step, Step::Lead(lead) if lead.applies == Applies::Perhaps);
            if row.iter().any(is_unknown) {
                return;
            }
            rows += 1;
            let remaining = remaining(row);
            if remaining.len() > most.len() {
                most = remaining;
            }
        });
        assert_eq!(most.len(), MAX_STEPS, "{most:?} {rows}");
    }

    /// KAFKA-13132.
    #[test]
    fn a_step_with_an_epoch_that_is_not_new_stays_if_it_brings_the_id_of_the_topic() {
        let known = Lead { epoch: LeaderEpoch(1), applies: Applies::Surely, is_new: false, topic_id: None };
        let with_id = Lead { topic_id: Some(TopicId([7; 16])), ..known };
        let row = |last| [Step::Lead(known), stop(1, false), Step::Lead(last)];
        assert_eq!(remaining(&row(with_id)), row(with_id));
        assert_eq!(remaining(&row(known)), row(known)[..2]);
    }
}

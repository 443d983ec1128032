//! A run from its beginning to its judgement.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tracing::Dispatch;

use crate::check::{replicas, rest};
use crate::journal::{self, Journal};
use crate::plan::Plan;
use crate::report::Report;
use crate::workload::Workload;
use crate::world::{BROKERS, World};

/// How long everything may take to come to rest once nothing goes wrong any more, in milliseconds.
const REST_MS: u64 = 120_000;
/// How often the disks are compared, in microseconds.
const COMPARE_US: u64 = 2_000_000;
/// How often it is looked whether everything is at rest, in microseconds.
const LOOK_US: u64 = 250_000;

/// Runs a plan. An invariant that a broker finds broken is a finding as any other.
#[must_use]
pub fn run(plan: &Plan) -> Report {
    let world = World::new(*plan);
    let journal = Dispatch::new(Journal::new(world.weak()));
    tracing::dispatcher::with_default(&journal, || {
        let outcome = catch_unwind(AssertUnwindSafe(|| live(&world)));
        let workload = outcome.unwrap_or_else(|panic| {
            world
                .findings
                .add(&world, format!("a panic of broker {}: {}", journal::actor(), text_of(&*panic)));
            None
        });
        let report = Report {
            plan: *plan,
            digest: world.trace.digest(),
            faults: world.faults.counts(),
            states: world.log_judge.counts(),
            done: workload.map(|it| it.done()).unwrap_or_default(),
            findings: world.findings.all(),
            last_lines: world.trace.last_lines(),
        };
        world.end();
        judge_memory(&world, report)
    })
}

/// After its end nothing of a run stays in memory. (A run in which something was found may have broken off anywhere.)
fn judge_memory(world: &Arc<World>, mut report: Report) -> Report {
    let left = world.in_memory();
    if report.findings.is_empty() && !left.is_empty() {
        report.findings.push(format!("in memory after the end: {}", left.join(", ")));
    }
    report
}

/// What a panic says.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it says nothing")
}

/// The whole life of a world.
fn live(world: &Arc<World>) -> Option<Arc<Workload>> {
    let plan = world.plan;
    let world = world.clone();
    let workload = Workload::begin(&world);
    for id in BROKERS {
        let at_us = world.chances.faults.within(0..=300_000);
        world.schedule.at(at_us, "start", move |world| world.start(id));
    }
    world.ends_in(plan.ms + REST_MS);
    if plan.with_faults {
        world.begin_faults();
    }
    compare_replicas(&world);
    let until_us = plan.ms * 1000;
    // Whatever waits deep inside a start, the faults end at their time.
    let stopping = workload.clone();
    world.schedule.at(until_us, "rest", move |world| {
        world.matters(format_args!("nothing goes wrong from now on"));
        world.mend_all();
        stopping.stop();
    });
    world.run_while(|| world.schedule.now_us() < until_us);
    if let Some(missing) = world.faults.missing() {
        if let Some(unrest) = come_to_rest(&world, || rest::unrest_without(&world, missing)) {
            world.findings.add(&world, format!("no rest without broker {missing}: {unrest}"));
        }
        world.matters(format_args!("broker {missing} is missing no longer"));
        world.faults.set_missing(None);
        world.ends_in(REST_MS);
    }
    if let Some(unrest) = come_to_rest(&world, || workload.waits_for().or_else(|| rest::unrest(&world))) {
        world.findings.add(&world, format!("the cluster does not come to rest: {unrest}"));
    } else {
        workload.judge_at_rest(&world);
    }
    Some(workload)
}

/// Compares what lies on the disks, now and then.
fn compare_replicas(world: &Arc<World>) {
    world.schedule.after(COMPARE_US, "compare", |world| {
        replicas::judge(world);
        compare_replicas(world);
    });
}

/// Lets the world go on until nothing is left to be done. Returns what is, when that takes too long.
fn come_to_rest(world: &Arc<World>, unrest: impl Fn() -> Option<String>) -> Option<String> {
    loop {
        let unrest = unrest()?;
        if world.is_over() {
            return Some(unrest);
        }
        let next_us = world.schedule.now_us() + LOOK_US;
        world.schedule.at(next_us, "look", |_| {});
        world.run_while(|| world.schedule.now_us() < next_us);
    }
}

//! A partition whose replicas go one after the other, the controller's office moving or not: who is left in the in-sync
//! replicas, and what comes of it when brokers come back (KAFKA-3143). A real Kafka 3.9 gives the same tables.
//!
//! Case 1: C is controller and sees A and B go. Case 2: B is controller, so nobody sees it go, and the next controller
//! finds only the state that it left.

mod case;
mod deaf;
mod expected;
mod passes;
mod table;
mod zombie;

use anyhow::{Context, Result, anyhow, ensure};
use interop::broker::Kind;
use interop::depth::Depth;

use case::{A, B, C, Case, End, Scene};

/// Both orders of replicas, with each pass.
fn all_of(kind: Kind, controller: i32, end: End) -> Vec<Case> {
    let case =
        |replicas, rebalance| Case { kind, controller, end, replicas, rebalance, planted_faults: None };
    [[A, B], [B, A]].into_iter().flat_map(|it| [case(it, false), case(it, true)]).collect()
}

/// Clusters that wait for sessions to end do so side by side.
fn side_by_side(cases: Vec<Case>) -> Result<()> {
    std::thread::scope(|scope| {
        let runs: Vec<_> = cases.into_iter().map(|case| scope.spawn(move || one(case))).collect();
        runs.into_iter().try_for_each(|run| run.join().map_err(|_| anyhow!("a run has panicked"))?)
    })
}

/// The second pass has leaders balanced, the first has not.
fn one(case: Case) -> Result<()> {
    let (scene, expected) = if case.rebalance {
        (passes::second(case), expected::second(case))
    } else {
        (passes::first(case), expected::first(case))
    };
    let told = scene.and_then(|scene| scene.table.must_be(&expected));
    told.with_context(|| case.to_string())
}

#[test]
fn case_1_stopped() -> Result<()> {
    side_by_side(all_of(Kind::Blumfeld, C, End::Stop))
}

#[test]
fn case_1_killed() -> Result<()> {
    side_by_side(all_of(Kind::Blumfeld, C, End::Kill))
}

#[test]
fn case_2_stopped() -> Result<()> {
    side_by_side(all_of(Kind::Blumfeld, B, End::Stop))
}

#[test]
fn case_2_killed() -> Result<()> {
    side_by_side(all_of(Kind::Blumfeld, B, End::Kill))
}

#[test]
fn a_real_kafka_gives_the_same_tables() -> Result<()> {
    if Depth::from_environment()? == Depth::Long {
        let ways = [(C, End::Stop), (C, End::Kill), (B, End::Stop), (B, End::Kill)];
        let cases = ways.into_iter().flat_map(|(controller, end)| all_of(Kind::Kafka, controller, end));
        return cases.into_iter().try_for_each(one);
    }
    let case = Case {
        kind: Kind::Kafka,
        controller: B,
        end: End::Kill,
        replicas: [A, B],
        rebalance: false,
        planted_faults: None,
    };
    one(case)
}

#[test]
fn a_controller_that_was_stopped_past_its_session_writes_nothing_and_is_refused() -> Result<()> {
    zombie::zombie(Kind::Blumfeld, None)?;
    if Depth::from_environment()? == Depth::Long { zombie::zombie(Kind::Kafka, None) } else { Ok(()) }
}

#[test]
fn a_controller_that_does_not_hear_of_its_successor_writes_nothing() -> Result<()> {
    deaf::deaf(None)
}

/// As before KAFKA-6082 the writes of a controller whose term is over land, or brokers obey it: both stories must fail.
#[test]
fn controllers_that_are_not_fenced_are_found() -> Result<()> {
    let stories = [
        (deaf::WRITTEN, deaf::deaf(Some("controller-writes-unfenced"))),
        (zombie::REFUSED, zombie::zombie(Kind::Blumfeld, Some("stale-controllers-obeyed"))),
    ];
    for (found, story) in stories {
        let told = story.err().with_context(|| format!("not found: {found}"))?;
        ensure!(told.to_string().starts_with(found), "something else went wrong: {told:#}");
    }
    Ok(())
}

/// As before KAFKA-3143: the dead leader of case 2 stays one. The case must fail then.
#[test]
fn a_controller_that_leaves_offline_replicas_alone_is_found() -> Result<()> {
    let case = Case {
        kind: Kind::Blumfeld,
        controller: B,
        end: End::Kill,
        replicas: [A, B],
        rebalance: false,
        planted_faults: Some("offline-replicas-left-alone"),
    };
    let topics = &passes::SECOND;
    let mut scene = Scene::begin(case, topics)?;
    scene.reach_s().with_context(|| scene.tell())?;
    ensure!(scene.table.must_be(&expected::s(case, topics)).is_err(), "nothing was found");
    let dead_leader = "leader B epoch 1, isr B, partition epoch 1, term +0";
    scene.table.must_be(&format!("A has gone: kept {dead_leader}\nS: kept {dead_leader}"))
}

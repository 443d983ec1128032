//! What follows from state S: two ways through all restarts.

use anyhow::{Context, Result, ensure};
use interop::admin::{self, Election};
use interop::cluster::LIMIT;
use interop::wait;

use super::case::{A, B, C, Case, Scene};

const PREFERRED_LEADER_NOT_AVAILABLE: i16 = 80;

/// Topics by what becomes of them: `kept` waits for B, `deleted` is deleted while it has no leader, `unclean` is
/// allowed to lose records, `asked` is made to.
pub(crate) const FIRST: [&str; 4] = ["kept", "deleted", "unclean", "asked"];
pub(crate) const SECOND: [&str; 1] = ["kept"];

/// C restarts; A comes back alone, and everything is tried with it; then B comes.
pub(crate) fn first(case: Case) -> Result<Scene> {
    let mut scene = Scene::begin(case, &FIRST)?;
    through_first(&mut scene).with_context(|| scene.tell())?;
    Ok(scene)
}

fn through_first(scene: &mut Scene) -> Result<()> {
    scene.reach_s()?;
    scene.stop(C)?;
    scene.cluster.start_brokers(&[C])?;
    scene.note_after_all("C restarted", C)?;

    scene.cluster.start_brokers(&[A])?;
    scene.note_after_all("A is back", A)?;

    let controller = scene.address(C)?;
    let code = admin::elect_leader(&controller, Election::Preferred, "kept", 0)?;
    let preferred = scene.case.replicas.first().copied();
    ensure!(code == PREFERRED_LEADER_NOT_AVAILABLE, "the preferred leader {preferred:?}: error {code}");
    // A topic is gone for clients from the moment that its deletion is begun; its znodes wait for B.
    let code = admin::delete(&controller, "deleted")?;
    ensure!(code == 0, "the deletion with B gone: error {code}");
    scene.note("A is back, election refused, deletion waits", &["kept", "deleted"])?;

    let code = admin::set_topic_config(&controller, "unclean", "unclean.leader.election.enable", "true")?;
    ensure!(code == 0, "unclean.leader.election.enable: error {code}");
    scene.cluster.until_state("unclean", 0, "led by A", |state| state.leader == A)?;
    let code = admin::elect_leader(&controller, Election::Unclean, "asked", 0)?;
    ensure!(code == 0, "the unclean election: error {code}");
    scene.note("A elected uncleanly", &["unclean", "asked"])?;
    ensure!(is_being_deleted(scene, "deleted")?, "the deletion is no longer asked for");

    scene.cluster.start_brokers(&[B])?;
    for topic in ["kept", "unclean", "asked"] {
        scene.cluster.until_in_sync(topic)?;
    }
    scene.note("B is back", &["kept", "unclean", "asked"])?;
    let (common, all) = scene.ends();
    scene.look_at_records("kept", B, all)?;
    scene.look_at_records("unclean", A, common)?;
    scene.look_at_records("asked", A, common)?;
    wait::until("the end of the deleted topic", LIMIT, || {
        let is_there = scene.cluster.tree()?.client().data("/brokers/topics/deleted")?.is_some();
        Ok((!is_there && !is_being_deleted(scene, "deleted")?).then_some(()))
    })
}

fn is_being_deleted(scene: &Scene, topic: &str) -> Result<bool> {
    Ok(scene.cluster.tree()?.client().data(&format!("/admin/delete_topics/{topic}"))?.is_some())
}

/// All stop; A comes back alone and is controller; then B alone; then A to it. In the end leaders are balanced, if the
/// case has that.
pub(crate) fn second(case: Case) -> Result<Scene> {
    let mut scene = Scene::begin(case, &SECOND)?;
    through_second(&mut scene).with_context(|| scene.tell())?;
    Ok(scene)
}

fn through_second(scene: &mut Scene) -> Result<()> {
    scene.reach_s()?;
    scene.stop(C)?;
    scene.cluster.start_brokers(&[A])?;
    scene.note_after_all("A alone", A)?;

    scene.stop(A)?;
    scene.cluster.start_brokers(&[B])?;
    scene.cluster.until_state("kept", 0, "led by B", |state| state.leader == B)?;
    scene.note_after_all("B alone", B)?;

    scene.cluster.start_brokers(&[A])?;
    scene.cluster.until_in_sync("kept")?;
    let (_, all) = scene.ends();
    if scene.case.rebalance && scene.case.replicas == [A, B] {
        scene
            .cluster
            .until_state("kept", 0, "led by A again", |state| state.leader == A && state.isr.len() == 2)?;
    }
    scene.note("A and B", &SECOND)?;
    let leader = if scene.case.rebalance && scene.case.replicas == [A, B] { A } else { B };
    scene.look_at_records("kept", leader, all)
}

//! Two leaders wrote different records at one offset (KIP-101, second scenario): the one that comes back gives up its
//! own, though its high watermark lies above them.

use anyhow::{Result, ensure};

use super::judge::End;
use super::lab::{Lab, Lag, Stage};

/// Broker 2 falls out of the in-sync replicas, broker 1 commits these records alone and dies, and 2 is elected in epoch 1
/// though it lacks them.
fn until_2_leads_uncleanly(lab: &mut Lab, names: &[&str]) -> Result<()> {
    lab.both_have_a()?;
    let held = lab.cut_off(2, 1)?;
    for name in names {
        lab.append(1, &[name], 1)?;
    }
    lab.until_isr(&[1])?;
    let end = 1 + i64::try_from(names.len())?;
    lab.until_high_watermark(1, end)?;
    lab.kill(1)?;
    drop(held);
    ensure!(lab.high_watermark(1)? == Some(end), "1 has not kept its high watermark");
    ensure!(lab.log(2)?.end() == 1, "2 has more than A");
    lab.lead(2, 1, &[2], &[2])
}

fn come_back(lab: &mut Lab, id: i32) -> Result<()> {
    lab.start(id)?;
    lab.stand_in.tell(id)
}

const BOTH: [(i32, i64); 2] = [(0, 0), (1, 1)];

/// The scenario itself.
pub(crate) fn uncommitted(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Short)?;
    until_2_leads_uncleanly(&mut lab, &["B"])?;
    lab.append(2, &["C"], -1)?;
    lab.until_high_watermark(2, 2)?;
    come_back(&mut lab, 1)?;
    End::of(2, &["A", "C"]).epochs(&BOTH, &BOTH).must_come(&lab)
}

/// The new leader has appended nothing.
pub(crate) fn silent_leader(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Short)?;
    until_2_leads_uncleanly(&mut lab, &["B"])?;
    come_back(&mut lab, 1)?;
    End::of(2, &["A"]).epochs(&[(0, 0)], &BOTH).must_come(&lab)
}

/// Both die, and broker 2 loses what was not synced; it is elected cleanly.
pub(crate) fn lost_page_cache(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Long)?;
    lab.both_have_a()?;
    lab.append(1, &["B"], -1)?;
    lab.until_high_watermark(1, 2)?;
    lab.until_end(2, 2)?;
    lab.kill(1)?;
    lab.kill(2)?;
    lab.lose_from(2, 1)?;
    lab.start(2)?;
    lab.lead(2, 1, &[2], &[2])?;
    lab.append(2, &["C"], -1)?;
    come_back(&mut lab, 1)?;
    End::of(2, &["A", "C"]).epochs(&BOTH, &BOTH).must_come(&lab)
}

/// One batch of three records in place of two of one each.
pub(crate) fn other_batches(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Short)?;
    until_2_leads_uncleanly(&mut lab, &["B", "D"])?;
    lab.append(2, &["C1", "C2", "C3"], -1)?;
    come_back(&mut lab, 1)?;
    End::of(2, &["A", "C1", "C2", "C3"]).epochs(&BOTH, &BOTH).must_come(&lab)?;
    ensure!(lab.log(1)?.batches.len() == 2, "1 has other batches");
    Ok(())
}

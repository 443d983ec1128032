//! Logs that part in other ways: leaders in quick succession, epochs that one side has never heard of, epochs without
//! records, lost tails (KIP-279, KAFKA-10706).

use anyhow::{Result, ensure};

use super::judge::End;
use super::lab::{Lab, Lag, Protocol, Stage};

/// Records named by their epoch and offset.
fn records(epoch: i32, offsets: std::ops::Range<i64>) -> Vec<String> {
    offsets.map(|offset| format!("{epoch}.{offset}")).collect()
}

/// `leader` appends records of its epoch, one batch each.
fn append(lab: &Lab, leader: i32, epoch: i32, offsets: std::ops::Range<i64>) -> Result<()> {
    lab.append_each(leader, &records(epoch, offsets), 1)
}

/// Broker 2 led in epoch 2, of which broker 1 has never heard: the end of epoch 2 alone, as broker 1 sees it, would leave
/// records of it in broker 2's log.
pub(crate) fn fast_failover(stage: &Stage) -> Result<()> {
    let lab = stage.lab(Lag::Long)?;
    lab.lead(1, 1, &[1, 2], &[1, 2])?;
    append(&lab, 1, 1, 0..10)?;
    lab.until_high_watermark(2, 10)?;
    let held = lab.cut_off(2, 1)?;
    append(&lab, 1, 1, 10..15)?;
    lab.lead(2, 2, &[2], &[2])?;
    append(&lab, 2, 2, 10..20)?;
    drop(held);
    lab.lead(1, 3, &[1], &[1, 2])?;
    // The epoch without records is in the log of its leader only.
    End::of_names(1, records(1, 0..15)).epochs(&[(1, 0), (3, 15)], &[(1, 0)]).must_come(&lab)
}

/// Each side has an epoch that the other lacks: it takes two questions.
pub(crate) fn two_rounds(stage: &Stage) -> Result<()> {
    let lab = stage.lab(Lag::Long)?;
    lab.lead(2, 0, &[1, 2], &[2, 1])?;
    append(&lab, 2, 0, 0..5)?;
    lab.until_high_watermark(1, 5)?;
    let held = lab.cut_off(1, 2)?;
    append(&lab, 2, 0, 5..7)?;
    lab.lead(1, 2, &[1], &[1])?;
    append(&lab, 1, 2, 5..10)?;
    lab.lead(2, 3, &[2], &[2])?;
    append(&lab, 2, 3, 7..13)?;
    drop(held);
    let before = lab.epoch_questions()?;
    lab.lead(1, 5, &[1], &[1, 2])?;
    let names = [records(0, 0..5), records(2, 5..10)].concat();
    End::of_names(1, names).epochs(&[(0, 0), (2, 5), (5, 10)], &[(0, 0), (2, 5)]).must_come(&lab)?;
    let asked = lab.epoch_questions()? - before;
    ensure!(lab.protocol() == Protocol::ByFetch || asked >= 2, "{asked} questions were enough");
    Ok(())
}

/// Epochs without records: an entry at the log's end must go when its owner follows, or nothing fits any more.
pub(crate) fn epochs_without_records(stage: &Stage) -> Result<()> {
    let lab = stage.lab(Lag::Long)?;
    lab.both_have_a()?;
    lab.lead(2, 1, &[1, 2], &[2, 1])?;
    lab.until("epoch 1 on its leader", || Ok(lab.epochs(2)? == [(0, 0), (1, 1)]))?;
    lab.lead(1, 2, &[1, 2], &[1, 2])?;
    lab.append(1, &["B"], -1)?;
    let epochs = [(0, 0), (2, 1)];
    End::of(1, &["A", "B"]).epochs(&epochs, &epochs).must_come(&lab)
}

/// The log of the leader begins above the end of the follower's.
pub(crate) fn follower_below_the_leaders_start(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Short)?;
    lab.lead(1, 0, &[1, 2], &[1, 2])?;
    append(&lab, 1, 0, 0..40)?;
    lab.until_high_watermark(2, 40)?;
    lab.kill(2)?;
    append(&lab, 1, 0, 40..105)?;
    lab.until_isr(&[1])?;
    lab.until_high_watermark(1, 105)?;
    lab.delete_records(1, 100)?;
    lab.start(2)?;
    lab.stand_in.tell(2)?;
    End::of_names(1, records(0, 100..105)).from(100).epochs(&[(0, 100)], &[(0, 100)]).must_come(&lab)
}

/// The follower's epoch is older than all that the leader knows.
pub(crate) fn epoch_below_the_leaders_first(stage: &Stage) -> Result<()> {
    let lab = stage.lab(Lag::Long)?;
    lab.lead(2, 3, &[1, 2], &[2, 1])?;
    append(&lab, 2, 3, 0..100)?;
    lab.until_high_watermark(1, 100)?;
    let held = lab.cut_off(1, 2)?;
    append(&lab, 2, 3, 100..120)?;
    lab.lead(1, 5, &[1], &[1])?;
    append(&lab, 1, 5, 100..101)?;
    lab.until_high_watermark(1, 101)?;
    lab.delete_records(1, 100)?;
    drop(held);
    lab.stand_in.tell(2)?;
    End::of_names(1, records(5, 100..101)).from(100).epochs(&[(5, 100)], &[(5, 100)]).must_come(&lab)
}

/// A new epoch is in the leader's file at once, and in the follower's with its first record.
pub(crate) fn epochs_appear_with_records(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Long)?;
    lab.both_have_a()?;
    lab.kill(2)?;
    lab.start(2)?;
    lab.lead(1, 1, &[1, 2], &[1, 2])?;
    End::of(1, &["A"]).epochs(&[(0, 0), (1, 1)], &[(0, 0)]).must_come(&lab)?;
    lab.append(1, &["B"], -1)?;
    End::of(1, &["A", "B"]).epochs(&[(0, 0), (1, 1)], &[(0, 0), (1, 1)]).must_come(&lab)?;
    lab.kill(1)?;
    lab.lead(2, 2, &[2], &[2])?;
    lab.start(1)?;
    lab.stand_in.tell(1)?;
    let led = [(0, 0), (1, 1), (2, 2)];
    End::of(2, &["A", "B"]).epochs(&[(0, 0), (1, 1)], &led).must_come(&lab)?;
    lab.append(2, &["C"], -1)?;
    End::of(2, &["A", "B", "C"]).epochs(&led, &led).must_come(&lab)
}

/// Leaders that are not in sync, in turn, with batches of different sizes.
pub(crate) fn unclean_ping_pong(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Long)?;
    lab.both_have_a()?;
    lab.kill(2)?;
    let batches: [&[&str]; 4] = [&["B"], &["C1", "C2", "C3"], &["D"], &["E1", "E2"]];
    let mut leader = 1;
    for (epoch, batch) in (1..).zip(batches) {
        lab.lead(leader, epoch, &[leader], &[leader])?;
        lab.append(leader, batch, 1)?;
        lab.kill(leader)?;
        leader = 3 - leader;
        lab.start(leader)?;
    }
    // Broker 2 was the last that wrote: it leads, and what 1 wrote alone is lost.
    lab.start(2)?;
    lab.lead(2, 5, &[2], &[2, 1])?;
    let names = ["A", "C1", "C2", "C3", "E1", "E2"];
    End::of(2, &names).epochs(&[(0, 0), (2, 1), (4, 4)], &[(0, 0), (2, 1), (4, 4), (5, 6)]).must_come(&lab)
}

/// The leader has lost its tail and writes others in its place; the follower has the longer log.
pub(crate) fn leader_lost_its_tail(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Long)?;
    lab.lead(1, 0, &[1, 2], &[1, 2])?;
    append(&lab, 1, 0, 0..20)?;
    lab.until_end(2, 20)?;
    lab.kill(1)?;
    lab.kill(2)?;
    lab.lose_from(1, 15)?;
    lab.start(1)?;
    lab.lead(1, 1, &[1], &[1])?;
    append(&lab, 1, 1, 15..24)?;
    lab.start(2)?;
    lab.stand_in.tell(2)?;
    let names = [records(0, 0..15), records(1, 15..24)].concat();
    End::of_names(1, names).epochs(&[(0, 0), (1, 15)], &[(0, 0), (1, 15)]).must_come(&lab)
}

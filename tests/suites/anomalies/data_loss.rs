//! A follower restarts before it has heard how far its records are committed, and then its leader fails (KIP-101, first
//! scenario): what was acknowledged must not be lost.

use anyhow::{Result, ensure};

use super::judge::End;
use super::lab::{Lab, Lag, Stage};

/// What was asked has been answered, and the answer is lost; or nobody has answered.
enum Question {
    AnswerLost,
    Unanswered,
}

/// B is acknowledged, but broker 2 never hears that it is committed, is killed, comes back, and still has not heard
/// anything when broker 1 is killed and 2 is elected in epoch 1.
fn until_2_leads(lab: &mut Lab, question: Question) -> Result<()> {
    lab.both_have_a()?;
    let dropped = lab.drop_answers_after_records(2, 1)?;
    lab.append(1, &["B"], -1)?;
    lab.until_high_watermark(1, 2)?;
    ensure!(lab.high_watermark(2)? == Some(1), "2 has heard that B is committed");
    lab.kill(2)?;
    ensure!((lab.log(2)?.end(), lab.high_watermark(2)?) == (2, Some(1)), "2 has other files");

    let asked = lab.questions_to(1)?;
    match question {
        Question::AnswerLost => {
            let lost = lab.drop_answers(2, 1)?;
            drop(dropped);
            lab.start(2)?;
            let before = lost.count();
            lab.stand_in.tell(2)?;
            lab.until("a question that was answered", || {
                Ok(lab.questions_to(1)? > asked && lost.count() > before)
            })?;
            keeps_its_log(lab)?;
            lab.kill(1)?;
        }
        Question::Unanswered => {
            let held = lab.hold_requests(2, 1)?;
            drop(dropped);
            lab.start(2)?;
            lab.stand_in.tell(2)?;
            lab.until("a question that is held", || Ok(lab.questions_to(1)? > asked && held.waiting() > 0))?;
            keeps_its_log(lab)?;
            lab.kill(1)?;
        }
    }
    keeps_its_log(lab)?;
    lab.lead(2, 1, &[2], &[2])
}

fn keeps_its_log(lab: &Lab) -> Result<()> {
    let end = lab.log(2)?.end();
    ensure!(lab.is_planted() || end == 2, "2 has cut its log to {end}");
    Ok(())
}

/// Broker 1 comes back as a follower, and C is written, before or after.
fn until_both_have_c(lab: &mut Lab, first: bool) -> Result<()> {
    if first {
        lab.append(2, &["C"], 1)?;
    }
    lab.start(1)?;
    lab.stand_in.tell(1)?;
    if !first {
        lab.until_isr(&[1, 2])?;
        if !lab.is_planted() {
            End::of(2, &["A", "B"]).epochs(&[(0, 0)], &[(0, 0), (1, 2)]).must_come(lab)?;
        }
        lab.append(2, &["C"], -1)?;
    }
    let epochs = [(0, 0), (1, 2)];
    End::of(2, &["A", "B", "C"]).epochs(&epochs, &epochs).must_come(lab)
}

/// The scenario itself.
pub(crate) fn acknowledged(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Long)?;
    until_2_leads(&mut lab, Question::AnswerLost)?;
    until_both_have_c(&mut lab, false)
}

/// The new leader appends before the old one is back.
pub(crate) fn newer_records(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Long)?;
    until_2_leads(&mut lab, Question::AnswerLost)?;
    until_both_have_c(&mut lab, true)
}

/// The leader dies before it has answered anything.
pub(crate) fn silent_leader(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Long)?;
    until_2_leads(&mut lab, Question::Unanswered)?;
    until_both_have_c(&mut lab, false)
}

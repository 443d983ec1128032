//! Leader epochs that differ between a leader and who asks it, and the latest offset of a leader that does not know yet
//! what is committed (KIP-207, KIP-320).

use anyhow::{Context, Result, bail, ensure};
use interop::calls;
use interop::raw::Connection;

use super::judge::End;
use super::lab::{Lab, Lag, Stage, TOPIC};

const OFFSET_NOT_AVAILABLE: i16 = 78;

/// The follower has heard of an epoch of which its leader has not: it asks again and cuts nothing.
pub(crate) fn leader_behind_the_follower(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Long)?;
    lab.may_refuse_questions();
    lab.both_have_a()?;
    lab.lead(1, 1, &[1, 2], &[2])?;
    let asked = lab.questions_to(1)?;
    lab.until("questions that are refused", || Ok(lab.questions_to(1)? >= asked + 3))?;
    ensure!((lab.log(2)?.end(), lab.high_watermark(2)?) == (1, Some(1)), "2 has cut its log");
    lab.stand_in.tell(1)?;
    lab.append(1, &["B"], -1)?;
    let epochs = [(0, 0), (1, 1)];
    End::of(1, &["A", "B"]).epochs(&epochs, &epochs).must_come(&lab)
}

/// The follower has not heard of its leader's epoch: it gives up until it has.
pub(crate) fn follower_behind_the_leader(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Long)?;
    lab.may_refuse_questions();
    lab.both_have_a()?;
    lab.kill(2)?;
    let old = lab.stand_in.leadership()?;
    lab.lead(1, 1, &[1, 2], &[1])?;
    lab.start(2)?;
    lab.stand_in.tell_of(2, &old)?;
    let failed = "kafka_server_replicafetchermanager_failedpartitionscount";
    lab.until("a partition that is given up", || Ok(lab.metric(2, failed)? > 0.0))?;
    ensure!(lab.log(2)?.end() == 1, "2 has cut its log");
    lab.stand_in.tell(2)?;
    lab.append(1, &["B"], -1)?;
    let epochs = [(0, 0), (1, 1)];
    End::of(1, &["A", "B"]).epochs(&epochs, &epochs).must_come(&lab)
}

/// A leader whose high watermark lies below the start of its epoch does not tell a latest offset, which might fall.
pub(crate) fn latest_offset_after_election(stage: &Stage) -> Result<()> {
    let mut lab = stage.lab(Lag::Long)?;
    lab.both_have_a()?;
    let dropped = lab.drop_answers_after_records(2, 1)?;
    lab.append(1, &["B"], -1)?;
    lab.until_end(2, 2)?;
    lab.kill(1)?;
    drop(dropped);
    lab.lead(2, 1, &[1, 2], &[2])?;
    ensure!(lab.high_watermark(2)? == Some(1), "2 has heard that B is committed");
    ensure!(latest(&lab, 2)? == Err(OFFSET_NOT_AVAILABLE), "2 tells {:?}", latest(&lab, 2)?);
    lab.start(1)?;
    lab.stand_in.tell(1)?;
    lab.until("a latest offset", || match latest(&lab, 2)? {
        Ok(2) => Ok(true),
        Err(OFFSET_NOT_AVAILABLE) => Ok(false),
        other => bail!("2 tells {other:?}"),
    })?;
    End::of(2, &["A", "B"]).epochs(&[(0, 0)], &[(0, 0), (1, 2)]).must_come(&lab)
}

/// The latest offset as a broker tells it to consumers, or its error.
fn latest(lab: &Lab, id: i32) -> Result<Result<i64, i16>> {
    let request = calls::list_offsets_request(TOPIC, 0, calls::LATEST, -1);
    let response = Connection::open(&lab.address(id)?)?.call(5, &request)?;
    let answer = response.topics.first().and_then(|it| it.partitions.first()).context("an empty answer")?;
    Ok(if answer.error_code == 0 { Ok(answer.offset) } else { Err(answer.error_code) })
}

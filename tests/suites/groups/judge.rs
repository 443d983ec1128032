//! Who has read and committed what: nothing may be read again that its reader has committed.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};
use interop::clients::Client;

use super::member::{Member, Place, Step};

/// What a member has read and then committed.
///
/// # Errors
/// When it reads again what it has committed.
fn confirmed(steps: &[Step]) -> Result<BTreeSet<Place>> {
    let mut confirmed = BTreeSet::new();
    // What was read without a gap, by partition, and is not committed.
    let mut open: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
    for step in steps {
        match *step {
            Step::Read((partition, offset)) => {
                ensure!(
                    !confirmed.contains(&(partition, offset)),
                    "{partition}:{offset} is read again by its member"
                );
                let run = open.entry(partition).or_default();
                if run.last().is_some_and(|last| *last != offset - 1) {
                    run.clear();
                }
                run.push(offset);
            }
            Step::Committed((partition, end)) => {
                let run = open.remove(&partition).unwrap_or_default();
                confirmed
                    .extend(run.into_iter().filter(|offset| *offset < end).map(|offset| (partition, offset)));
            }
            Step::Failed => open.clear(),
        }
    }
    Ok(confirmed)
}

/// Judges the members of a group. Of those that do not tell what they commit nothing can be seen here.
///
/// # Errors
/// When a record is read and committed by two members, when a member reads again what it has committed, or when members
/// that tell what they commit have told nothing.
pub(crate) fn judge(client: Client, members: &[Member]) -> Result<()> {
    let steps = members.iter().map(Member::steps).collect::<Result<Vec<_>>>()?;
    let told = judge_steps(&steps)?;
    ensure!((told > 0) == client.tells_commits(), "{told} records were told to be committed");
    Ok(())
}

/// Wants no record to be read and committed by two members. Returns how many were by one.
///
/// # Errors
/// When one is, or when a member reads again what it has committed.
fn judge_steps(members: &[Vec<Step>]) -> Result<usize> {
    let mut by: BTreeMap<Place, usize> = BTreeMap::new();
    for (at, steps) in members.iter().enumerate() {
        for place in confirmed(steps)? {
            if let Some(other) = by.insert(place, at) {
                bail!("{place:?} is read and committed by members {other} and {at}");
            }
        }
    }
    Ok(by.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_judge_sees_what_is_read_after_it_was_committed() {
        use Step::{Committed, Failed, Read};
        let committed = vec![Read((0, 0)), Read((0, 1)), Committed((0, 2))];
        let goes_on = vec![Read((0, 2)), Committed((0, 3))];
        assert_eq!(judge_steps(&[committed.clone(), goes_on]).unwrap(), 3);
        let not_committed = vec![Read((0, 0)), Read((0, 1)), Failed, Read((0, 2)), Committed((0, 3))];
        judge_steps(&[committed.clone(), not_committed]).unwrap();
        assert!(judge_steps(&[committed.clone(), committed.clone()]).is_err());
        let again = [committed, vec![Read((0, 1))]].concat();
        assert!(judge_steps(&[again]).is_err());
    }
}

//! A member of a group: a client's process, and what it has printed of what it did.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use interop::clients::Client;
use interop::process::Process;

use super::{GROUP, LIMIT, TOPIC};

/// Partition and offset.
pub(crate) type Place = (usize, i64);

/// What a member has printed of one thing that it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Read(Place),
    /// All that it had read of the partition below the offset.
    Committed(Place),
    /// What it has read since the last commit may be read again.
    Failed,
}

/// A member, running or not.
pub(crate) struct Member {
    process: Option<Process>,
    log: PathBuf,
}

impl Member {
    /// Starts one, static if it has the id of an instance. One of the same name goes on with its log.
    pub(crate) fn start(
        client: Client,
        bootstrap: &str,
        folder: &Path,
        name: &str,
        instance: Option<&str>,
    ) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let mut command = client.member(bootstrap, TOPIC, GROUP, instance)?;
        Ok(Self { process: Some(Process::spawn(name, &mut command, &log)?), log })
    }

    pub(crate) fn steps(&self) -> Result<Vec<Step>> {
        let bytes = std::fs::read(&self.log)?;
        let text = String::from_utf8_lossy(&bytes);
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or_default());
        whole.lines().filter_map(|line| step(line).transpose()).collect()
    }

    pub(crate) fn reads(&self) -> Result<BTreeSet<Place>> {
        let read = |step| if let Step::Read(place) = step { Some(place) } else { None };
        Ok(self.steps()?.into_iter().filter_map(read).collect())
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> Result<bool> {
        Ok(!self.process.as_mut().context("the member was started")?.is_running()?)
    }

    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.take().context("the member runs")?.kill()
    }

    pub(crate) fn end(&mut self) -> Result<()> {
        self.process.take().context("the member runs")?.terminate(LIMIT).map(drop)
    }
}

/// The step that a line tells of; clients print other things, too.
fn step(line: &str) -> Result<Option<Step>> {
    let fields: Vec<_> = line.split('\t').collect();
    let place = |partition: &str, offset: &str| -> Result<Place> {
        let what = || format!("no partition and offset: {line:?}");
        Ok((partition.parse().with_context(what)?, offset.parse().with_context(what)?))
    };
    Ok(match fields.as_slice() {
        ["read", partition, offset] => Some(Step::Read(place(partition, offset)?)),
        ["committed", partition, offset] => Some(Step::Committed(place(partition, offset)?)),
        ["failed", ..] => Some(Step::Failed),
        [partition, offset, ..] => {
            match (partition.strip_prefix("Partition:"), offset.strip_prefix("Offset:")) {
                (Some(partition), Some(offset)) => Some(Step::Read(place(partition, offset)?)),
                _ => None,
            }
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_members_are_understood() {
        assert_eq!(step("read\t3\t7").unwrap(), Some(Step::Read((3, 7))));
        assert_eq!(step("Partition:3\tOffset:7\tnone-1 all work").unwrap(), Some(Step::Read((3, 7))));
        assert_eq!(step("committed\t3\t8").unwrap(), Some(Step::Committed((3, 8))));
        assert_eq!(step("failed\twhy").unwrap(), Some(Step::Failed));
        assert_eq!(step("% Group sharers rebalanced").unwrap(), None);
        assert!(step("read\tx\t1").is_err());
    }
}

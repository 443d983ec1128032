//! How a story must end: judged by the bytes of both logs and by the files beside them, not by what brokers say.

use anyhow::{Context, Result, ensure};
use interop::calls;
use interop::checker::compare_replicas;
use interop::wait;
use kafka_protocol::records::RecordBatchDecoder;

use super::lab::{Lab, Protocol, TOPIC, name_of};

/// The first word of what a judge finds, as against what did not come to pass in a story.
pub(crate) const FOUND: &str = "found";

/// The end of a story.
#[derive(Debug, Clone, Default)]
pub(crate) struct End {
    names: Vec<String>,
    start: i64,
    leader: i32,
    epochs: [Vec<(i32, i64)>; 2],
}

impl End {
    /// Both logs hold these records in this order from offset 0 on, and `leader` leads; all are committed, and both are in
    /// sync.
    pub(crate) fn of(leader: i32, names: &[&str]) -> Self {
        Self::of_names(leader, names.iter().map(|name| (*name).to_owned()).collect())
    }

    pub(crate) fn of_names(leader: i32, names: Vec<String>) -> Self {
        Self { names, leader, ..Self::default() }
    }

    /// The records begin at this offset.
    pub(crate) fn from(mut self, start: i64) -> Self {
        self.start = start;
        self
    }

    /// The leader epochs of broker 1 and of broker 2, with their start offsets.
    pub(crate) fn epochs(mut self, of_1: &[(i32, i64)], of_2: &[(i32, i64)]) -> Self {
        self.epochs = [of_1.to_vec(), of_2.to_vec()];
        self
    }

    fn end(&self) -> i64 {
        self.start + i64::try_from(self.names.len()).unwrap_or(i64::MAX)
    }

    /// Waits until the story has come to this end.
    pub(crate) fn must_come(&self, lab: &Lab) -> Result<()> {
        let mut last = Ok(());
        let came = wait::until("the end of the story", lab.limit_of_end(), || {
            last = self.differs(lab);
            Ok(last.is_ok().then_some(()))
        });
        if came.is_err() {
            return last.context(FOUND);
        }
        match lab.protocol() {
            Protocol::Asking if lab.is_planted() => Ok(()),
            // An end that differs in nothing from the beginning is there before anybody has asked.
            Protocol::Asking => wait::until("a question where an epoch ends", lab.limit_of_end(), || {
                Ok((lab.epoch_questions()? > 0).then_some(()))
            }),
            Protocol::ByFetch => {
                let questions = lab.epoch_questions()?;
                ensure!(questions == 0, "{questions} questions where epochs end");
                Ok(())
            }
        }
    }

    fn differs(&self, lab: &Lab) -> Result<()> {
        let logs = [("1".to_owned(), lab.log(1)?), ("2".to_owned(), lab.log(2)?)];
        let different = compare_replicas(&logs, i64::MAX);
        let different: Vec<String> = different
            .iter()
            .filter(|it| !matches!(it, interop::checker::Divergence::Short { .. }))
            .map(ToString::to_string)
            .collect();
        ensure!(different.is_empty(), "the logs differ: {different:?}");
        for (id, log) in &logs {
            ensure!(log.end() == self.end(), "the log of {id} ends at {}, not at {}", log.end(), self.end());
        }
        let read = self.read(lab)?;
        ensure!(read == self.names, "the records are {read:?}, not {:?}", self.names);
        for (id, epochs) in [1, 2].into_iter().zip(&self.epochs) {
            let found = lab.epochs(id)?;
            ensure!(found == *epochs, "the epochs of {id} are {found:?}, not {epochs:?}");
            let high_watermark = lab.high_watermark(id)?;
            ensure!(high_watermark == Some(self.end()), "the high watermark of {id} is {high_watermark:?}");
        }
        let leadership = lab.stand_in.leadership()?;
        ensure!(leadership.leader == self.leader, "{leadership:?}");
        ensure!(leadership.isr.len() == 2, "the in-sync replicas are {:?}", leadership.isr);
        Ok(())
    }

    /// The records that a consumer gets from the leader.
    fn read(&self, lab: &Lab) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for mut batch in calls::fetch_all(&lab.address(self.leader)?, TOPIC, 0, self.start)? {
            let records = RecordBatchDecoder::decode(&mut batch)?.records;
            let records = records.iter().filter(|record| record.offset >= self.start);
            names.extend(records.map(|record| name_of(record.value.as_deref().unwrap_or_default())));
        }
        Ok(names)
    }
}

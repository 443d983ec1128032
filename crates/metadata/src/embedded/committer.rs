//! Makes what waits durable in one transaction, then tells events and answers in order.

use super::Backend;
use super::core::{Item, Shared};
use crate::store::{StoreError, StoreEvent, guarded};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

pub(super) struct Committer {
    shared: Arc<Shared>,
    backend: Backend,
}

impl Committer {
    pub(super) fn new(shared: Arc<Shared>, backend: Backend) -> Self {
        Self { shared, backend }
    }

    /// Runs on a thread of its own until the store stops.
    pub(super) fn spawn(mut self) -> std::io::Result<JoinHandle<()>> {
        thread::Builder::new().name("metadata-store".to_owned()).spawn(move || {
            while let Some(batch) = self.shared.wait_for_batch() {
                self.run(batch);
            }
        })
    }

    /// Works on what waits; returns whether there was anything.
    pub(super) fn run_once(&mut self) -> bool {
        let batch = self.shared.take_batch();
        let any = !batch.is_empty();
        self.run(batch);
        any
    }

    fn run(&mut self, mut batch: VecDeque<Item>) {
        if let Some(reason) = self.shared.failure() {
            return refuse_all(batch, &reason);
        }
        if let Err(reason) = self.commit(&mut batch) {
            let reason: Arc<str> = Arc::from(reason);
            tracing::error!(%reason, "the metadata store failed; restart the broker once the disk is sound");
            for sink in self.shared.fail(&reason) {
                guarded(|| sink(StoreEvent::Failed { reason: reason.clone() }));
            }
            return refuse_all(batch, &reason);
        }
        for item in batch {
            for (sink, event) in item.notices {
                guarded(|| sink(event));
            }
            if let Some((done, answer)) = item.answer {
                guarded(|| done(answer));
            }
        }
    }

    fn commit(&mut self, batch: &mut VecDeque<Item>) -> Result<(), String> {
        let Some(zxid) = batch.iter().rev().find_map(|item| item.zxid) else { return Ok(()) };
        let Backend::File(file) = &mut self.backend else { return Ok(()) };
        let mut records = std::collections::BTreeMap::new();
        for item in batch {
            records.append(&mut item.records);
        }
        file.commit(zxid, &records)
    }
}

/// Answers everything with the failure; events of what is not durable are not told.
fn refuse_all(batch: VecDeque<Item>, reason: &Arc<str>) {
    for item in batch {
        if let Some((done, _)) = item.answer {
            guarded(|| done(Err(StoreError::Failed(reason.clone()))));
        }
    }
}

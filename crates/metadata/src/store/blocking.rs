//! A store for code that may wait: the start of a broker, tools and tests.

use super::{CreateMode, Op, OpError, OpResult, Request, Response, Stat, Store, StoreError, Value};
use crate::path;
use bytes::Bytes;
use std::sync::mpsc;

/// How many requests a pipeline hands in at once: a fraction of what a store lets wait.
const PIPELINE_WINDOW: usize = super::MAX_WAITING_REQUESTS / 8;

/// Calls that wait for their answer. Not for use within an event sink or an answer's callback.
#[derive(Clone, Copy)]
pub struct Blocking<'a> {
    store: &'a dyn Store,
}

impl<'a> Blocking<'a> {
    /// Calls to `store`.
    pub fn new(store: &'a dyn Store) -> Self {
        Self { store }
    }

    /// The data and stat of `path`.
    pub fn get(&self, path: &str) -> Result<(Option<Bytes>, Stat), StoreError> {
        match self.store.call(Request::get(path))? {
            Response::Data { data, stat } => Ok((data, stat)),
            _ => Err(mismatch()),
        }
    }

    /// The data and stat of `path`; `None` if there is no such znode.
    pub fn find(&self, path: &str) -> Result<Option<(Option<Bytes>, Stat)>, StoreError> {
        match self.get(path) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_no_node() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The stat of `path`, if there is such a znode.
    pub fn exists(&self, path: &str) -> Result<Option<Stat>, StoreError> {
        match self.store.call(Request::exists(path))? {
            Response::Exists(stat) => Ok(stat),
            _ => Err(mismatch()),
        }
    }

    /// The names of the children of `path`, ascending.
    pub fn children(&self, path: &str) -> Result<Vec<String>, StoreError> {
        match self.store.call(Request::children(path))? {
            Response::Children { names, .. } => Ok(names),
            _ => Err(mismatch()),
        }
    }

    /// Creates `path` and returns its path, which differs if it is sequential.
    pub fn create(&self, path: &str, data: impl Into<Value>, mode: CreateMode) -> Result<String, StoreError> {
        match self.store.call(Request::create(path, data, mode))? {
            Response::Written(OpResult::Created { path, .. }) => Ok(path),
            _ => Err(mismatch()),
        }
    }

    /// Replaces the data of `path` if it has `version`; any if `None`.
    pub fn set(&self, path: &str, data: impl Into<Value>, version: Option<i32>) -> Result<Stat, StoreError> {
        match self.store.call(Request::set(path, data, version))? {
            Response::Written(OpResult::Set { stat }) => Ok(stat),
            _ => Err(mismatch()),
        }
    }

    /// Deletes `path` if it has `version`; any if `None`.
    pub fn delete(&self, path: &str, version: Option<i32>) -> Result<(), StoreError> {
        self.store.call(Request::delete(path, version)).map(drop)
    }

    /// Does all of `ops` or none.
    pub fn multi(&self, ops: Vec<Op>) -> Result<Vec<OpResult>, StoreError> {
        match self.store.call(Request::Multi(ops))? {
            Response::Multi(results) => Ok(results),
            _ => Err(mismatch()),
        }
    }

    /// Hands in `requests`, many at once, and waits for their answers, which come in the order of the requests.
    pub fn pipeline(&self, requests: Vec<Request>) -> Vec<Result<Response, StoreError>> {
        let mut answers = Vec::with_capacity(requests.len());
        let mut requests = requests.into_iter();
        loop {
            let window: Vec<_> = requests.by_ref().take(PIPELINE_WINDOW).collect();
            if window.is_empty() {
                return answers;
            }
            answers.extend(self.at_once(window));
        }
    }

    fn at_once(&self, mut requests: Vec<Request>) -> Vec<Result<Response, StoreError>> {
        let Some(last) = requests.pop() else { return Vec::new() };
        let (sender, receiver) = mpsc::channel();
        let count = requests.len();
        for (at, request) in requests.into_iter().enumerate() {
            let sender = sender.clone();
            self.store.submit(request, Box::new(move |answer| drop(sender.send((at, answer)))));
        }
        // A call drives a store without a thread of its own too.
        let last = self.store.call(last);
        drop(sender);
        let mut answers = vec![Err(StoreError::Closed); count];
        for (at, answer) in receiver {
            if let Some(slot) = answers.get_mut(at) {
                *slot = answer;
            }
        }
        answers.push(last);
        answers
    }

    /// Creates `path` as persistent with null data, parents first; what is there already stays.
    pub fn ensure_path(&self, path: &str) -> Result<(), StoreError> {
        match self.create(path, Value::NULL, CreateMode::Persistent) {
            Ok(_) => Ok(()),
            Err(StoreError::Op(OpError::NodeExists)) => Ok(()),
            Err(StoreError::Op(OpError::NoNode)) => {
                let parent = path::parent(path).ok_or(StoreError::Op(OpError::BadArguments))?;
                self.ensure_path(parent)?;
                match self.create(path, Value::NULL, CreateMode::Persistent) {
                    Err(error) if !error.is_node_exists() => Err(error),
                    _ => Ok(()),
                }
            }
            Err(error) => Err(error),
        }
    }
}

fn mismatch() -> StoreError {
    StoreError::Unexpected("an answer of another kind")
}

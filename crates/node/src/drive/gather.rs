//! Collects the results of several works that end in any order, on any thread, and goes on with all of them.

use std::sync::{Arc, Mutex, PoisonError};

type Then<T> = Box<dyn FnOnce(Vec<T>) + Send>;

struct State<T> {
    results: Vec<Option<T>>,
    missing: usize,
    then: Option<Then<T>>,
}

/// A number of results to come. Clones stand for the same collection.
pub(crate) struct Gather<T>(Arc<Mutex<State<T>>>);

impl<T> Clone for Gather<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Gather<T> {
    /// Waits for `count` results and calls `then` with them in order of their places; at once if there are none.
    pub(crate) fn new(count: usize, then: impl FnOnce(Vec<T>) + Send + 'static) -> Self {
        let mut results = Vec::new();
        results.resize_with(count, || None);
        let gather =
            Self(Arc::new(Mutex::new(State { results, missing: count, then: Some(Box::new(then)) })));
        if count == 0 {
            gather.finish();
        }
        gather
    }

    /// The result at `place`, which nobody has given before.
    pub(crate) fn put(&self, place: usize, result: T) {
        self.end(place, Some(result));
    }

    /// There is no result at `place`.
    pub(crate) fn skip(&self, place: usize) {
        self.end(place, None);
    }

    fn end(&self, place: usize, result: Option<T>) {
        let last = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(slot) = state.results.get_mut(place) {
                *slot = result;
            }
            state.missing = state.missing.saturating_sub(1);
            state.missing == 0
        };
        if last {
            self.finish();
        }
    }

    fn finish(&self) {
        let (then, results) = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            (state.then.take(), std::mem::take(&mut state.results))
        };
        if let Some(then) = then {
            then(results.into_iter().flatten().collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn results_come_in_order_of_their_places_once_the_last_is_there() {
        let (sender, receiver) = mpsc::channel();
        let gather = Gather::new(3, move |all| sender.send(all).unwrap());
        gather.put(2, 'c');
        gather.skip(1);
        assert!(receiver.try_recv().is_err());
        gather.clone().put(0, 'a');
        assert_eq!(receiver.try_recv().unwrap(), ['a', 'c']);
    }

    #[test]
    fn nothing_to_wait_for_goes_on_at_once() {
        let (sender, receiver) = mpsc::channel();
        let _gather: Gather<u8> = Gather::new(0, move |all| sender.send(all.len()).unwrap());
        assert_eq!(receiver.try_recv().unwrap(), 0);
    }
}

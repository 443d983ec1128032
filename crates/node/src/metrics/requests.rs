//! `RequestMetrics`: how many requests of each kind and version came, and how long they took.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hdrhistogram::Histogram;
use wire::api::ApiKey;

/// Percentiles that are told, as Kafka's MBeans have them.
pub(super) const QUANTILES: [f64; 6] = [0.50, 0.75, 0.95, 0.98, 0.99, 0.999];

/// What is known of the requests of one key.
#[derive(Debug)]
struct OfKey {
    by_version: BTreeMap<i16, u64>,
    // Microseconds from arrival to answer, two significant digits.
    total_us: Histogram<u64>,
}

/// The state of one key at some moment.
#[derive(Debug)]
pub(super) struct KeySnapshot {
    pub(super) name: &'static str,
    pub(super) by_version: Vec<(i16, u64)>,
    pub(super) count: u64,
    /// Milliseconds at each of [`QUANTILES`].
    pub(super) total_ms: [f64; 6],
}

/// The requests of all keys.
#[derive(Debug, Default)]
pub(super) struct Requests(Mutex<BTreeMap<i16, Arc<Mutex<OfKey>>>>);

impl Requests {
    pub(super) fn begin(&self, key: ApiKey, version: i16) -> RequestTimer {
        let of_key = {
            let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match keys.get(&key.code()) {
                Some(known) => Some(known.clone()),
                None => Histogram::new(2).ok().map(|total_us| {
                    let new = Arc::new(Mutex::new(OfKey { by_version: BTreeMap::new(), total_us }));
                    keys.insert(key.code(), new.clone());
                    new
                }),
            }
        };
        RequestTimer { of_key, version, started: Instant::now() }
    }

    pub(super) fn snapshot(&self) -> Vec<KeySnapshot> {
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let snapshot = |(code, of_key): (i16, Arc<Mutex<OfKey>>)| {
            let of_key = of_key.lock().unwrap_or_else(PoisonError::into_inner);
            KeySnapshot {
                name: ApiKey::from_code(code).map_or("Unknown", ApiKey::name),
                by_version: of_key.by_version.iter().map(|(version, n)| (*version, *n)).collect(),
                count: of_key.total_us.len(),
                #[expect(clippy::cast_precision_loss, reason = "a percentile is an estimate")]
                total_ms: QUANTILES.map(|q| of_key.total_us.value_at_quantile(q) as f64 / 1000.0),
            }
        };
        keys.into_iter().map(snapshot).collect()
    }
}

/// Runs from the arrival of a request to its end.
#[derive(Debug)]
pub(crate) struct RequestTimer {
    of_key: Option<Arc<Mutex<OfKey>>>,
    version: i16,
    started: Instant,
}

impl RequestTimer {
    /// The request has ended.
    pub(crate) fn ended(&self) {
        let elapsed_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        if let Some(of_key) = &self.of_key {
            let mut of_key = of_key.lock().unwrap_or_else(PoisonError::into_inner);
            *of_key.by_version.entry(self.version).or_default() += 1;
            of_key.total_us.saturating_record(elapsed_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_key_and_version() {
        let requests = Requests::default();
        requests.begin(ApiKey::Fetch, 17).ended();
        requests.begin(ApiKey::Fetch, 17).ended();
        requests.begin(ApiKey::Fetch, 4).ended();
        requests.begin(ApiKey::Produce, 3).ended();
        let snapshot = requests.snapshot();
        let fetch = snapshot.iter().find(|it| it.name == "Fetch").unwrap();
        assert_eq!((fetch.count, fetch.by_version.as_slice()), (3, &[(4, 1), (17, 2)][..]));
        assert_eq!(snapshot.len(), 2);
    }
}

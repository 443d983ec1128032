//! `RequestMetrics`: how many requests of each kind and version came, and how long they took.
//!
//! One table, by API key; what is counted of a key is made when its first request comes. A request takes no lock.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use wire::api::ApiKey;

use super::Counter;
use super::histogram::Histogram;

/// Percentiles that are told, as Kafka's MBeans have them.
pub(super) const QUANTILES: [f64; 6] = [0.50, 0.75, 0.95, 0.98, 0.99, 0.999];

/// Versions that have a series. Any number can stand in a request; what no client knows (KIP-511 answers it all
/// the same) is counted among the requests of its key, but no series is made of it.
const VERSIONS: usize = 32;

/// What is counted of the requests of one key.
#[derive(Debug, Default)]
struct OfKey {
    by_version: [Counter; VERSIONS],
    /// Microseconds from arrival to answer.
    total_us: Histogram,
}

/// The state of one key at some moment.
#[derive(Debug)]
pub(super) struct KeySnapshot {
    pub(super) name: &'static str,
    pub(super) by_version: Vec<(usize, u64)>,
    pub(super) count: u64,
    /// Milliseconds at each of [`QUANTILES`].
    pub(super) total_ms: [f64; 6],
}

/// The requests of all keys.
#[derive(Debug)]
pub(super) struct Requests(Box<[OnceLock<Arc<OfKey>>]>);

impl Default for Requests {
    fn default() -> Self {
        let keys = ApiKey::ALL.iter().filter_map(|key| index(*key)).max();
        Self((0..=keys.unwrap_or(0)).map(|_| OnceLock::new()).collect())
    }
}

impl Requests {
    pub(super) fn begin(&self, key: ApiKey, version: i16) -> RequestTimer {
        let of_key = index(key).and_then(|at| self.0.get(at)).map(|slot| slot.get_or_init(Arc::default));
        RequestTimer { of_key: of_key.cloned(), version, started: Instant::now() }
    }

    pub(super) fn snapshot(&self) -> Vec<KeySnapshot> {
        let known = |key: &ApiKey| Some((key.name(), self.0.get(index(*key)?)?.get()?));
        let snapshot = |(name, of_key): (&'static str, &Arc<OfKey>)| {
            let times = of_key.total_us.counts();
            let by_version = of_key.by_version.iter().map(Counter::get).enumerate();
            KeySnapshot {
                name,
                by_version: by_version.filter(|(_, count)| *count > 0).collect(),
                count: times.total(),
                #[expect(clippy::cast_precision_loss, reason = "a percentile is an estimate")]
                total_ms: QUANTILES.map(|q| times.at_quantile(q) as f64 / 1000.0),
            }
        };
        ApiKey::ALL.iter().filter_map(known).map(snapshot).collect()
    }
}

fn index(key: ApiKey) -> Option<usize> {
    usize::try_from(key.code()).ok()
}

/// Runs from the arrival of a request to its end.
#[derive(Debug)]
pub(crate) struct RequestTimer {
    of_key: Option<Arc<OfKey>>,
    version: i16,
    started: Instant,
}

impl RequestTimer {
    /// The request has ended.
    pub(crate) fn ended(&self) {
        let Some(of_key) = &self.of_key else { return };
        of_key.total_us.record(u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX));
        let version = usize::try_from(self.version).ok();
        if let Some(counter) = version.and_then(|version| of_key.by_version.get(version)) {
            counter.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_key_and_version() {
        let requests = Requests::default();
        assert!(requests.snapshot().is_empty(), "series come with the first request");
        requests.begin(ApiKey::Fetch, 17).ended();
        requests.begin(ApiKey::Fetch, 17).ended();
        requests.begin(ApiKey::Fetch, 4).ended();
        requests.begin(ApiKey::Produce, 3).ended();
        let snapshot = requests.snapshot();
        let fetch = snapshot.iter().find(|it| it.name == "Fetch").unwrap();
        assert_eq!((fetch.count, fetch.by_version.as_slice()), (3, &[(4, 1), (17, 2)][..]));
        assert_eq!(snapshot.len(), 2);
    }

    #[test]
    fn every_key_and_every_version_that_is_served_has_its_place() {
        let requests = Requests::default();
        for key in ApiKey::ALL {
            for version in key.versions().chain([0]) {
                requests.begin(*key, version).ended();
            }
        }
        let snapshot = requests.snapshot();
        assert_eq!(snapshot.len(), ApiKey::ALL.len());
        for (key, told) in ApiKey::ALL.iter().zip(snapshot) {
            assert_eq!(told.name, key.name());
            assert_eq!(told.by_version.len(), key.versions().count().max(1), "{key:?}");
        }
    }

    #[test]
    fn made_up_versions_make_no_series() {
        let requests = Requests::default();
        for version in i16::MIN..=i16::MAX {
            requests.begin(ApiKey::ApiVersions, version).ended();
        }
        let snapshot = requests.snapshot();
        assert_eq!((snapshot[0].by_version.len(), snapshot[0].count), (VERSIONS, 1 << 16));
    }
}

//! How fast connections come from each address (`connection_creation_rate` of IPs, KIP-612). One that comes too fast is
//! not counted: its address may have the next one as soon as it would have without it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use super::arrivals::{Arrivals, RateWindows};

/// Addresses whose arrivals are remembered. Of more, those that came longest ago are forgotten.
const MOST: usize = 10_000;

/// The rate that stands for none, as in Kafka.
const UNLIMITED: usize = i32::MAX as usize;

/// How many connections a second there may be from each address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressRates {
    /// From every address without a rate of its own; none: no limit.
    pub default: Option<usize>,
    /// From single addresses, in their canonical form.
    pub own: HashMap<IpAddr, usize>,
}

impl AddressRates {
    /// The rate of `address`; none: no limit.
    pub(super) fn of(&self, address: IpAddr) -> Option<usize> {
        self.own.get(&address).copied().or(self.default).filter(|rate| *rate < UNLIMITED)
    }
}

/// The arrivals from each address that has a rate.
#[derive(Debug, Default)]
pub(super) struct AddressArrivals(HashMap<IpAddr, Arrivals>);

impl AddressArrivals {
    /// Counts an arrival from `address` at `now` unless it comes too fast, and tells how much too early it comes: zero, or
    /// at most a window.
    pub(super) fn arrived(
        &mut self,
        now: Duration,
        address: IpAddr,
        limit: usize,
        shape: RateWindows,
    ) -> Duration {
        if self.0.len() >= MOST && !self.0.contains_key(&address) {
            self.forget_half();
        }
        let arrivals = self.0.entry(address).or_default();
        let early = arrivals.arrived(now, limit, shape);
        if !early.is_zero() {
            arrivals.take_back();
        }
        early
    }

    /// Forgets the addresses that have no rate any more.
    pub(super) fn retain(&mut self, rates: &AddressRates) {
        self.0.retain(|address, _| rates.of(*address).is_some());
    }

    /// So that a flood from ever new addresses costs each of them little.
    fn forget_half(&mut self) {
        let mut last: Vec<_> = self.0.values().map(Arrivals::last).collect();
        last.sort_unstable();
        let middle = last.get(last.len() / 2).copied().unwrap_or_default();
        self.0.retain(|_, arrivals| arrivals.last() > middle);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    fn arrive(arrivals: &mut AddressArrivals, at_ms: u64, from: u32) -> u128 {
        let now = Duration::from_millis(at_ms);
        arrivals.arrived(now, address(from), 1, RateWindows::default()).as_millis()
    }

    #[test]
    fn an_address_has_its_own_rate_or_that_of_all_others() {
        let own = HashMap::from([(address(1), 5), (address(2), UNLIMITED)]);
        let rates = AddressRates { default: Some(3), own };
        assert_eq!([1, 2, 3].map(|number| rates.of(address(number))), [Some(5), None, Some(3)]);
        assert_eq!(AddressRates::default().of(address(1)), None);
    }

    #[test]
    fn each_address_goes_by_itself_and_who_is_turned_away_is_not_counted() {
        let mut arrivals = AddressArrivals::default();
        for _ in 0..10 {
            assert_eq!(arrive(&mut arrivals, 0, 1), 0);
        }
        assert_eq!(arrive(&mut arrivals, 0, 1), 1000);
        assert_eq!(arrive(&mut arrivals, 0, 2), 0);
        for _ in 0..50 {
            assert_eq!(arrive(&mut arrivals, 10_500, 1), 500, "however often it tries");
        }
        assert_eq!(arrive(&mut arrivals, 11_000, 1), 0);
    }

    #[test]
    fn no_more_addresses_are_remembered_than_there_is_room_for() {
        let mut arrivals = AddressArrivals::default();
        let most = u32::try_from(MOST).unwrap();
        for number in 0..3 * most {
            arrive(&mut arrivals, u64::from(number), number);
            assert!(arrivals.0.len() <= MOST);
        }
        assert!(arrivals.0.contains_key(&address(3 * most - 1)) && !arrivals.0.contains_key(&address(0)));
        arrivals.retain(&AddressRates { default: None, own: HashMap::from([(address(3 * most - 1), 1)]) });
        assert_eq!(arrivals.0.len(), 1);
    }
}

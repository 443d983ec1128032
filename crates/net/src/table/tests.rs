use std::future::Future;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn origin(name: &str) -> Origin {
    Origin { listener: Arc::from(name), protected: false, counters: Arc::default() }
}

/// Enters if that is possible without waiting.
fn enter(table: &Arc<ConnectionTable>, origin: &Origin, address: IpAddr) -> Option<Result<Seat, Refused>> {
    match pin!(table.enter(origin, address)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

#[test]
fn an_ipv4_address_counts_the_same_in_its_ipv6_form() {
    let limits = ConnectionLimits { per_ip: 1, ..ConnectionLimits::default() };
    let (table, origin) = (ConnectionTable::new(limits), origin("A"));
    let _first = enter(&table, &origin, HERE).unwrap().unwrap();
    let mapped = IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
    let refused = enter(&table, &origin, mapped).unwrap().err();
    assert_eq!(refused, Some(Refused::Address { address: HERE, limit: 1 }));
    assert!(enter(&table, &origin, Ipv6Addr::LOCALHOST.into()).unwrap().is_ok());
}

#[test]
fn an_override_replaces_the_limit_of_its_address_in_both_directions() {
    let other = IpAddr::from([10, 0, 0, 1]);
    let limits = ConnectionLimits {
        per_ip: 1,
        per_ip_overrides: HashMap::from([(HERE, 2), (other, 0)]),
        ..ConnectionLimits::default()
    };
    let (table, origin) = (ConnectionTable::new(limits), origin("A"));
    let seats = [(); 2].map(|()| enter(&table, &origin, HERE).unwrap().unwrap());
    assert!(enter(&table, &origin, HERE).unwrap().is_err());
    assert!(enter(&table, &origin, other).unwrap().is_err());
    drop(seats);
    assert!(enter(&table, &origin, HERE).unwrap().is_ok());
}

#[test]
fn refusals_leave_no_count_behind() {
    let limits = ConnectionLimits { per_ip: 0, ..ConnectionLimits::default() };
    let (table, origin) = (ConnectionTable::new(limits), origin("A"));
    for _ in 0..1000 {
        assert!(enter(&table, &origin, HERE).unwrap().is_err());
    }
    assert!(table.is_empty());
    assert_eq!(origin.counters.connections_refused.get(), 1000);
    assert_eq!(origin.counters.connections_opened.get(), 0);
    let state = table.lock();
    assert!(state.per_ip.is_empty() && state.per_listener.is_empty());
}

#[tokio::test]
async fn raised_limits_let_those_in_who_wait() {
    let limits = ConnectionLimits { total: 0, ..ConnectionLimits::default() };
    let (table, origin) = (ConnectionTable::new(limits), origin("A"));
    assert!(enter(&table, &origin, HERE).is_none());
    let waiting = {
        let (table, origin) = (Arc::clone(&table), origin.clone());
        tokio::spawn(async move { table.enter(&origin, HERE).await })
    };
    tokio::task::yield_now().await;
    table.set_limits(ConnectionLimits::default());
    assert_eq!(waiting.await.unwrap().map(|seat| seat.index()), Ok(0));
    table.emptied().await;
}

#[test]
fn the_limit_of_one_listener_holds_up_no_other() {
    let limits = ConnectionLimits {
        per_listener: HashMap::from([(Arc::from("A"), 1)]),
        ..ConnectionLimits::default()
    };
    let table = ConnectionTable::new(limits);
    let (a, b) = (origin("A"), origin("B"));
    let _first = enter(&table, &a, HERE).unwrap().unwrap();
    assert!(enter(&table, &a, HERE).is_none());
    assert!(enter(&table, &b, HERE).unwrap().is_ok());
}

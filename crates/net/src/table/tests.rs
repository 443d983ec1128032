use std::future::Future;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Limits under which the listener `B` is protected.
fn protecting_b(total: usize) -> ConnectionLimits {
    ConnectionLimits { total, protected: Some(Arc::from("B")), ..ConnectionLimits::default() }
}

fn origin(name: &str) -> Origin {
    Origin { listener: Arc::from(name), counters: Arc::default() }
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

#[tokio::test(start_paused = true)]
async fn connections_that_come_faster_than_they_may_are_accepted_more_slowly() {
    let limits = ConnectionLimits { rate: 2, ..protecting_b(usize::MAX) };
    let table = ConnectionTable::new(limits.clone());
    let took = async |origin: Origin, count: usize| {
        let start = Instant::now();
        for _ in 0..count {
            drop(table.enter(&origin, HERE).await);
        }
        (start.elapsed(), origin.counters.accept_throttle_ms.get())
    };
    // Ten seconds' worth may come at once.
    assert_eq!(took(origin("A"), 20).await, (Duration::ZERO, 0));
    let (time, told_ms) = took(origin("A"), 4).await;
    assert!(time >= Duration::from_secs(1) && time <= Duration::from_secs(4), "{time:?}");
    assert!(told_ms >= 1_000, "{told_ms}");
    // The protected listener goes by its own rate only, and its connections count for no other.
    assert_eq!(took(origin("B"), 1_000).await.0, Duration::ZERO);
    let rate_per_listener = HashMap::from([(Arc::from("B"), 1)]);
    table.set_limits(ConnectionLimits { rate_per_listener, ..limits });
    assert_eq!(took(origin("B"), 10).await.0, Duration::ZERO);
    assert!(took(origin("B"), 2).await.0 >= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_rate_that_is_changed_holds_from_the_next_connection_on() {
    let table = ConnectionTable::new(ConnectionLimits::default());
    for _ in 0..100 {
        assert!(enter(&table, &origin("A"), HERE).is_some());
    }
    table.set_limits(ConnectionLimits { rate: 1, ..ConnectionLimits::default() });
    assert!(enter(&table, &origin("A"), HERE).is_none());
    table.set_limits(ConnectionLimits::default());
    assert!(enter(&table, &origin("A"), HERE).is_some());
}

/// Whether the connection was told to make room.
fn is_evicted(seat: &Seat) -> bool {
    seat.entry.evicted.load(Ordering::Relaxed)
}

/// Seats that were last used in their order.
async fn seats_in_order(table: &Arc<ConnectionTable>, origin: &Origin, count: usize) -> Vec<Seat> {
    let mut seats = Vec::new();
    for _ in 0..count {
        seats.push(enter(table, origin, HERE).unwrap().unwrap());
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    seats
}

#[tokio::test(start_paused = true)]
async fn a_total_that_is_lowered_closes_the_least_recently_used() {
    let table = ConnectionTable::new(protecting_b(usize::MAX));
    let brokers = seats_in_order(&table, &origin("B"), 2).await;
    let clients = seats_in_order(&table, &origin("A"), 4).await;
    clients[0].touch();
    table.set_limits(protecting_b(4));
    assert_eq!(clients.iter().map(is_evicted).collect::<Vec<_>>(), [false, true, true, false]);
    // Nobody is closed for one who is on his way out already.
    table.set_limits(protecting_b(4));
    assert_eq!(clients.iter().filter(|seat| is_evicted(seat)).count(), 2);
    table.set_limits(protecting_b(0));
    assert!(clients.iter().all(is_evicted));
    assert!(!brokers.iter().any(is_evicted), "the protected listener keeps its connections");
}

/// KAFKA-7730.
#[tokio::test(start_paused = true)]
async fn each_connection_of_the_protected_listener_takes_another_place() {
    let table = ConnectionTable::new(protecting_b(3));
    let clients = seats_in_order(&table, &origin("A"), 3).await;
    assert!(enter(&table, &origin("A"), HERE).is_none());
    let _brokers = seats_in_order(&table, &origin("B"), 2).await;
    assert_eq!(clients.iter().map(is_evicted).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn the_protected_listener_has_its_own_limit_all_the_same() {
    let per_listener = HashMap::from([(Arc::from("B"), 1)]);
    let table = ConnectionTable::new(ConnectionLimits { per_listener, ..protecting_b(1) });
    let _client = enter(&table, &origin("A"), HERE).unwrap().unwrap();
    let _broker = enter(&table, &origin("B"), HERE).unwrap().unwrap();
    assert!(enter(&table, &origin("B"), HERE).is_none());
}

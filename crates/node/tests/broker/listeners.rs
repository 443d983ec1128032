//! A broker with several listeners: what goes over which, and what is told to whom.

use metadata::store::{Blocking, Stat, Store};
use metadata::znode::broker::{self, BrokerRegistration};
use node::config::{EndPoint, SecurityProtocol};
use wire::messages::{MetadataRequest, MetadataResponse, UpdateMetadataRequest};
use wire::types::{BrokerId, Millis};

use crate::controller::{register_another, until};
use crate::harness::{Node, answer, frame};

const LISTENERS: [(&str, &str); 3] = [
    ("broker.id", "0"),
    ("listeners", "PLAINTEXT://localhost:9092,CONTROL://localhost:9094"),
    ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT"),
];

/// KIP-291.
#[test]
fn a_controller_talks_to_brokers_over_the_control_plane_if_it_has_one() {
    let control = ("control.plane.listener.name", "control");
    for (more, expected) in [(None, "localhost:9092"), (Some(control), "localhost:9094")] {
        let settings: Vec<_> = LISTENERS.into_iter().chain(more).collect();
        let node = Node::start(&settings);
        // The other broker is reached where broker 0 is: it has the same registration.
        let store = node.store();
        register_another(&store);
        until(&node, "an update", || node.peers.count::<UpdateMetadataRequest>() > 0);
        assert_eq!(node.peers.take::<UpdateMetadataRequest>().address, expected);
    }
}

fn end_point(listener: &str, host: &str, port: u16) -> EndPoint {
    EndPoint {
        listener_name: listener.to_owned(),
        host: host.to_owned(),
        port,
        security_protocol: SecurityProtocol::Plaintext,
    }
}

/// Listener, host and port of each address that broker 0 has registered.
fn registered(node: &Node) -> (Vec<(String, String, i32)>, Stat) {
    let (data, stat) = Blocking::new(&node.store()).get(&broker::path(BrokerId(0))).unwrap();
    let value = BrokerRegistration::decode(data.as_deref()).unwrap();
    (value.endpoints.into_iter().map(|it| (it.listener_name, it.host, it.port)).collect(), stat)
}

fn is_registered(node: &Node, endpoints: &[EndPoint]) -> bool {
    let expected = endpoints.iter().map(|it| (it.listener_name.clone(), it.host.clone(), i32::from(it.port)));
    registered(node).0.into_iter().eq(expected)
}

/// What clients of a listener are told of broker 0.
fn told(node: &Node, listener: &str) -> Option<(String, i32)> {
    let request = MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() };
    let response: MetadataResponse = answer(&node.submit_over(listener, frame(9, &request)), 9);
    response.brokers.first().map(|it| (it.host.to_string(), it.port))
}

/// KIP-226.
#[test]
fn a_broker_that_is_reached_elsewhere_tells_so_without_a_new_broker_epoch() {
    let node = Node::start(&[]);
    let (_, before) = registered(&node);
    let moved = [end_point("PLAINTEXT", "elsewhere", 9093), end_point("EXTRA", "localhost", 9095)];
    node.broker.advertise(&moved);
    until(&node, "a registration", || is_registered(&node, &moved));
    let (_, after) = registered(&node);
    assert_eq!((after.czxid, after.ephemeral_owner), (before.czxid, before.ephemeral_owner));
    until(&node, "clients that know it", || told(&node, "EXTRA") == Some(("localhost".to_owned(), 9095)));
    assert_eq!(told(&node, "PLAINTEXT"), Some(("elsewhere".to_owned(), 9093)));
    // Nothing is written for what is known.
    node.broker.advertise(&moved);
    node.expire_session();
    until(&node, "another registration", || {
        let found = Blocking::new(&node.store()).find(&broker::path(BrokerId(0))).unwrap();
        found.is_some_and(|(_, stat)| stat.czxid != before.czxid)
    });
    assert!(is_registered(&node, &moved), "the next session registers the same");
}

#[test]
fn an_address_of_another_broker_is_not_told() {
    let node = Node::start(&[]);
    let (_, before) = registered(&node);
    let store = node.store();
    let other = BrokerRegistration {
        endpoints: vec![broker::Endpoint {
            listener_name: "OTHER".to_owned(),
            host: "taken".to_owned(),
            port: 9092,
            security_protocol: broker::SecurityProtocol::Plaintext,
        }],
        rack: None,
        jmx_port: -1,
        timestamp_ms: Millis(0),
    };
    Blocking::new(&store).multi(other.register(BrokerId(1), 5)).unwrap();
    node.broker.advertise(&[end_point("PLAINTEXT", "taken", 9092)]);
    let free = [end_point("PLAINTEXT", "taken", 9093)];
    node.broker.advertise(&free);
    until(&node, "a registration", || is_registered(&node, &free));
    assert_eq!(registered(&node).1.version, before.version + 1, "the first was never written");
    assert!(store.session_id().is_some());
}

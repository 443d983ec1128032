//! A broker with several listeners: what goes over which, and what is told to whom.

use wire::messages::UpdateMetadataRequest;

use crate::controller::{register_another, until};
use crate::harness::Node;

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

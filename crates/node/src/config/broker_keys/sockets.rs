//! Listeners, connections, request queues and threads.

use crate::config::definition::Scope::{ClusterWide, PerBroker, ReadOnly};
use crate::config::definition::Valid::{Any, AtLeast};
use crate::config::definition::{Definition, set, unset};
use crate::config::value::Kind::{Int, Long, String};

/// The keys, in name order.
pub(super) const KEYS: &[Definition] = &[
    unset("advertised.listeners", String, Any, PerBroker),
    set("background.threads", Int, "10", AtLeast(1), ClusterWide),
    set("connections.max.idle.ms", Long, "600000", Any, ReadOnly),
    unset("control.plane.listener.name", String, Any, ReadOnly),
    set("controller.socket.timeout.ms", Int, "30000", Any, ReadOnly),
    unset("early.start.listeners", String, Any, ReadOnly),
    unset("inter.broker.listener.name", String, Any, ReadOnly),
    set(
        "listener.security.protocol.map",
        String,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        Any,
        PerBroker,
    ),
    set("listeners", String, "PLAINTEXT://:9092", Any, PerBroker),
    set("max.connection.creation.rate", Int, "2147483647", AtLeast(0), ClusterWide),
    set("max.connections", Int, "2147483647", AtLeast(0), ClusterWide),
    set("max.connections.per.ip", Int, "2147483647", AtLeast(0), ClusterWide),
    set("max.connections.per.ip.overrides", String, "", Any, ClusterWide),
    set("num.io.threads", Int, "8", AtLeast(1), ClusterWide),
    set("num.network.threads", Int, "3", AtLeast(1), ClusterWide),
    set("queued.max.request.bytes", Long, "-1", Any, ReadOnly),
    set("queued.max.requests", Int, "500", AtLeast(1), ReadOnly),
    set("request.timeout.ms", Int, "30000", Any, ReadOnly),
    set("socket.connection.setup.timeout.max.ms", Long, "30000", Any, ReadOnly),
    set("socket.connection.setup.timeout.ms", Long, "10000", Any, ReadOnly),
    set("socket.listen.backlog.size", Int, "50", AtLeast(1), ReadOnly),
    set("socket.receive.buffer.bytes", Int, "102400", Any, ReadOnly),
    set("socket.request.max.bytes", Int, "104857600", AtLeast(1), ReadOnly),
    set("socket.send.buffer.bytes", Int, "102400", Any, ReadOnly),
];

//! Very many connections that do nothing: what they cost in memory.

use std::net::TcpStream;

use anyhow::{Context, Result};
use interop::broker::{Broker, Kind};
use interop::raw::Connection;
use kafka_protocol::messages::ApiVersionsRequest;

use crate::contender;
use crate::figures::{Figures, Goal, Row};

/// As many as are opened; more than one process may need `ulimit -n` raised.
const CONNECTIONS: usize = 10_000;

const MEMORY: Row =
    Row { name: "resident memory with 10,000 idle connections", unit: "MB", goal: Goal::AtMost(200.0) };

/// Opens them, each with a first request as clients send it, and looks at the broker's memory.
pub(crate) fn measure(kind: Kind, figures: &mut Figures) -> Result<()> {
    let mut broker = Broker::start(kind, contender::options())?;
    let address = broker.bootstrap();
    let mut open = Vec::with_capacity(CONNECTIONS);
    for number in 0..CONNECTIONS {
        let stream = TcpStream::connect(&address).with_context(|| format!("connection {number}"))?;
        let mut connection = Connection::over(stream)?;
        connection.call(0, &ApiVersionsRequest::default())?;
        open.push(connection);
    }
    figures.add(MEMORY, kind, broker.process()?.resident_bytes()? as f64 / 1e6);
    drop(open);
    broker.stop()
}

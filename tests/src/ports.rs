//! Free loopback ports, below the range that the system gives to outgoing connections.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, bail};

const FIRST: u16 = 18_000;
const COUNT: u16 = 12_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port on 127.0.0.1 that nobody listens on now and that this process has not given out before.
///
/// # Errors
/// When no port of the range is free.
pub fn free() -> Result<u16> {
    let start = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap_or(0);
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (start.wrapping_mul(37).wrapping_add(step)) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port between {FIRST} and {}", FIRST + COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ports_differ_and_a_taken_port_is_passed_over() {
        let first = free().unwrap();
        let holder = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        let second = free().unwrap();
        assert_ne!(first, second);
        drop(holder);
    }
}

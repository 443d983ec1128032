//! The allocator of the binary, and the return of freed memory to the system.
//!
//! The allocator keeps what was freed for a while, and looks at it only with later calls. A broker that has
//! decompressed a few large batches and then rests would keep their memory, so it is reminded.

use std::time::Duration;

use server::ticker::Ticker;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often freed memory is looked at.
const PERIOD: Duration = Duration::from_secs(2);

/// Gives freed memory back to the system from time to time, until the returned value is dropped.
///
/// # Errors
/// If the system has no thread to give.
pub(crate) fn give_back_freed_memory() -> std::io::Result<Ticker> {
    Ticker::start("allocator", || {
        give_back();
        Some(PERIOD)
    })
}

#[expect(unsafe_code, reason = "the allocator's interface is C")]
fn give_back() {
    // SAFETY: may be called by any thread at any time; it touches free memory only.
    unsafe { libmimalloc_sys::mi_collect(false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_use_stays_what_it_was() {
        let held: Vec<Vec<u8>> = (0..100_u8).map(|i| vec![i; 10_000]).collect();
        drop((0..100_u8).map(|i| vec![i; 100_000]).collect::<Vec<_>>());
        let ticker = give_back_freed_memory().unwrap();
        give_back();
        ticker.stop();
        assert!((0_u8..).zip(&held).all(|(i, bytes)| bytes.iter().all(|byte| *byte == i)));
    }
}

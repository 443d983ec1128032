//! Hostile bytes: every length and count of every message in every version, falsified one at a time, is
//! refused, and nothing like the memory it claims is taken.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has failed")]
#![allow(unsafe_code, reason = "an allocator that watches is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::Bytes;
use wire::api::ApiKey;
use wire::messages::{Kind, decode_any, random_any};
use wire::random::Rng;
use wire::{DecodeError, Decoder, Encoder};

thread_local! {
    /// The largest allocation of this thread since it was last reset.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which notes the largest request.
struct Watching;

// SAFETY: every call goes to the system's allocator with the same arguments; noting a size in a thread-local
// cell that has no destructor neither allocates nor unwinds.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.with(|largest| largest.set(largest.get().max(size)));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// A message of up to some kilobytes never needs an allocation above this.
const MOST: usize = 1 << 20;

fn each_message(mut check: impl FnMut(i16, i16, Kind, &mut Rng)) {
    for key in ApiKey::ALL.iter().filter(|key| key.is_served()) {
        for version in key.versions() {
            for kind in [Kind::Request, Kind::Response] {
                for seed in 0..4 {
                    check(key.code(), version, kind, &mut Rng::new(seed));
                }
            }
        }
    }
}

/// Reads and gives the error, if any, and the largest allocation meanwhile.
fn read(key: i16, version: i16, kind: Kind, bytes: Bytes) -> (Option<DecodeError>, usize) {
    LARGEST.set(0);
    let error = decode_any(key, version, kind, &mut Decoder::new(bytes)).err();
    (error, LARGEST.get())
}

#[test]
fn the_watch_sees_allocations() {
    LARGEST.set(0);
    drop(std::hint::black_box(Vec::<u8>::with_capacity(MOST + 1)));
    assert_eq!(LARGEST.get(), MOST + 1);
}

#[test]
fn falsified_lengths_are_refused_without_taking_memory() {
    let mut falsified = 0;
    each_message(|key, version, kind, rng| {
        let mut dst = Encoder::new();
        random_any(key, version, kind, rng).unwrap().encode(&mut dst, version).unwrap();
        let positions = dst.length_positions().to_vec();
        let bytes = dst.into_bytes();
        for position in positions {
            let claims: &[&[u8]] = match (position.flexible, position.end - position.start) {
                (true, _) => &[&[0xff, 0xff, 0xff, 0xff, 0x0f], &[0xff, 0xff, 0xff, 0xff, 0x07]],
                (false, 2) => &[&[0x7f, 0xff], &[0x80, 0x00]],
                (false, _) => &[&[0x7f, 0xff, 0xff, 0xff], &[0x80, 0, 0, 0], &[0, 0x7f, 0xff, 0xff]],
            };
            for claim in claims {
                let hostile = [&bytes[..position.start], claim, &bytes[position.end..]].concat();
                let (error, largest) = read(key, version, kind, hostile.into());
                let about = format!("key {key} v{version} {kind:?}, {position:?}: {error:?}");
                // Within a tagged field the size of the field is refused first.
                assert!(error.is_some(), "{about}");
                assert!(largest < MOST, "{about}: {largest} bytes at once");
                falsified += 1;
            }
        }
    });
    assert!(falsified > 10_000, "only {falsified}");
}

#[test]
fn elements_take_memory_only_as_they_are_read() {
    // As many topic names as the frame could hold; already the first one is refused.
    let count = 1_000_000;
    let mut dst = Encoder::new();
    dst.put_i32(count);
    dst.put_i16(-2);
    dst.put_slice(&vec![0; 2 * count as usize]);
    let (error, largest) = read(ApiKey::Metadata.code(), 0, Kind::Request, dst.into_bytes());
    assert_eq!(error, Some(DecodeError::NegativeLength(-2)));
    assert!(largest < MOST, "{largest} bytes at once");
}

#[test]
fn a_message_cut_anywhere_is_refused() {
    each_message(|key, version, kind, rng| {
        let mut dst = Encoder::new();
        random_any(key, version, kind, rng).unwrap().encode(&mut dst, version).unwrap();
        let bytes = dst.into_bytes();
        let step = 1 + bytes.len() / 200;
        for len in (0..bytes.len()).step_by(step) {
            let (error, largest) = read(key, version, kind, bytes.slice(..len));
            assert!(error.is_some(), "key {key} v{version} {kind:?}: {len} of {} bytes", bytes.len());
            assert!(largest < MOST, "{largest} bytes at once");
        }
    });
}

#[test]
fn bytes_changed_anywhere_are_read_or_refused_without_taking_memory() {
    each_message(|key, version, kind, rng| {
        let mut dst = Encoder::new();
        random_any(key, version, kind, rng).unwrap().encode(&mut dst, version).unwrap();
        let mut bytes = dst.into_bytes().to_vec();
        for _ in 0..64.min(bytes.len()) {
            let at = rng.below(bytes.len());
            let before = std::mem::replace(&mut bytes[at], rng.i8().cast_unsigned());
            let (_, largest) = read(key, version, kind, Bytes::copy_from_slice(&bytes));
            assert!(largest < MOST, "key {key} v{version} {kind:?}: {largest} bytes at once");
            if rng.bool() {
                bytes[at] = before;
            }
        }
    });
}

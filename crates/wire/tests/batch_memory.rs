//! What checking a batch allocates, and that a stream that expands without end is stopped in time.
//!
//! The allocator counts for the thread that asks; memory of the C library of zstd is not seen.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may stop")]
#![expect(unsafe_code, reason = "a counting allocator has to implement an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::Bytes;
use wire::batch::validate::{
    AnalyzeRules, AppendOrigin, ProduceRules, TopicCompression, analyze, validate_produce,
};
use wire::batch::{Batch, BatchBuilder, CompressionType, Limits, TimestampType};
use wire::types::Millis;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(size: usize) {
    // Threads that are ending no longer count.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
}

// SAFETY: every call goes to the system's allocator with the arguments it came with; counting touches only
// plain thread-local numbers, which need no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(new_size);
        // SAFETY: `pointer` came from `System` with this layout.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The allocations of `run`, and the size of the largest one.
fn allocations(run: impl FnOnce()) -> (usize, usize) {
    LARGEST.set(0);
    let before = ALLOCATIONS.get();
    run();
    (ALLOCATIONS.get() - before, LARGEST.get())
}

fn rules(max_decompressed_bytes: usize) -> ProduceRules {
    ProduceRules {
        origin: AppendOrigin::Client,
        compression: TopicCompression::Producer,
        zstd_allowed: true,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: i64::MAX,
        compacted: true,
        max_message_bytes: 10 << 20,
        limits: Limits { max_decompressed_bytes },
    }
}

fn check(bytes: &Bytes, rules: &ProduceRules) -> bool {
    let analyze_rules = AnalyzeRules { origin: rules.origin, max_message_bytes: rules.max_message_bytes };
    let analysis = analyze(bytes.clone(), &analyze_rules).unwrap().unwrap();
    validate_produce(analysis.only_batch().unwrap(), rules, Millis(0)).is_ok()
}

fn batch(codec: CompressionType, records: i64, value_len: usize) -> Batch {
    let mut builder = BatchBuilder::new(codec.into());
    for at in 0..records {
        builder.append(Millis(at), Some(&at.to_be_bytes()), Some(&vec![at as u8; value_len]));
    }
    builder.build().unwrap()
}

#[test]
fn checking_a_batch_allocates_nothing_once_the_thread_is_warm() {
    for codec in CompressionType::ALL {
        let bytes = batch(codec, 2000, 100).bytes;
        // Shares the memory of a request from then on.
        drop(bytes.clone());
        assert!(check(&bytes, &rules(1 << 20)));
        let (count, _) = allocations(|| assert!(check(&bytes, &rules(1 << 20))));
        assert_eq!(count, 0, "{codec:?}");
    }
}

#[test]
fn a_bomb_is_stopped_at_the_limit_and_takes_no_more_memory_than_a_chunk() {
    for codec in CompressionType::ALL.into_iter().skip(1) {
        let bytes = batch(codec, 1, 8 << 20).bytes;
        let limit = 1_500_000;
        let (_, largest) = allocations(|| assert!(!check(&bytes, &rules(limit))));
        assert!(largest <= 128 << 10, "{codec:?} took {largest}");

        let all_at_once = Batch::parse(&bytes).unwrap();
        let (_, largest) = allocations(|| {
            assert!(all_at_once.decompressed(Limits { max_decompressed_bytes: limit }).is_err());
        });
        assert!(largest <= limit, "{codec:?} took {largest}");
    }
}

//! Fuzz target: see `fuzz_bodies::protocol::frames`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_bodies::protocol::frames(input));

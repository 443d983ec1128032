//! Fuzz target: see `fuzz_bodies::protocol::requests`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_bodies::protocol::requests(input));

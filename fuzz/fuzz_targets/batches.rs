//! Fuzz target: see `fuzz_bodies::records::batches`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_bodies::records::batches(input));

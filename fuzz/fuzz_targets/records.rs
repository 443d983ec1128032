//! Fuzz target: see `fuzz_bodies::records::records`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_bodies::records::records(input));

//! Fuzz target: see `fuzz_bodies::internal::offsets_records`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_bodies::internal::offsets_records(input));

//! Fuzz target: see `fuzz_bodies::files::checkpoints`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_bodies::files::checkpoints(input));

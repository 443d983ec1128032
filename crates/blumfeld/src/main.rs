//! The `blumfeld` binary.
fn main() {}

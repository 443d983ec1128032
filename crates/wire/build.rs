//! Generates the messages from the definitions in `schema/`.

#[path = "generator/mod.rs"]
mod generator;

use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=schema");
    println!("cargo::rerun-if-changed=generator");
    println!("cargo::rerun-if-changed=build.rs");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(|error| error.to_string())?);
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|error| error.to_string())?);
    let apis = generator::read_schema(&root.join("schema"))?;
    let code = generator::emit(&apis);
    fs::write(out.join("messages.rs"), code).map_err(|error| format!("writing messages.rs: {error}"))
}

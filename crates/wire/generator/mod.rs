//! The generator of the protocol's messages: definitions in, Rust out.
//!
//! `parse` reads `schema/*.txt` (notation: `schema/README.md`) into the `model`; `emit` writes structures,
//! documentation and defaults; `emit_decode`, `emit_encode` and `emit_random` write one function each per
//! structure. Whatever depends on the version only is decided here where it can be, so that the generated
//! functions compare the version as rarely as possible.

mod emit;
mod emit_decode;
mod emit_encode;
mod emit_random;
mod model;
mod parse;

use std::fs;
use std::path::Path;

pub(crate) use emit::emit;
#[cfg(test)]
pub(crate) use emit::snake_case;
pub(crate) use model::Api;

/// Reads all definitions of a directory, ordered by key.
///
/// # Errors
/// Names the file, the line and what is wrong with it.
pub(crate) fn read_schema(directory: &Path) -> Result<Vec<Api>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut apis = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let text = fs::read_to_string(&path).map_err(failed)?;
            apis.push(parse::api(&text).map_err(|error| format!("{}: {error}", path.display()))?);
        }
    }
    apis.sort_by_key(|api| api.key);
    Ok(apis)
}

//! The generator: its own tests, and what it makes of the definitions of this crate.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has failed")]

#[path = "../generator/mod.rs"]
mod generator;

use std::path::Path;

fn schema() -> Vec<generator::Api> {
    generator::read_schema(&Path::new(env!("CARGO_MANIFEST_DIR")).join("schema")).unwrap()
}

#[test]
fn the_same_definitions_give_the_same_code() {
    assert_eq!(generator::emit(&schema()), generator::emit(&schema()));
}

#[test]
fn apis_come_in_the_order_of_their_keys_and_files_are_named_after_them() {
    let apis = schema();
    let keys: Vec<_> = apis.iter().map(|api| api.key).collect();
    assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
    for api in apis {
        let name = generator::snake_case(&api.name);
        let file = format!("{}/schema/k{:02}_{name}.txt", env!("CARGO_MANIFEST_DIR"), api.key);
        assert!(Path::new(&file).exists(), "{file}");
    }
}

#[test]
fn an_error_names_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.txt");
    std::fs::write(&path, "api 1 Fetch\nversions 0-1\n\nrequest\n  Topics: []nothing\nresponse\n").unwrap();
    let error = generator::read_schema(dir.path()).unwrap_err();
    assert!(error.ends_with("bad.txt: line 5: unknown type: \"Topics: []nothing\""), "{error}");
}

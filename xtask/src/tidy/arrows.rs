//! Arrows between crates: which crate may use which, and where tokio, IO and clocks may be.
//!
//! The table below is the drawing in `ARCHITECTURE.md`; a crate may also use what lies below a crate that it
//! may use. Manifests are read line by line: section headers and keys are all that matters.

use super::{Finding, SourceFile};

/// Each crate of the product with the crates directly below it.
const BELOW: [(&str, &[&str]); 9] = [
    ("wire", &[]),
    ("kernel", &["wire"]),
    ("storage", &["kernel"]),
    ("metadata", &["wire"]),
    ("net", &["wire"]),
    ("node", &["kernel", "storage", "metadata"]),
    ("server", &["node", "net", "metadata"]),
    ("blumfeld", &["server", "node", "net", "metadata", "storage", "kernel", "wire"]),
    ("sim", &["node", "metadata", "storage", "kernel", "wire"]),
];

/// Crates that must stay synchronous.
const WITHOUT_TOKIO: [&str; 4] = ["wire", "kernel", "storage", "node"];
/// Crates of the async world, as their names begin.
const ASYNC: [&str; 5] = ["tokio", "async-", "futures", "axum", "hyper"];
/// Crates that exist for tests only.
const TESTS_ONLY: [&str; 4] = ["kafka-protocol", "proptest", "expect-test", "tempfile"];

/// Checks one manifest.
pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    let Some(package) = package_name(&file.text) else { return Vec::new() };
    let is_product = file.path.starts_with("crates/");
    let mut findings = Vec::new();
    if is_product && !BELOW.iter().any(|(name, _)| *name == package) {
        findings.push(finding(file, 1, format!("crate {package} is not in the table of arrows")));
    }
    for Dependency { name, kind, line } in dependencies(&file.text) {
        let ours = BELOW.iter().any(|(known, _)| *known == name);
        // A crate may name itself, to have features of its own in its tests.
        if is_product && ours && name != package && !may_use(&package, &name) {
            findings.push(finding(file, line, format!("{package} must not depend on {name}")));
        }
        if kind == Kind::Dev {
            continue;
        }
        if WITHOUT_TOKIO.contains(&package.as_str()) && ASYNC.iter().any(|start| name.starts_with(start)) {
            findings.push(finding(file, line, format!("{package} must stay synchronous: no {name}")));
        }
        if is_product && TESTS_ONLY.contains(&name.as_str()) {
            findings.push(finding(file, line, format!("{name} is for tests: move it to dev-dependencies")));
        }
    }
    findings
}

/// Whether an arrow from `from` to `to` may be drawn, directly or over crates between them.
fn may_use(from: &str, to: &str) -> bool {
    BELOW
        .iter()
        .filter(|(name, _)| *name == from)
        .flat_map(|(_, below)| below.iter())
        .any(|below| *below == to || may_use(below, to))
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Kind {
    Normal,
    Dev,
}

#[derive(Debug, PartialEq, Eq)]
struct Dependency {
    name: String,
    kind: Kind,
    line: usize,
}

fn package_name(manifest: &str) -> Option<String> {
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[package]";
        } else if inside
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "name"
        {
            return Some(value.trim().trim_matches('"').to_owned());
        }
    }
    None
}

fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut section: Option<Kind> = None;
    for (index, line) in manifest.lines().map(str::trim).enumerate() {
        let line_number = index + 1;
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let (table, named) = match header.rsplit_once("dependencies.") {
                Some((kind, name)) => (format!("{kind}dependencies"), Some(name)),
                None => (header.to_owned(), None),
            };
            section = kind_of(&table);
            if let (Some(kind), Some(name)) = (section, named) {
                found.push(Dependency { name: name.to_owned(), kind, line: line_number });
                section = None;
            }
        } else if let Some(kind) = section
            && !line.starts_with('#')
            && let Some(name) = line.split(['=', '.', ' ']).next().filter(|name| !name.is_empty())
        {
            found.push(Dependency { name: name.trim_matches('"').to_owned(), kind, line: line_number });
        }
    }
    found
}

fn kind_of(table: &str) -> Option<Kind> {
    if table.starts_with("workspace.") || !table.ends_with("dependencies") {
        None
    } else if table.ends_with("dev-dependencies") {
        Some(Kind::Dev)
    } else {
        Some(Kind::Normal)
    }
}

fn finding(file: &SourceFile, line: usize, message: String) -> Finding {
    Finding { file: file.path.clone(), line, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(package: &str, rest: &str) -> SourceFile {
        SourceFile {
            path: format!("crates/{package}/Cargo.toml"),
            text: format!("[package]\nname = \"{package}\"\n\n{rest}"),
        }
    }

    fn messages(file: &SourceFile) -> Vec<String> {
        check(file).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn an_arrow_upwards_is_found() {
        let file = manifest("kernel", "[dependencies]\nwire.workspace = true\nstorage.workspace = true\n");
        assert_eq!(messages(&file), ["kernel must not depend on storage"]);
        assert_eq!(check(&file)[0].line, 6);
    }

    #[test]
    fn an_arrow_sideways_is_found_in_every_notation() {
        for line in [
            "[dependencies]\nnet = { path = \"../net\" }",
            "[dependencies.net]\npath = \"../net\"",
            "[target.'cfg(unix)'.dependencies]\nnet.workspace = true",
            "[dev-dependencies]\nnet.workspace = true",
            "[build-dependencies]\n\"net\" = \"1\"",
        ] {
            assert_eq!(messages(&manifest("storage", line)), ["storage must not depend on net"], "{line}");
        }
    }

    #[test]
    fn arrows_downwards_are_allowed_over_any_number_of_steps() {
        let file = manifest("node", "[dependencies]\nwire.workspace = true\nstorage.workspace = true\n");
        assert_eq!(messages(&file), [""; 0]);
        assert!(may_use("blumfeld", "wire") && may_use("sim", "kernel"));
        assert!(!may_use("blumfeld", "sim") && !may_use("wire", "wire"));
    }

    #[test]
    fn tokio_is_refused_in_synchronous_crates_but_not_in_their_tests() {
        let bad = manifest("node", "[dependencies]\ntokio-util.workspace = true\n");
        assert_eq!(messages(&bad), ["node must stay synchronous: no tokio-util"]);
        assert_eq!(messages(&manifest("node", "[dev-dependencies]\ntokio = \"1\"\n")), [""; 0]);
        assert_eq!(messages(&manifest("net", "[dependencies]\ntokio = \"1\"\n")), [""; 0]);
    }

    #[test]
    fn test_crates_stay_out_of_the_product() {
        let bad = manifest("wire", "[dependencies]\nkafka-protocol.workspace = true\n");
        assert_eq!(messages(&bad).len(), 1);
        assert_eq!(
            messages(&manifest("wire", "[dev-dependencies]\nkafka-protocol.workspace = true\n")),
            [""; 0]
        );
    }

    #[test]
    fn a_crate_without_a_place_in_the_table_is_found() {
        assert_eq!(messages(&manifest("utils", "")), ["crate utils is not in the table of arrows"]);
    }

    #[test]
    fn comments_features_and_workspace_tables_are_no_dependencies() {
        let text =
            "[workspace.dependencies]\na = \"1\"\n[features]\nb = []\n[dependencies]\n# c = 1\n\nd = \"1\"\n";
        let names: Vec<String> = dependencies(text).into_iter().map(|d| d.name).collect();
        assert_eq!(names, ["d"]);
    }
}

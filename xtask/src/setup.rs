//! `cargo xtask setup`: what the end-to-end tests need from outside, installed once.
//!
//! Programs come from Debian's packages, when this is Debian and we are root; elsewhere the run ends with the
//! list of what is missing. Libraries and clients come from their registries at pinned versions and lie in a
//! cache folder outside the tree, each beside a copy of the file that pins it: equal copy, nothing to do.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::{command, find_on_path, output, step};
use crate::others;
use crate::test::Depth;

/// A program that must be on the search path, and Debian's packages that bring it.
struct Program {
    name: &'static str,
    packages: &'static [&'static str],
    works: fn() -> bool,
}

const PROGRAMS: [Program; 8] = [
    Program {
        name: "g++ and make",
        packages: &["g++", "make", "zlib1g-dev"],
        works: || find_on_path("g++").is_some() && find_on_path("make").is_some(),
    },
    Program { name: "java", packages: &["default-jre-headless"], works: || find_on_path("java").is_some() },
    Program { name: "mvn", packages: &["maven"], works: || find_on_path("mvn").is_some() },
    Program {
        name: "python3 with venv",
        packages: &["python3", "python3-venv"],
        works: || output("python3", &["-c", "import venv, ensurepip"]).is_some(),
    },
    Program { name: "kcat", packages: &["kcat"], works: || find_on_path("kcat").is_some() },
    Program { name: "node", packages: &["nodejs"], works: || find_on_path("node").is_some() },
    Program { name: "npm", packages: &["npm"], works: || find_on_path("npm").is_some() },
    Program {
        name: "go (1.21 or newer)",
        packages: &["golang-go"],
        works: || go_is_new_enough(go_version()),
    },
];

/// Makes sure that everything is there that the tests of this depth need; returns the cache folder.
///
/// # Errors
/// When something is missing and cannot be installed; the message names it.
pub(crate) fn run(root: &Path, depth: Depth) -> Result<PathBuf> {
    install_programs(root)?;
    let cache = cache_folder()?;
    let clients = root.join("tests/clients");
    maven(&cache, &clients, "kafka-3.9")?;
    maven(&cache, &clients, "tools-4")?;
    python(&cache, &clients)?;
    node(&cache, &clients)?;
    go(&cache, &clients)?;
    others::install(&cache, &clients)?;
    if depth == Depth::Long {
        others::install_long(&cache, &root.join("tests/others"))?;
    }
    Ok(cache)
}

/// `$BLUMFELD_TEST_CACHE`, or `blumfeld-tests` below the user's cache folder.
fn cache_folder() -> Result<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("BLUMFELD_TEST_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|folder| folder.join("blumfeld-tests")))
        .or_else(|| named("HOME").map(|folder| folder.join(".cache/blumfeld-tests")))
        .context("neither BLUMFELD_TEST_CACHE nor HOME is set")?;
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

fn install_programs(root: &Path) -> Result<()> {
    let missing = missing_programs();
    if missing.is_empty() {
        return Ok(());
    }
    let is_root = output("id", &["-u"]).is_some_and(|id| id.trim() == "0");
    if is_root && find_on_path("apt-get").is_some() {
        let packages: Vec<&str> = missing.iter().flat_map(|p| p.packages.iter().copied()).collect();
        let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
        arguments.extend(packages);
        step("package lists", &mut command("apt-get", &["update", "--quiet"], root))?;
        let mut install = command("apt-get", &arguments, root);
        step("packages", install.env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    let missing: Vec<&str> = missing_programs().iter().map(|program| program.name).collect();
    if !missing.is_empty() {
        bail!("the end-to-end tests need programs that are not installed here: {}", missing.join(", "));
    }
    Ok(())
}

fn missing_programs() -> Vec<&'static Program> {
    PROGRAMS.iter().filter(|program| !(program.works)()).collect()
}

fn go_version() -> Option<String> {
    output("go", &["env", "GOVERSION"])
}

/// Go 1.21 and newer fetch the toolchain that a module asks for.
fn go_is_new_enough(version: Option<String>) -> bool {
    let minor = |text: &str| text.trim().strip_prefix("go1.")?.split('.').next()?.parse::<u32>().ok();
    version.as_deref().and_then(minor).is_some_and(|minor| minor >= 21)
}

/// Calls `install` unless `folder` holds a copy of `pins` from an earlier success.
pub(crate) fn once(folder: &Path, pins: &[PathBuf], install: impl FnOnce() -> Result<()>) -> Result<()> {
    let mut wanted = String::new();
    for file in pins {
        wanted +=
            &std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    }
    let stamp = folder.join("installed.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    install()?;
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

fn maven(cache: &Path, clients: &Path, name: &str) -> Result<()> {
    let (folder, pom) = (cache.join(name), clients.join("java").join(name).join("pom.xml"));
    once(&folder, std::slice::from_ref(&pom), || {
        std::fs::copy(&pom, folder.join("pom.xml"))?;
        let arguments = ["-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"];
        step(&format!("jars of {name}"), &mut command("mvn", &arguments, &folder))
    })
}

fn python(cache: &Path, clients: &Path) -> Result<()> {
    let (folder, pins) = (cache.join("python"), clients.join("python/requirements.txt"));
    once(&folder, std::slice::from_ref(&pins), || {
        step("Python environment", &mut command("python3", &["-m", "venv", "venv"], &folder))?;
        let pins = pins.to_string_lossy();
        let arguments = ["install", "--quiet", "--disable-pip-version-check", "-r", &pins];
        step("Python clients", &mut command("venv/bin/pip", &arguments, &folder))
    })
}

fn node(cache: &Path, clients: &Path) -> Result<()> {
    let (folder, source) = (cache.join("node"), clients.join("node"));
    let pins = [source.join("package.json"), source.join("package-lock.json")];
    once(&folder, &pins, || {
        for file in &pins {
            std::fs::copy(file, folder.join(file.file_name().unwrap_or_default()))?;
        }
        let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        step("Node clients", &mut command("npm", &arguments, &folder))
    })
}

fn go(cache: &Path, clients: &Path) -> Result<()> {
    let (folder, source) = (cache.join("go"), clients.join("go"));
    let pins =
        ["go.mod", "go.sum", "franz/main.go", "sarama/main.go", "ends/ends.go"].map(|name| source.join(name));
    once(&folder, &pins, || {
        // Each package becomes a program of its name.
        let programs = folder.to_string_lossy();
        let mut build = command("go", &["build", "-o", &programs, "./franz", "./sarama"], &source);
        step("Go clients", build.env("CGO_ENABLED", "0").env("GOFLAGS", "-buildvcs=false"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_must_be_able_to_fetch_toolchains() {
        for (version, enough) in
            [("go1.26.8\n", true), ("go1.21", true), ("go1.19.8", false), ("devel", false)]
        {
            assert_eq!(go_is_new_enough(Some(version.to_owned())), enough, "{version}");
        }
        assert!(!go_is_new_enough(None));
    }

    #[test]
    fn an_installation_is_repeated_only_when_its_pins_change_or_it_failed() {
        let base = std::env::temp_dir().join(format!("xtask-once-{}", std::process::id()));
        std::fs::create_dir_all(&base).unwrap();
        let (folder, pins) = (base.join("tool"), [base.join("pins")]);
        std::fs::write(&pins[0], "one").unwrap();
        let calls = std::cell::Cell::new(0);
        let install = |ok: bool| {
            once(&folder, &pins, || {
                calls.set(calls.get() + 1);
                if ok { Ok(()) } else { bail!("no") }
            })
        };
        install(false).unwrap_err();
        install(true).unwrap();
        install(true).unwrap();
        assert_eq!(calls.get(), 2);
        std::fs::write(&pins[0], "two").unwrap();
        install(true).unwrap();
        assert_eq!(calls.get(), 3);
        std::fs::remove_dir_all(&base).unwrap();
    }
}

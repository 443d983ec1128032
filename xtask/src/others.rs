//! Test suites of other projects, taken from their published packages at pinned versions and made ready to run.
//!
//! Pins and stand-ins of ours are in `tests/others`; what is fetched and built lies in the cache folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command::{command, output, step};
use crate::setup::once;

/// The package of franz-go whose tests are run; `go.mod` of our Go client pins its version.
const KGO: &str = "github.com/twmb/franz-go/pkg/kgo";

/// The main class of the compiler among the jars of Kafka Streams.
const COMPILER: &str = "org.eclipse.jdt.internal.compiler.batch.Main";

/// What librdkafka is built with: the tests speak plain text, and are built once.
const LIBRDKAFKA: [&str; 5] = [
    "--disable-ssl",
    "--disable-gssapi",
    "--disable-curl",
    "--disable-debug-symbols",
    "--disable-optimization",
];

/// Makes ready what the short form of the suites needs; `clients` is the folder of our own client programs.
///
/// # Errors
/// When something cannot be fetched or built.
pub(crate) fn install(cache: &Path, clients: &Path) -> Result<()> {
    let (folder, source) = (cache.join("kgo"), clients.join("go"));
    once(&folder, &["go.mod", "go.sum"].map(|name| source.join(name)), || {
        let program = folder.join("kgo.test");
        let mut build = command("go", &["test", "-c", "-o", &program.to_string_lossy(), KGO], &source);
        step("tests of franz-go", build.env("CGO_ENABLED", "0").env("GOFLAGS", "-buildvcs=false"))
    })
}

/// Makes ready what the long form needs beside it; `others` is the folder of pins and stand-ins.
///
/// # Errors
/// As [`install`].
pub(crate) fn install_long(cache: &Path, others: &Path) -> Result<()> {
    kafka_python(&cache.join("kafka-python"), &others.join("kafka-python"))?;
    streams(&cache.join("streams"), &others.join("streams"))?;
    rskafka(&cache.join("rskafka"), &others.join("rskafka"))?;
    librdkafka(&cache.join("librdkafka"), &cache.join("rskafka"), &others.join("rskafka"))
}

fn kafka_python(folder: &Path, from: &Path) -> Result<()> {
    let pins = ["requirements.txt", "source.txt", "service.py"].map(|name| from.join(name));
    once(folder, &pins, || {
        let [requirements, source, service] = &pins;
        let pip = |name: &str, arguments: &[&str], pins: &Path| {
            let mut pip = command("venv/bin/pip", arguments, folder);
            step(name, pip.args(["--quiet", "--disable-pip-version-check", "-r"]).arg(pins))
        };
        step("Python environment", &mut command("python3", &["-m", "venv", "venv"], folder))?;
        pip("what tests of kafka-python need", &["install"], requirements)?;
        let download = ["download", "--no-deps", "--no-binary", ":all:", "--dest", "source"];
        pip("source of kafka-python", &download, source)?;
        let unpack = "tar -xzf source/*.tar.gz --strip-components=1 --wildcards '*/test'";
        step("tests of kafka-python", &mut command("sh", &["-c", unpack], folder))?;
        std::fs::copy(service, folder.join("test/service.py"))?;
        Ok(std::fs::write(folder.join("test/__init__.py"), "")?)
    })
}

fn rskafka(folder: &Path, from: &Path) -> Result<()> {
    let names = ["manifest.toml", "lock.toml", "nothing.rs", "java_helper.rs", "rdkafka_helper.rs"];
    let pins = names.map(|name| from.join(name));
    once(folder, &pins, || {
        let places = ["Cargo.toml", "Cargo.lock", "nothing.rs"];
        for (name, place) in names.iter().zip(places) {
            std::fs::copy(from.join(name), folder.join(place))?;
        }
        let source = source(folder, "/rskafka-0.6.0/Cargo.toml")?.join("tests");
        step("tests of rskafka", &mut command("cp", &["-r", &source.to_string_lossy(), "tests"], folder))?;
        for name in ["java_helper.rs", "rdkafka_helper.rs"] {
            std::fs::copy(from.join(name), folder.join("tests").join(name))?;
        }
        let arguments = ["test", "--quiet", "--locked", "--no-run", "--target-dir", "target"];
        step("programs of rskafka's tests", &mut command("cargo", &arguments, folder))
    })
}

/// Builds librdkafka and its tests from the source that the package in `crates` depends on.
fn librdkafka(folder: &Path, crates: &Path, from: &Path) -> Result<()> {
    once(folder, &["manifest.toml", "lock.toml"].map(|name| from.join(name)), || {
        let source = source(crates, "/rdkafka-sys-4.10.0+2.12.1/Cargo.toml")?.join("librdkafka/.");
        step("source of librdkafka", &mut command("cp", &["-r", &source.to_string_lossy(), "."], folder))?;
        step("configuration of librdkafka", &mut command("./configure", &LIBRDKAFKA, folder))?;
        step("librdkafka", &mut command("make", &["--silent", "-j2", "libs"], folder))?;
        let tests = ["--silent", "-j2", "-C", "tests", "build"];
        step("tests of librdkafka", &mut command("make", &tests, folder))
    })
}

/// The jars with the tests of Kafka Streams, and the compiled class that starts brokers in the place of theirs.
fn streams(folder: &Path, from: &Path) -> Result<()> {
    let sources = ["EmbeddedKafkaCluster.java", "Servers.java", "Run.java"].map(|name| from.join(name));
    let pom = from.join("pom.xml");
    once(folder, &[std::slice::from_ref(&pom), &sources].concat(), || {
        std::fs::copy(&pom, folder.join("pom.xml"))?;
        let arguments = ["-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"];
        step("jars of Kafka Streams", &mut command("mvn", &arguments, folder))?;
        // A compiler from the jars: the Java that is installed may have none.
        let mut compile = command("java", &["-cp", "jars/*", COMPILER, "-17", "-nowarn"], folder);
        compile.args(["-classpath", &class_path(&folder.join("jars"))?, "-d", "classes"]);
        step("what stands in among tests of Kafka Streams", compile.args(&sources))
    })
}

/// All jars in `folder`; the compiler knows no wildcard.
fn class_path(folder: &Path) -> Result<String> {
    let jars = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path().to_string_lossy().into_owned()));
    let mut jars = jars.collect::<Result<Vec<String>>>()?;
    jars.sort();
    Ok(jars.join(":"))
}

/// Where cargo keeps the source of a dependency of the package in `folder`, known by the end of its manifest's path.
fn source(folder: &Path, manifest: &str) -> Result<PathBuf> {
    let package = folder.join("Cargo.toml");
    let package = package.to_string_lossy();
    let arguments = ["metadata", "--format-version", "1", "--locked", "--all-features", "--manifest-path"];
    let text = output("cargo", &[&arguments[..], &[&package]].concat());
    let text = text.with_context(|| format!("cargo cannot tell what {package} depends on"))?;
    let path = text.split('"').find(|path| path.ends_with(manifest));
    let path = path.with_context(|| format!("{package} does not depend on {manifest}"))?;
    Ok(Path::new(path).parent().unwrap_or(folder).to_path_buf())
}

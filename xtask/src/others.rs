//! Test suites of other projects, taken from their published packages at pinned versions and made ready to run.

use std::path::Path;

use anyhow::Result;

use crate::command::{command, step};
use crate::setup::once;

/// The package of franz-go whose tests are run; `go.mod` of our Go client pins its version.
const KGO: &str = "github.com/twmb/franz-go/pkg/kgo";

/// Makes everything ready in `cache`; `clients` is the folder of our own client programs.
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

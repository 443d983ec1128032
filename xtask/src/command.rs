//! Running other programs: each step is named, timed, and ends the run when it fails.
//!
//! Output goes through untouched, so that the closing lines of test runners stay readable.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// A command that will run in `directory`.
pub(crate) fn command(program: &str, arguments: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command
}

/// Runs `command` to its end under the title `name`.
///
/// # Errors
/// When it cannot be started or ends with another code than 0.
pub(crate) fn step(name: &str, command: &mut Command) -> Result<()> {
    println!("==> {name}");
    let start = Instant::now();
    let status = command.status().with_context(|| format!("{name}: cannot start {command:?}"))?;
    let seconds = start.elapsed().as_secs_f64();
    if !status.success() {
        bail!("{name} failed after {seconds:.1} s ({status}): {command:?}");
    }
    println!("<== {name}: {seconds:.1} s");
    Ok(())
}

/// Runs a quick look-up and returns its standard output, or `None` when it failed in any way.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Where `program` lies on the search path.
pub(crate) fn find_on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_step_is_an_error_that_names_it() {
        let error = step("a false thing", &mut command("false", &[], Path::new("/"))).unwrap_err();
        assert!(error.to_string().contains("a false thing failed"), "{error}");
        step("a true thing", &mut command("true", &[], Path::new("/"))).unwrap();
    }

    #[test]
    fn a_program_that_does_not_exist_has_no_output_and_no_place() {
        assert_eq!(output("no-such-program-here", &[]), None);
        assert_eq!(find_on_path("no-such-program-here"), None);
        assert!(find_on_path("sh").is_some());
    }
}

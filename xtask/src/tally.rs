//! How many tests ran: the closing lines of test runners, added up while their output goes through.
//!
//! Each runner closes with `test result: ok. 3 passed; 0 failed; …`. The sum closes the whole run as one line.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// Tests that passed and tests that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

impl Tally {
    /// Runs `command`, a test runner, to its end under the title `name` and counts its tests.
    ///
    /// # Errors
    /// When it cannot be started, ends with another code than 0, or ran no test.
    pub(crate) fn step(&mut self, name: &str, command: &mut Command) -> Result<()> {
        println!("==> {name}");
        self.step_to(name, command, std::io::stdout())
    }

    /// As [`Tally::step`], but what the runner prints is shown in one piece when it has ended.
    ///
    /// # Errors
    /// Those of [`Tally::step`].
    pub(crate) fn step_quietly(&mut self, name: &str, command: &mut Command) -> Result<()> {
        println!("==> {name}, beside another");
        let mut output = Vec::new();
        let result = self.step_to(name, command, &mut output);
        // In this way tests of this are not heard by the run that they are part of, which would count what they print.
        print!("{}", String::from_utf8_lossy(&output));
        result
    }

    fn step_to(&mut self, name: &str, command: &mut Command, to: impl Write) -> Result<()> {
        let start = Instant::now();
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{name}: cannot start {command:?}"))?;
        let output = child.stdout.take().context("no pipe")?;
        let before = *self;
        self.read(output, to)?;
        let status = child.wait()?;
        let seconds = start.elapsed().as_secs_f64();
        if !status.success() {
            bail!("{name} failed after {seconds:.1} s ({status}): {command:?}");
        }
        if *self == before {
            bail!("{name} ran no test: {command:?}");
        }
        println!("<== {name}: {seconds:.1} s");
        Ok(())
    }

    /// Copies `from` to `to`, line by line, and adds up what closing lines say.
    fn read(&mut self, from: impl Read, mut to: impl Write) -> Result<()> {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line)? > 0 {
            to.write_all(&line)?;
            to.flush()?;
            self.add(&String::from_utf8_lossy(&line));
            line.clear();
        }
        Ok(())
    }

    /// Adds the numbers of a closing line; other lines count nothing.
    fn add(&mut self, line: &str) {
        let Some(closing) = line.trim().strip_prefix("test result: ") else { return };
        for part in closing.split([';', '.']) {
            match part.trim().split_once(' ') {
                Some((count, "passed")) => self.passed += count.parse().unwrap_or(0),
                Some((count, "failed")) => self.failed += count.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::command::command;

    const OUTPUT: &str = "\
running 3 tests
...
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.07s
5 passed
test result: FAILED. 40 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.50s
";

    #[test]
    fn closing_lines_add_up_and_the_output_goes_through() {
        let (mut tally, mut through) = (Tally::default(), Vec::new());
        tally.read(OUTPUT.as_bytes(), &mut through).unwrap();
        assert_eq!(tally.to_string(), "43 passed, 2 failed");
        assert_eq!(through, OUTPUT.as_bytes());
    }

    #[test]
    fn a_runner_that_fails_or_runs_nothing_fails_the_step() {
        let mut tally = Tally::default();
        let mut shell = |script: &str| {
            tally.step_to("runner", &mut command("sh", &["-c", script], Path::new("/")), std::io::sink())
        };
        shell("echo 'test result: ok. 1 passed; 0 failed; 0 ignored'").unwrap();
        let nothing = shell("echo 'test result: ok. 0 passed; 0 failed; 0 ignored'").unwrap_err();
        assert!(nothing.to_string().contains("ran no test"), "{nothing}");
        let failed = shell("echo 'test result: FAILED. 2 passed; 3 failed'; exit 101").unwrap_err();
        assert!(failed.to_string().contains("runner failed"), "{failed}");
        assert_eq!(tally, Tally { passed: 3, failed: 3 });
    }
}

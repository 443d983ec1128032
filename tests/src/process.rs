//! Child processes: a log file each, figures from `/proc`, and an end that concerns only the child itself.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::wait;

/// A child process that is killed when this value is dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

/// What a program that ran to its end left behind.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Process {
    /// Starts `command`; what it prints is appended to the file `log`.
    ///
    /// # Errors
    /// When the log cannot be opened or the program cannot be started.
    pub fn spawn(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {name}: {command:?}"))?;
        Ok(Self { name: name.to_owned(), child, log: log.to_path_buf() })
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a line of the log contains `text`, looking from byte `from` on.
    ///
    /// # Errors
    /// When the process ends first or `limit` passes; the message holds the end of the log.
    pub fn wait_for_log(&mut self, text: &str, from: u64, limit: Duration) -> Result<()> {
        let what = format!("the line {text:?} of {}", self.name);
        let log = self.log.clone();
        let seen = wait::until(&what, limit, || {
            let skip = usize::try_from(from)?;
            if std::fs::read(&log)?.get(skip..).is_some_and(|new| String::from_utf8_lossy(new).contains(text))
            {
                return Ok(Some(()));
            }
            match self.child.try_wait()? {
                Some(status) => bail!("{} ended early: {status}", self.name),
                None => Ok(None),
            }
        });
        seen.with_context(|| format!("end of the log of {}:\n{}", self.name, self.log_tail(40)))
    }

    /// Asks the process to end (SIGTERM), and does not wait for it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn ask_to_end(&self) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::TERM)?)
    }

    /// How the process ended, if it has.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn status(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Asks the process to end (SIGTERM) and waits for it.
    ///
    /// # Errors
    /// When it does not end within `limit`.
    pub fn terminate(mut self, limit: Duration) -> Result<ExitStatus> {
        self.ask_to_end()?;
        let what = format!("the end of {}", self.name);
        wait::until(&what, limit, || Ok(self.child.try_wait()?))
            .with_context(|| format!("end of the log of {}:\n{}", self.name, self.log_tail(40)))
    }

    /// Ends the process at once (SIGKILL) and waits for it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Stops the process where it is (SIGSTOP): it keeps its connections and says nothing more.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn freeze(&self) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::STOP)?)
    }

    /// Lets a frozen process go on (SIGCONT).
    ///
    /// # Errors
    /// When the system refuses.
    pub fn thaw(&self) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::CONT)?)
    }

    /// Whether the process still runs.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// The last lines of the log.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> String {
        let text = std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let text = text.unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
    }

    /// User plus system time so far, in seconds.
    ///
    /// # Errors
    /// When `/proc` does not show it.
    pub fn cpu_seconds(&self) -> Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.id()))?;
        let (_, fields) = text.rsplit_once(')').context("no name in /proc/PID/stat")?;
        let field = |index: usize| -> Result<f64> {
            Ok(fields.split_whitespace().nth(index).context("a short /proc/PID/stat")?.parse::<f64>()?)
        };
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        Ok((field(11)? + field(12)?) / ticks_per_second)
    }

    /// Whether the process handles SIGTERM by now; one that was started just now would die of it.
    ///
    /// # Errors
    /// When `/proc` does not tell.
    pub fn handles_sigterm(&self) -> Result<bool> {
        const SIGTERM: u32 = 15;
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.context("no caught signals in /proc/PID/status")?.trim();
        Ok(u64::from_str_radix(caught, 16)? >> (SIGTERM - 1) & 1 == 1)
    }

    /// Resident memory in bytes.
    ///
    /// # Errors
    /// When `/proc` does not show it.
    pub fn resident_bytes(&self) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kib = line.split_whitespace().next().context("an empty VmRSS")?.parse::<u64>()?;
        Ok(kib * 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ended_meanwhile = self.child.kill();
            let _reaped = self.child.wait();
        }
    }
}

/// Runs `command` to its end with `input` as its standard input.
///
/// # Errors
/// When it cannot be started, or `limit` passes; then it is killed.
pub fn run(command: &mut Command, input: &str, limit: Duration) -> Result<Finished> {
    let folder = tempfile::tempdir()?;
    let (stdin, stdout, stderr) =
        (folder.path().join("stdin"), folder.path().join("stdout"), folder.path().join("stderr"));
    std::fs::write(&stdin, input)?;
    let mut child = command
        .stdin(File::open(&stdin)?)
        .stdout(File::create(&stdout)?)
        .stderr(File::create(&stderr)?)
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let status = wait::until(&format!("the end of {command:?}"), limit, || Ok(child.try_wait()?));
    if status.is_err() {
        child.kill()?;
        child.wait()?;
    }
    let read =
        |path: &Path| -> Result<String> { Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned()) };
    let (stdout, stderr) = (read(&stdout)?, read(&stderr)?);
    let status = status.with_context(|| format!("stdout:\n{}\nstderr:\n{}", tail(&stdout), tail(&stderr)))?;
    Ok(Finished { status, stdout, stderr })
}

/// Runs `command` as [`run`] does and wants it to succeed.
///
/// # Errors
/// As [`run`], and when the exit code is not 0.
pub fn run_well(command: &mut Command, input: &str, limit: Duration) -> Result<Finished> {
    let finished = run(command, input, limit)?;
    ensure!(
        finished.status.success(),
        "{command:?} failed: {}\nstdout:\n{}\nstderr:\n{}",
        finished.status,
        tail(&finished.stdout),
        tail(&finished.stderr)
    );
    Ok(finished)
}

/// The last lines of a long text.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn a_program_gets_its_input_and_its_output_comes_back() {
        let finished = run_well(&mut Command::new("cat"), "hello", LIMIT).unwrap();
        assert_eq!(finished.stdout, "hello");
        assert!(run_well(&mut Command::new("false"), "", LIMIT).is_err());
    }

    #[test]
    fn a_program_that_hangs_is_killed_at_the_limit() {
        let error = run(Command::new("sleep").arg("600"), "", Duration::from_millis(50)).unwrap_err();
        assert!(format!("{error:#}").contains("did not happen"), "{error:#}");
    }

    #[test]
    fn a_frozen_child_says_nothing_until_it_is_thawed() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let script = "echo ready; read go < go; echo gone; exec sleep 600";
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder.path());
        assert!(Command::new("mkfifo").arg(folder.path().join("go")).status().unwrap().success());
        let mut process = Process::spawn("sleeper", &mut command, &log).unwrap();
        process.wait_for_log("ready", 0, LIMIT).unwrap();
        process.freeze().unwrap();
        let state = format!("/proc/{}/stat", process.id());
        let is_stopped = || Ok(std::fs::read_to_string(&state)?.contains(") T ").then_some(()));
        wait::until("a stopped process", LIMIT, is_stopped).unwrap();
        process.thaw().unwrap();
        std::fs::write(folder.path().join("go"), "go\n").unwrap();
        process.wait_for_log("gone", 0, LIMIT).unwrap();
    }

    #[test]
    fn a_child_handles_sigterm_once_it_says_so() {
        let folder = tempfile::tempdir().unwrap();
        for (trap, handles) in [("trap 'exit 0' TERM", true), (":", false)] {
            let script = format!("{trap}; echo ready; while :; do sleep 0.1; done");
            let log = folder.path().join(handles.to_string());
            let mut child = Process::spawn("child", Command::new("sh").args(["-c", &script]), &log).unwrap();
            child.wait_for_log("ready", 0, LIMIT).unwrap();
            assert_eq!(child.handles_sigterm().unwrap(), handles);
            child.kill().unwrap();
        }
    }

    #[test]
    fn a_child_is_seen_in_its_log_and_gone_after_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let script = "echo ready; exec sleep 600";
        let mut process = Process::spawn("sleeper", Command::new("sh").args(["-c", script]), &log).unwrap();
        process.wait_for_log("ready", 0, LIMIT).unwrap();
        assert!(process.is_running().unwrap());
        assert!(process.resident_bytes().unwrap() > 0);
        assert!(process.cpu_seconds().unwrap() < 5.0);
        let status = process.terminate(LIMIT).unwrap();
        assert!(!status.success());
        let mut short = Process::spawn("short", &mut Command::new("true"), &log).unwrap();
        assert!(short.wait_for_log("never", 0, LIMIT).is_err());
    }
}

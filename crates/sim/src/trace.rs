//! What has happened, as lines: hashed, so that two runs can be compared, and the last of them kept, so that a finding
//! can be explained.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many lines are kept.
const KEPT: usize = 400;

/// FNV-1a, 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Takes bytes in.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The digest of all bytes so far.
    pub(crate) fn value(self) -> u64 {
        self.0
    }

    /// The digest of these bytes alone.
    pub(crate) fn of(bytes: &[u8]) -> u64 {
        let mut digest = Self::default();
        digest.add(bytes);
        digest.value()
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}

/// The trace of a run.
#[derive(Debug)]
pub(crate) struct Trace {
    /// Every line is printed too.
    is_loud: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    digest: Digest,
    lines: u64,
    last: VecDeque<String>,
}

impl Trace {
    /// An empty trace; a loud one prints each line.
    pub(crate) fn new(is_loud: bool) -> Self {
        Self { is_loud, state: Mutex::default() }
    }

    /// Adds a line about something that happens at `now_us`. Plain lines count for the digest; those that `matter` are
    /// kept too.
    pub(crate) fn add(&self, now_us: u64, matters: bool, line: fmt::Arguments<'_>) {
        let mut state = self.lock();
        state.lines += 1;
        state.digest.add(&now_us.to_be_bytes());
        // Writing to a digest does not fail.
        let _ = state.digest.write_fmt(line);
        if matters {
            let text = format!("{:>10.3} {line}", now_us as f64 / 1000.0);
            if state.last.len() >= KEPT {
                state.last.pop_front();
            }
            state.last.push_back(text);
        }
        if self.is_loud {
            println!("{:>10.3} {line}", now_us as f64 / 1000.0);
        }
    }

    /// The digest and the number of lines.
    pub(crate) fn digest(&self) -> (u64, u64) {
        let state = self.lock();
        (state.digest.value(), state.lines)
    }

    /// The last lines that mattered.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        self.lock().last.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

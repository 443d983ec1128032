//! Waiting for a condition of another process, with a deadline and a name for what did not happen.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Calls `probe` until it returns a value, at most for `limit`.
///
/// # Errors
/// When the limit passes (the message names `what`), or at once when `probe` fails.
pub fn until<T>(what: &str, limit: Duration, mut probe: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = probe().with_context(|| format!("while waiting for {what}"))? {
            return Ok(value);
        }
        if start.elapsed() > limit {
            bail!("{what} did not happen within {limit:?}");
        }
        std::thread::sleep(PAUSE);
    }
}

/// Lets time pass between two tries of something that cannot be waited for in a better way.
pub fn pause(time: Duration) {
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_the_wait_and_a_deadline_names_what_is_missing() {
        let mut left = 3;
        let got = until("three looks", Duration::from_secs(5), || {
            left -= 1;
            Ok((left == 0).then_some("done"))
        });
        assert_eq!(got.unwrap(), "done");
        let error = until("a miracle", Duration::ZERO, || Ok(None::<()>)).unwrap_err();
        assert!(error.to_string().contains("a miracle did not happen"), "{error}");
        let error =
            until("x", Duration::from_secs(60), || -> Result<Option<()>> { bail!("broken") }).unwrap_err();
        assert!(format!("{error:#}").contains("broken"));
    }
}

//! How much a suite does: what continuous integration has time for, or the long form that `cargo xtask test --all` asks for.

use anyhow::{Result, bail};

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// What continuous integration runs.
    Short,
    /// Everything.
    Long,
}

impl Depth {
    /// The depth named by `$BLUMFELD_TEST_DEPTH` (`short` or `long`); the short one without it.
    ///
    /// # Errors
    /// When the variable names neither.
    pub fn from_environment() -> Result<Self> {
        Self::named(std::env::var("BLUMFELD_TEST_DEPTH").as_deref().unwrap_or_default())
    }

    fn named(name: &str) -> Result<Self> {
        match name {
            "" | "short" => Ok(Self::Short),
            "long" => Ok(Self::Long),
            other => bail!("BLUMFELD_TEST_DEPTH is neither short nor long: {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_depth_has_one_of_two_names() {
        assert_eq!(Depth::named("").unwrap(), Depth::Short);
        assert_eq!(Depth::named("short").unwrap(), Depth::Short);
        assert_eq!(Depth::named("long").unwrap(), Depth::Long);
        assert!(Depth::named("deep").unwrap_err().to_string().contains("deep"));
    }
}

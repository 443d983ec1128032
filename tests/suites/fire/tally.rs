//! How often each kind of fault has happened.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, ensure};

use crate::fault::Fault;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<Fault, u32>);

impl Tally {
    pub(crate) fn count(&mut self, fault: Fault) {
        *self.0.entry(fault).or_default() += 1;
    }

    /// The kinds that have not happened.
    pub(crate) fn missing(&self) -> Vec<Fault> {
        Fault::ALL.into_iter().filter(|fault| !self.0.contains_key(fault)).collect()
    }

    /// A run in which a kind of fault did not happen has shown nothing of it.
    ///
    /// # Errors
    /// When a kind is missing.
    pub(crate) fn is_complete(&self) -> Result<()> {
        let missing: Vec<_> = self.missing().iter().map(ToString::to_string).collect();
        ensure!(missing.is_empty(), "never happened: {}", missing.join(", "));
        Ok(())
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in Fault::ALL {
            writeln!(f, "{:5} {fault}", self.0.get(&fault).copied().unwrap_or(0))?;
        }
        Ok(())
    }
}

#[test]
fn a_run_without_a_kind_of_fault_fails_and_names_it() {
    let mut tally = Tally::default();
    Fault::ALL.into_iter().filter(|fault| *fault != Fault::Deafen).for_each(|fault| tally.count(fault));
    let error = tally.is_complete().err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some("never happened: brokers parted one way"));
    tally.count(Fault::Deafen);
    assert!(tally.is_complete().is_ok());
    assert_eq!(tally.to_string().lines().count(), Fault::ALL.len());
}

//! What a run is to be.

use std::fmt;
use std::str::FromStr;

use kernel::planted::Fault;

/// `inter.broker.protocol.version` of a run: before and after the controller took over the ISR and epochs came into
/// fetches (KIP-497, KIP-595).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// 2.6: leaders write the ISR themselves, followers ask for epochs before they fetch.
    V2_6,
    /// 3.9: AlterPartition, topic ids, truncation while fetching.
    V3_9,
}

impl Protocol {
    /// The value of the property.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V2_6 => "2.6",
            Self::V3_9 => "3.9",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::V2_6, Self::V3_9]
            .into_iter()
            .find(|it| it.name() == text)
            .ok_or_else(|| format!("{text} is neither 2.6 nor 3.9"))
    }
}

/// How long things go wrong in a run of the usual length, in milliseconds of virtual time.
pub const USUAL_MS: u64 = 25_000;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where everything random comes from.
    pub seed: u64,
    /// The protocol between the brokers.
    pub protocol: Protocol,
    /// How long things are done and go wrong, in milliseconds of virtual time; then all is mended and comes to rest.
    pub ms: u64,
    /// Whether anything goes wrong.
    pub with_faults: bool,
    /// Whether the whole trace is printed.
    pub is_loud: bool,
    /// A fault that the brokers have, to show that it is found; only a build with the feature `planted-faults` has it.
    pub planted: Option<Fault>,
}

impl Plan {
    /// A run of the usual length with faults.
    #[must_use]
    pub fn new(seed: u64, protocol: Protocol) -> Self {
        Self { seed, protocol, ms: USUAL_MS, with_faults: true, is_loud: false, planted: None }
    }

    /// The command line that runs it again.
    #[must_use]
    pub fn command(&self) -> String {
        let calm = if self.with_faults { "" } else { " --calm" };
        let Self { seed, protocol, ms, .. } = self;
        let (feature, planted) = match self.planted {
            Some(fault) => (" --features planted-faults", format!(" --planted {}", fault.name())),
            None => ("", String::new()),
        };
        format!(
            "cargo run --profile sim -p sim{feature} -- --seed {seed} --ibp {protocol} --ms {ms}{calm}{planted}"
        )
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} ibp {}", self.seed, self.protocol)
    }
}

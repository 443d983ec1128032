//! Faults that a test build plants on purpose: each is a rule left out that Kafka once did not have either. Tests and
//! simulations plant one to show that they would notice it.
//!
//! Only the feature `planted-faults` makes [`Faults`] that hold any; no default build has it. Without it the value is
//! empty, every question is answered `false`, and nothing is left of this in the program. The machines get their faults
//! with their settings, so that each node of a simulation has its own.

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A follower cuts its log at its high watermark and asks for no epochs (before KIP-101).
    TruncationByHighWatermark,
    /// A leader tells where an epoch ends as if it always were the epoch that was asked for (before KIP-279).
    EpochEndWithoutEpoch,
    /// A follower takes the high watermark from an answer that tells it that the logs part (KAFKA-14704).
    HighWatermarkOfDivergingReply,
    /// A new controller leaves the replicas alone whose brokers died before it was elected (before KAFKA-3143).
    OfflineReplicasLeftAlone,
    /// A controller writes partition states whether its term is over or not (before KAFKA-6082).
    ControllerWritesUnfenced,
    /// Brokers obey a controller that has been replaced.
    StaleControllersObeyed,
    /// A leader confirms that records are deleted when its followers still begin with them (against KIP-107).
    DeletionsNotAwaited,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::TruncationByHighWatermark,
        Self::EpochEndWithoutEpoch,
        Self::HighWatermarkOfDivergingReply,
        Self::OfflineReplicasLeftAlone,
        Self::ControllerWritesUnfenced,
        Self::StaleControllersObeyed,
        Self::DeletionsNotAwaited,
    ];

    /// Its name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::TruncationByHighWatermark => "truncation-by-high-watermark",
            Self::EpochEndWithoutEpoch => "epoch-end-without-epoch",
            Self::HighWatermarkOfDivergingReply => "high-watermark-of-diverging-reply",
            Self::OfflineReplicasLeftAlone => "offline-replicas-left-alone",
            Self::ControllerWritesUnfenced => "controller-writes-unfenced",
            Self::StaleControllersObeyed => "stale-controllers-obeyed",
            Self::DeletionsNotAwaited => "deletions-not-awaited",
        }
    }
}

/// The faults that are planted; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    #[cfg(feature = "planted-faults")]
    planted: [bool; Fault::ALL.len()],
}

impl Faults {
    /// Whether a fault is planted.
    #[cfg(feature = "planted-faults")]
    pub fn has(self, fault: Fault) -> bool {
        self.planted.get(fault as usize).copied().unwrap_or(false)
    }

    /// Whether a fault is planted: never in this build.
    #[cfg(not(feature = "planted-faults"))]
    pub const fn has(self, _: Fault) -> bool {
        false
    }

    /// The same and one more.
    #[cfg(feature = "planted-faults")]
    #[must_use]
    pub fn and(mut self, fault: Fault) -> Self {
        if let Some(planted) = self.planted.get_mut(fault as usize) {
            *planted = true;
        }
        self
    }

    /// The faults whose names stand in a list with commas; the first name that is none is the error.
    #[cfg(feature = "planted-faults")]
    pub fn parse(names: &str) -> Result<Self, String> {
        names.split(',').map(str::trim).filter(|name| !name.is_empty()).try_fold(
            Self::default(),
            |faults, name| {
                let fault = Fault::ALL.into_iter().find(|fault| fault.name() == name);
                fault.map(|fault| faults.and(fault)).ok_or_else(|| name.to_owned())
            },
        )
    }
}

#[cfg(all(test, feature = "planted-faults"))]
mod tests {
    use super::*;

    #[test]
    fn faults_are_planted_by_name_one_by_one() {
        for fault in Fault::ALL {
            let faults = Faults::parse(fault.name()).unwrap();
            assert_eq!(faults, Faults::default().and(fault));
            assert!(Fault::ALL.into_iter().all(|other| faults.has(other) == (other == fault)), "{fault:?}");
        }
        let two = Faults::parse("epoch-end-without-epoch, offline-replicas-left-alone").unwrap();
        let both = [Fault::EpochEndWithoutEpoch, Fault::OfflineReplicasLeftAlone];
        assert!(Fault::ALL.into_iter().all(|fault| two.has(fault) == both.contains(&fault)));
        assert_eq!(Faults::parse(" ").unwrap(), Faults::default());
        assert_eq!(Faults::parse("epoch-end-without-epoch,bug").unwrap_err(), "bug");
    }
}

//! Brokers that do not reach each other, one way or both ways, while everybody else reaches them.

use std::sync::Arc;

use crate::broker_proxy::{Action, Applied, BrokerProxy, Gate, Rule};

/// What is held between brokers. Dropped, it heals.
#[derive(Debug)]
pub struct Parting {
    gates: Vec<Arc<Gate>>,
    rules: Vec<Applied>,
}

impl Parting {
    /// Holds the requests of `speaker` at the listener's proxy, and its answers at its own.
    pub(super) fn between(
        to_listener: &BrokerProxy,
        listener: i32,
        to_speaker: &BrokerProxy,
        speaker: i32,
    ) -> Self {
        let gate = Arc::new(Gate::new(false));
        let hold = || Action::Hold(Arc::clone(&gate));
        let requests = to_listener.rule(Rule::for_requests(hold()).of_broker(speaker));
        let answers = to_speaker.rule(Rule::for_responses(hold()).of_broker(listener));
        Self { gates: vec![gate], rules: vec![requests, answers] }
    }

    /// Holds what `other` holds too.
    pub(super) fn add(&mut self, mut other: Self) {
        self.gates.append(&mut other.gates);
        self.rules.append(&mut other.rules);
    }

    /// How many requests and answers have been held.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.rules.iter().map(Applied::count).sum()
    }

    /// Lets them reach each other again, beginning with what was held.
    pub fn heal(self) {}
}

impl Drop for Parting {
    fn drop(&mut self) {
        for rule in &self.rules {
            rule.remove();
        }
        for gate in &self.gates {
            gate.open();
        }
    }
}

//! Consumer groups on one broker: commits, rebalances, and the load of a large partition of offsets.

mod commits;
mod loading;
mod rebalance;

use std::time::Duration;

use anyhow::{Result, ensure};
use interop::broker::{Broker, Kind, Options};
use interop::raw::Connection;
use interop::wait;
use kafka_protocol::messages::{FindCoordinatorRequest, GroupId};
use kafka_protocol::protocol::StrBytes;

use crate::Effort;
use crate::contender;
use crate::figures::Figures;

const LIMIT: Duration = Duration::from_secs(300);
const NOT_AVAILABLE: i16 = 15;

/// All figures of both kinds: commits and rebalances in turn, then loads one after the other.
pub(crate) fn measure(kinds: &[Kind], effort: Effort, figures: &mut Figures) -> Result<()> {
    let mut brokers = kinds.iter().map(|kind| start(*kind)).collect::<Result<Vec<_>>>()?;
    for broker in &mut brokers {
        commits::prepare(broker, effort)?;
    }
    for round in 1..=effort.rounds {
        eprintln!("round {round} of {}", effort.rounds);
        for broker in &mut brokers {
            commits::measure(broker, effort, figures)?;
        }
        for broker in &mut brokers {
            rebalance::measure(broker, round, figures)?;
        }
    }
    drop(brokers);
    for kind in kinds {
        loading::measure(&mut start(*kind)?, effort, figures)?;
    }
    Ok(())
}

/// A fresh broker whose offsets are in one partition that nothing compacts meanwhile.
fn start(kind: Kind) -> Result<Broker> {
    let settings = [
        ("offsets.topic.num.partitions", "1"),
        ("log.cleaner.enable", "false"),
        // All members of a new group are in its first generation.
        ("group.initial.rebalance.delay.ms", "1000"),
    ];
    let options = Options { java_options: contender::options().java_options, ..Options::with(&settings) };
    Broker::start(kind, options)
}

fn group_id(name: &str) -> GroupId {
    GroupId(StrBytes::from_string(name.to_owned()))
}

/// Waits until a group has a coordinator.
fn until_coordinated(address: &str, group: &str) -> Result<()> {
    let mut connection = Connection::open(address)?;
    let request = FindCoordinatorRequest::default().with_key(group_id(group).0);
    wait::until("a coordinator", LIMIT, || {
        let code = connection.call(2, &request)?.error_code;
        ensure!(code == 0 || code == NOT_AVAILABLE, "FindCoordinator: error {code}");
        Ok((code == 0).then_some(()))
    })
}

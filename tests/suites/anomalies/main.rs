//! How replicas agree after everything that can happen to leaders (KIP-101, KIP-279, KIP-595), on real processes: a
//! proxy between them holds or drops exactly the message that a story names, and a test in the place of their controller
//! says who leads. Every story is told at `inter.broker.protocol.version` 2.6 and 3.9.

mod data_loss;
mod divergence;
mod fencing;
mod histories;
mod judge;
mod lab;

use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow, bail, ensure};
use interop::folders;
use interop::zookeeper::Zookeeper;

use judge::FOUND;
use lab::{Protocol, Stage};

/// How many stories are told side by side.
const SIDE_BY_SIDE: usize = 6;

type Story = (&'static str, fn(&Stage) -> Result<()>);

/// Those that fail when the high watermark decides where a log is cut, as before KIP-101.
const DECIDED_BY_EPOCHS: [Story; 6] = [
    ("data-loss", data_loss::acknowledged),
    ("data-loss-newer-records", data_loss::newer_records),
    ("data-loss-silent-leader", data_loss::silent_leader),
    ("divergence", divergence::uncommitted),
    ("divergence-lost-page-cache", divergence::lost_page_cache),
    ("divergence-other-batches", divergence::other_batches),
];

const OTHERS: [Story; 12] = [
    ("divergence-silent-leader", divergence::silent_leader),
    ("fast-failover", histories::fast_failover),
    ("two-rounds", histories::two_rounds),
    ("epochs-without-records", histories::epochs_without_records),
    ("follower-below-the-leaders-start", histories::follower_below_the_leaders_start),
    ("epoch-below-the-leaders-first", histories::epoch_below_the_leaders_first),
    ("epochs-appear-with-records", histories::epochs_appear_with_records),
    ("unclean-ping-pong", histories::unclean_ping_pong),
    ("leader-lost-its-tail", histories::leader_lost_its_tail),
    ("leader-behind-the-follower", fencing::leader_behind_the_follower),
    ("follower-behind-the-leader", fencing::follower_behind_the_leader),
    ("latest-offset-after-election", fencing::latest_offset_after_election),
];

/// Tells stories over one ZooKeeper, some at a time; each result with its name. `$BLUMFELD_TEST_STORY` is a part of the
/// names of those that are wanted.
fn tell(
    stories: &[Story],
    protocol: Protocol,
    planted_faults: Option<&'static str>,
) -> Result<Vec<(&'static str, Result<()>)>> {
    let folder = folders::temporary("blumfeld-anomalies-")?;
    let zookeeper = Zookeeper::start(folder.path())?;
    let wanted = std::env::var("BLUMFELD_TEST_STORY").unwrap_or_default();
    let stories: Vec<Story> = stories.iter().filter(|(name, _)| name.contains(&wanted)).copied().collect();
    let (next, results) = (Mutex::new(stories.into_iter()), Mutex::new(Vec::new()));
    let lock = || results.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        let tellers: Vec<_> = (0..SIDE_BY_SIDE)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let story = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some((name, story)) = story else { return };
                        let zookeeper = zookeeper.address();
                        let result = story(&Stage { zookeeper, protocol, planted_faults, story: name });
                        lock().push((name, result));
                    }
                })
            })
            .collect();
        tellers.into_iter().try_for_each(|it| it.join().map_err(|_| anyhow!("a teller has panicked")))
    })?;
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// All stories must come to their end.
fn all_end_well(protocol: Protocol) -> Result<()> {
    let failed: Vec<String> = tell(&[&DECIDED_BY_EPOCHS[..], &OTHERS].concat(), protocol, None)?
        .into_iter()
        .filter_map(|(name, result)| Some(format!("{name}: {:#}", result.err()?)))
        .collect();
    ensure!(failed.is_empty(), "{protocol:?}:\n{}", failed.join("\n"));
    Ok(())
}

#[test]
fn replicas_that_ask_for_the_ends_of_epochs_agree() -> Result<()> {
    all_end_well(Protocol::Asking)
}

#[test]
fn replicas_that_are_told_by_fetches_agree() -> Result<()> {
    all_end_well(Protocol::ByFetch)
}

/// As before KIP-101: the stories must find it.
#[test]
fn truncation_by_the_high_watermark_is_found() -> Result<()> {
    all_find(&DECIDED_BY_EPOCHS, "truncation-by-high-watermark")
}

/// As before KIP-279.
#[test]
fn an_end_of_an_epoch_without_the_epoch_is_found() -> Result<()> {
    all_find(&[("fast-failover", histories::fast_failover)], "epoch-end-without-epoch")
}

/// Each story must come to another end with this fault.
fn all_find(stories: &[Story], fault: &'static str) -> Result<()> {
    for protocol in [Protocol::Asking, Protocol::ByFetch] {
        let told = tell(stories, protocol, Some(fault))?;
        for (name, result) in told {
            let Err(error) = result else { bail!("{protocol:?}: {name} ends well") };
            println!("{protocol:?}: {name}: {error:#}");
            let is_found = error.to_string() == FOUND;
            ensure!(is_found, "{name}: {:#}", error.context("something else went wrong"));
        }
    }
    Ok(())
}

//! A controller that is stopped in the middle of a batch, past the end of its session, and goes on when another is in
//! office: nothing that it still wants to write lands, what it still sends is refused, and it works when elected again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::admin::{self, Election};
use interop::broker::Kind;
use interop::broker_proxy::{Action, Gate, Rule};
use interop::calls;
use interop::cluster::{Cluster, LIMIT, Plan};
use interop::raw::{Answer, Connection, frame};
use interop::wait;
use kafka_protocol::messages::ElectLeadersRequest;
use kafka_protocol::messages::elect_leaders_request::TopicPartitions;

use super::case::{A, B, C};

/// LeaderAndIsr, StopReplica, UpdateMetadata.
const CONTROL_REQUESTS: [i16; 3] = [4, 5, 6];
const STALE_CONTROLLER_EPOCH: i16 = 11;
/// What does not happen where nobody is fenced, and how long it is waited for then.
pub(crate) const REFUSED: &str = "requests of the old term that are refused";
const PLANTED_LIMIT: Duration = Duration::from_secs(10);
/// Where the error of a flexible response stands: behind its correlation id and tags.
const ERROR_AT: usize = 5;

/// Responses to the old controller that say that it is one.
fn count_stale(cluster: &Cluster) -> Result<Arc<AtomicU64>> {
    let stale = Arc::new(AtomicU64::new(0));
    for id in [A, B] {
        for key in CONTROL_REQUESTS {
            let seen = Arc::clone(&stale);
            let look = Rule::for_responses(Action::Pass).of_key(key).of_broker(C);
            cluster.proxy(id)?.rule(look.where_frame(move |_, frame| {
                let error = frame.get(ERROR_AT..).and_then(|rest| rest.first_chunk());
                if error.copied().map(i16::from_be_bytes) == Some(STALE_CONTROLLER_EPOCH) {
                    seen.fetch_add(1, Ordering::SeqCst);
                }
                false
            }));
        }
    }
    Ok(stale)
}

/// Data and versions of all that a controller writes.
fn written(cluster: &Cluster) -> Result<Vec<(String, Vec<u8>, i32)>> {
    let mut tree = cluster.tree()?;
    let mut found = Vec::new();
    for root in ["/brokers/topics", "/controller", "/controller_epoch", "/admin", "/config"] {
        for node in tree.client().tree(root)? {
            if let Some((data, version)) = tree.client().versioned_data(&node.path)? {
                found.push((node.path, data.unwrap_or_default(), version));
            }
        }
    }
    Ok(found)
}

/// A request for the preferred leader of `moved`, under way to a broker that cannot answer yet.
fn ask_to_elect(address: &str) -> Result<Connection> {
    let partitions =
        TopicPartitions::default().with_topic(calls::topic_name("moved")).with_partitions(vec![0]);
    let request =
        ElectLeadersRequest::default().with_topic_partitions(Some(vec![partitions])).with_timeout_ms(5_000);
    let mut connection = Connection::open(address)?;
    connection.send(&frame(2, 1, &request)?)?;
    Ok(connection)
}

fn begin(kind: Kind, planted_faults: Option<&'static str>) -> Result<Cluster> {
    let mut plan = Plan::of(kind, 3).proxied().with(&[("auto.leader.rebalance.enable", "false")]);
    plan.session_timeout_ms = 4_000;
    plan.options.planted_faults = planted_faults;
    let mut cluster = Cluster::prepare(&plan)?;
    cluster.start_brokers(&[C])?;
    cluster.start_brokers(&[A, B])?;
    let controller = address(&cluster, C)?;
    let code = admin::create_assigned(&controller, "moved", &[&[A, B]])?;
    ensure!(code == 0, "CreateTopics of moved: error {code}");
    cluster.until_in_sync("moved")?;
    // The preferred leader is in sync and does not lead.
    cluster.broker(A)?.stop()?;
    cluster.until_state("moved", 0, "led by B", |state| state.leader == B)?;
    cluster.start_brokers(&[A])?;
    cluster.until_in_sync("moved")?;
    ensure!(cluster.until_controller()? == C, "C has lost its office");
    Ok(cluster)
}

fn address(cluster: &Cluster, id: i32) -> Result<String> {
    cluster.addresses().get(usize::try_from(id - 1)?).cloned().context("no such broker")
}

/// The story, for either kind; the brokers may be built to fail.
pub(crate) fn zombie(kind: Kind, planted_faults: Option<&'static str>) -> Result<()> {
    let mut cluster = begin(kind, planted_faults)?;
    let stale = count_stale(&cluster)?;
    let gate = Arc::new(Gate::new(false));
    for id in [A, B] {
        for key in CONTROL_REQUESTS {
            let hold = Rule::for_requests(Action::Hold(Arc::clone(&gate))).of_key(key).of_broker(C);
            cluster.proxy(id)?.rule(hold);
        }
    }

    // A batch is under way: the state is written, and both brokers are yet to hear of it. What is held may be older
    // news of `moved`; then the batch waits behind it.
    let controller = address(&cluster, C)?;
    let creating = std::thread::spawn({
        let controller = controller.clone();
        move || admin::create_assigned(&controller, "begun", &[&[A, B]])
    });
    let mut tree = cluster.tree()?;
    wait::until("a state that is written, and control requests that are held", LIMIT, || {
        Ok((tree.state("begun", 0)?.is_some() && gate.waiting() >= 2).then_some(()))
    })?;
    let term = tree.controller_epoch()?;
    cluster.broker(C)?.freeze()?;
    cluster.until_all_known()?;
    let successor = cluster.until_controller()?;
    ensure!(successor != C && cluster.tree()?.controller_epoch()? == term + 1, "{successor} is in office");
    cluster.until_agreed("begun", 1)?;

    let mut election = ask_to_elect(&controller)?;
    let before = written(&cluster)?;
    gate.open();
    let limit = if planted_faults.is_some() { PLANTED_LIMIT } else { LIMIT };
    wait::until(REFUSED, limit, || Ok((stale.load(Ordering::SeqCst) > 0).then_some(())))?;
    cluster.broker(C)?.thaw()?;
    cluster.until_all_known()?;
    let answer = election.receive()?;
    ensure!(!matches!(answer, Answer::Silence), "C does not answer");
    // Whatever it makes of the creation, that has happened.
    let _answer = creating.join();
    let after = written(&cluster)?;
    ensure!(after == before, "the old controller has written: {before:?}\nnow: {after:?}");

    let mut tree = cluster.tree()?;
    wait::until("C in office again", LIMIT, || match tree.controller()? {
        Some(C) => Ok(Some(())),
        Some(_) => tree.depose_controller().map(|_| None),
        None => Ok(None),
    })?;
    cluster.until_all_known()?;
    let code = admin::create_assigned(&controller, "again", &[&[B, A]])?;
    ensure!(code == 0, "CreateTopics in the new term: error {code}");
    cluster.until_agreed("again", 1)?;
    let code = admin::elect_leader(&controller, Election::Preferred, "moved", 0)?;
    ensure!(code == 0, "the preferred leader in the new term: error {code}");
    cluster.until_state("moved", 0, "led by A", |state| state.leader == A)?;
    cluster.until_agreed("moved", 1)
}

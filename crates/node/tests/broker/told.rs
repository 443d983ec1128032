//! What a broker tells of its partitions when it is asked: what was lost, what happened, and why.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::cases_tools::good;
use crate::control_tools::order;
use crate::harness::Node;
use crate::pair::{Pair, Way};
use crate::records::batch;

/// Longer than `replica.fetch.backoff.ms` and `replica.fetch.wait.max.ms`.
const PAUSE: Duration = Duration::from_millis(1_100);

fn explained(node: &Node, topic: &str) -> Value {
    serde_json::from_str(&node.explained(topic)).unwrap()
}

/// The entries of a history.
fn entries(history: &Value) -> Vec<Value> {
    history.as_array().unwrap().clone()
}

/// The entry whose text begins so.
fn entry(history: &[Value], begins: &str) -> Value {
    let found = history.iter().rfind(|it| it["what"].as_str().unwrap().starts_with(begins));
    found.unwrap_or_else(|| panic!("no {begins} in {history:#?}")).clone()
}

fn metric(node: &Node, name: &str) -> String {
    let text = node.broker.render_metrics();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}")).to_owned()
}

/// A broker that had three records below its high watermark, was killed, and found its directory changed by `edit`.
fn restarted(edit: impl FnOnce(&Path)) -> Node {
    let node = Node::start(&[]);
    node.obeys(&order("t", 0, 0, &[0]));
    node.produce("t", 0, good(3)).unwrap();
    node.advance(Duration::from_secs(6));
    node.broker.housekeep();
    node.restart_killed(&[], edit)
}

#[test]
fn a_log_that_comes_back_without_records_below_its_high_watermark_is_told_everywhere() {
    let lose = |logs: &Path| std::fs::write(logs.join("t-0/00000000000000000000.log"), b"").unwrap();
    let node = restarted(lose);
    let text = "came back ending at 0, below its high watermark 3: it had not been closed, and what was not synced is \
                gone or damaged";
    let recovery: Value = serde_json::from_str(&node.broker.recovery()).unwrap();
    let loss = &recovery["losses"][0];
    assert_eq!(
        (&loss["topic"], &loss["highWatermark"], &loss["logEndOffset"]),
        (&"t".into(), &3.into(), &0.into())
    );
    assert_eq!(metric(&node, "blumfeld_log_lost_tails"), "1.0");
    node.obeys(&order("t", 0, 1, &[0]));
    let told = explained(&node, "t");
    assert_eq!(told["log"]["loss"], text);
    let first = &told["log"]["history"][0];
    assert_eq!((&first["what"], &first["cause"]), (&text.into(), &"the log was opened".into()));
}

#[test]
fn a_log_that_is_gone_is_told_when_it_is_made_anew() {
    let node = restarted(|logs| std::fs::remove_dir_all(logs.join("t-0")).unwrap());
    node.obeys(&order("t", 0, 1, &[0]));
    let told = explained(&node, "t");
    assert_eq!(
        told["log"]["loss"],
        "came back ending at 0, below its high watermark 3: its directory was removed"
    );
    assert_eq!(metric(&node, "blumfeld_log_lost_tails"), "1.0");
}

#[test]
fn a_log_that_is_whole_tells_of_no_loss() {
    let node = restarted(|_| {});
    node.obeys(&order("t", 0, 1, &[0]));
    assert_eq!(explained(&node, "t")["log"]["loss"], Value::Null);
    assert_eq!(metric(&node, "blumfeld_log_lost_tails"), "0.0");
}

/// A truncation below the high watermark follows from the request that made the broker follow the leader that wants it.
#[test]
fn a_truncation_keeps_the_leaders_answer_and_the_request_before_it() {
    let mut pair = Pair::start(2, &[("replica.lag.time.max.ms", "3600000")]);
    pair.lead("t", 0, 0, &[0, 1]);
    pair.node(0).produce("t", 0, batch(&["A"])).unwrap();
    pair.set_way(0, Way::Cut);
    pair.lead("t", 0, 1, &[0]);
    pair.node(0).produce("t", 0, batch(&["B"])).unwrap();
    pair.set_way(0, Way::Open);
    pair.lead("t", 1, 2, &[1]);
    pair.pass(PAUSE);
    let history = entries(&explained(pair.node(0), "t")["log"]["history"]);
    let cut = entry(&history, "truncated from 2 to 1, high watermark 2");
    let follows = entry(&history, "follows 1 in epoch 2");
    assert_eq!(cut["causedByEvent"], follows["event"]);
    assert_eq!(cut["cause"], "leader 1 answered");
    assert_eq!(follows["cause"], "LeaderAndIsr of controller 1 in controller epoch 2");
    assert_eq!((&follows["leaderEpochBefore"], &follows["leaderEpoch"]), (&1.into(), &2.into()));
    assert_eq!(
        (&follows["logEndOffset"], &cut["logEndOffset"], &cut["highWatermark"]),
        (&2.into(), &1.into(), &1.into())
    );
    assert_eq!(metric(pair.node(0), "blumfeld_log_truncations_total"), "1");
    assert_eq!(metric(pair.node(0), "blumfeld_log_truncations_below_high_watermark_total"), "1");
    assert_eq!(metric(pair.node(1), "blumfeld_log_truncations_total"), "0");
    let leads = entries(&explained(pair.node(1), "t")["log"]["history"]);
    let leads = entry(&leads, "leads in epoch 2 from offset 1");
    assert_eq!((&leads["partitionEpochBefore"], &leads["partitionEpoch"]), (&1.into(), &2.into()));
}

/// After compaction a log may end with an empty segment far above its last batch; with the power lost, it may not know the
/// epochs in between. What the leader has it cut then is nothing.
#[test]
fn a_truncation_that_takes_no_record_is_no_loss() {
    let settings = [("replica.lag.time.max.ms", "3600000"), ("log.cleanup.policy", "compact")];
    let mut pair = Pair::start(2, &settings);
    pair.lead("t", 1, 0, &[0, 1]);
    pair.node(1).produce("t", 0, batch(&["A"])).unwrap();
    pair.lead("t", 1, 1, &[0, 1]);
    pair.node(1).produce("t", 0, batch(&["B"])).unwrap();
    pair.node(1).produce("t", 0, batch(&["C"])).unwrap();
    pair.pass(Duration::from_secs(6));
    pair.node(0).broker.housekeep();
    pair.kill(0);
    let one_batch = batch(&["A"]).len() as u64;
    pair.edit(0, |logs| {
        let dir = logs.join("t-0");
        let first = std::fs::File::options().write(true).open(dir.join("00000000000000000000.log")).unwrap();
        first.set_len(one_batch).unwrap();
        std::fs::write(dir.join("00000000000000000003.log"), b"").unwrap();
        std::fs::write(dir.join("leader-epoch-checkpoint"), "0\n1\n0 0\n").unwrap();
    });
    pair.restart(0);
    assert_eq!(pair.offsets(0, "t").2, 3, "the log ends where its last segment begins");
    pair.pass(PAUSE);
    let history = entries(&explained(pair.node(0), "t")["log"]["history"]);
    entry(&history, "truncated from 3 to 1, high watermark 3");
    assert_eq!(metric(pair.node(0), "blumfeld_log_truncations_below_high_watermark_total"), "0");
    assert_eq!(pair.log_bytes(0, "t"), pair.log_bytes(1, "t"));
}

#[test]
fn what_happened_to_a_replica_is_told_after_its_deletion() {
    let node = Node::start(&[]);
    node.obeys(&order("t", 0, 0, &[0]));
    node.stop(&[("t", 0, false)]);
    node.stop(&[("t", 1, true)]);
    let told = explained(&node, "t");
    assert_eq!(
        (&told["log"], &told["state"]),
        (&Value::Null, &"the cluster does not know it, or no longer".into())
    );
    let removed = entries(&told["removed"]);
    let whats: Vec<_> = removed.iter().map(|it| it["what"].as_str().unwrap()).collect();
    assert_eq!(
        whats,
        ["leads in epoch 0 from offset 0, ISR [0]", "the replica is stopped", "the replica is deleted"]
    );
    assert_eq!(removed[2]["cause"], "StopReplica of controller 1 in controller epoch 2");
    // Another one of the same name begins a history of its own.
    node.obeys(&order("t", 0, 0, &[0]));
    let told = explained(&node, "t");
    assert_eq!((entries(&told["removed"]).len(), entries(&told["log"]["history"]).len()), (3, 1));
}

#[test]
fn a_partition_that_nobody_has_heard_of_is_not_explained() {
    assert_eq!(Node::start(&[]).broker.explain("t", 0), None);
}

/// The last things are kept, and no more.
#[test]
fn a_history_is_bounded() {
    let node = Node::start(&[]);
    for epoch in 0..40 {
        node.obeys(&order("t", 0, epoch, &[0]));
    }
    let history = entries(&explained(&node, "t")["log"]["history"]);
    assert_eq!(history.len(), 16);
    assert_eq!((&history[0]["leaderEpoch"], &history[15]["leaderEpoch"]), (&24.into(), &39.into()));
}

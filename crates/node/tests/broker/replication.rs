//! Replication between brokers: what a follower has is what its leader has, whatever happened before.

use std::time::Duration;

use bytes::Bytes;
use kernel::replica::fetcher::fetcher_of;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use wire::messages::{
    DeleteRecordsRequest, DeleteRecordsResponse, FetchResponse, ProduceRequest, ProduceResponse,
};
use wire::types::{TopicId, TopicPartition};

use crate::cases_tools::{good, sized};
use crate::control_tools::{Order, order};
use crate::harness::{Node, answer, frame, produce_request};
use crate::pair::{Pair, Way};
use crate::records::{batch, fetch_request, values};

/// Longer than `replica.fetch.backoff.ms`.
const BACKOFF: Duration = Duration::from_millis(1_100);
/// Longer than `replica.fetch.wait.max.ms`.
const WAIT: Duration = Duration::from_millis(600);
/// Versions in which a leader tells divergence in its answer to a fetch, and in which a follower asks before it fetches.
const PROTOCOLS: [&str; 3] = ["3.9", "2.7-IV0", "2.0-IV0"];
/// A version whose consumers may read from followers.
const FROM_FOLLOWERS: i16 = 12;
/// Nobody leaves the ISR for being slow.
const NO_LAG: (&str, &str) = ("replica.lag.time.max.ms", "3600000");

/// Two brokers with topic `t`, led by broker 0 in epoch 0, both in sync.
fn pair(settings: &[(&str, &str)]) -> Pair {
    let mut settings = settings.to_vec();
    settings.push(NO_LAG);
    let mut pair = Pair::start(2, &settings);
    pair.lead("t", 0, 0, &[0, 1]);
    pair
}

/// Produces with acks 1.
fn append(node: &Node, records: Bytes) {
    let response: ProduceResponse = node.call(9, &produce_request("t", 0, records, 1));
    let it = &response.responses[0].partition_responses[0];
    assert_eq!(ErrorCode::from_code(it.error_code), Some(ErrorCode::None));
}

fn same_files(pair: &Pair) {
    let [one, other] = [0, 1].map(|id| pair.log_bytes(id, "t"));
    assert!(!one.is_empty());
    assert!(one == other, "{} bytes here, {} there", one.len(), other.len());
}

fn read_from(node: &Node, offset: i64) -> Vec<String> {
    values(&node.call(FROM_FOLLOWERS, &fetch_request("t", offset, 0, 0)))
}

/// A metric, with its labels.
fn metric(node: &Node, series: &str) -> String {
    let text = node.broker.render_metrics();
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{text}")).to_owned()
}

#[test]
fn a_follower_has_the_bytes_and_the_epochs_of_its_leader() {
    for protocol in PROTOCOLS {
        let mut pair = pair(&[("inter.broker.protocol.version", protocol)]);
        for count in [1, 3, 2] {
            append(pair.node(0), good(count));
        }
        same_files(&pair);
        assert_eq!((pair.offsets(1, "t").2, pair.epochs(1, "t")), (6, vec![(0, 0)]), "{protocol}");
        // They change places; the new epoch is known to the follower with its first record.
        pair.lead("t", 1, 1, &[0, 1]);
        assert_eq!(pair.epochs(0, "t"), [(0, 0)], "{protocol}");
        append(pair.node(1), good(2));
        same_files(&pair);
        assert_eq!((pair.offsets(0, "t").2, pair.epochs(0, "t")), (8, vec![(0, 0), (1, 6)]), "{protocol}");
    }
}

#[test]
fn a_produce_that_wants_all_replicas_is_answered_when_the_follower_has_the_records() {
    let pair = pair(&[]);
    assert_eq!(pair.node(0).produce("t", 0, good(2)), Ok(0));
    pair.set_way(0, Way::Cut);
    // The fetch that waited is answered, and the answer is lost; the next one does not arrive.
    let request = ProduceRequest { timeout_ms: 60_000, ..produce_request("t", 0, good(1), -1) };
    let waiting = pair.node(0).submit(frame(9, &request));
    pair.pass(BACKOFF);
    assert!(waiting.try_recv().is_err());
    pair.set_way(0, Way::Open);
    pair.pass(BACKOFF);
    let response: ProduceResponse = answer(&waiting, 9);
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    same_files(&pair);
}

/// KIP-101, first scenario.
#[test]
fn what_was_acknowledged_survives_a_restart_of_the_follower_and_then_the_end_of_the_leader() {
    for protocol in PROTOCOLS {
        let mut pair = pair(&[("inter.broker.protocol.version", protocol)]);
        pair.node(0).produce("t", 0, batch(&["A"])).unwrap();
        // The follower has B and has told so; that B is committed it does not hear.
        pair.node(0).produce("t", 0, batch(&["B"])).unwrap();
        assert_eq!(pair.offsets(1, "t").1, 1, "{protocol}");
        pair.set_way(0, Way::Cut);
        pair.kill(1);
        pair.restart(1);
        pair.kill(0);
        pair.lead("t", 1, 1, &[1]);
        assert_eq!(read_from(pair.node(1), 0), ["A", "B"], "{protocol}");
        pair.set_way(0, Way::Open);
        append(pair.node(1), batch(&["C"]));
        pair.restart(0);
        pair.pass(WAIT);
        assert_eq!(read_from(pair.node(0), 0), ["A", "B", "C"], "{protocol}");
        same_files(&pair);
        for id in [0, 1] {
            let told = pair.node(id).explained("t");
            assert!(!told.contains("truncated from 2 to 1"), "{protocol}: {told}");
        }
        assert_eq!(pair.epochs(0, "t"), [(0, 0), (1, 2)], "{protocol}");
    }
}

/// KIP-101, second scenario.
#[test]
fn a_leader_that_was_replaced_out_of_sync_gives_up_its_own_records_and_says_so() {
    for protocol in PROTOCOLS {
        let mut pair = pair(&[("inter.broker.protocol.version", protocol)]);
        pair.node(0).produce("t", 0, batch(&["A"])).unwrap();
        pair.set_way(0, Way::Cut);
        append(pair.node(0), batch(&["B"]));
        // The follower has left the ISR, so B is committed by the leader alone, and in the checkpoint.
        pair.lead("t", 0, 1, &[0]);
        pair.pass(Duration::from_secs(6));
        pair.node(0).broker.housekeep();
        assert_eq!(pair.offsets(0, "t"), (0, 2, 2), "{protocol}");
        pair.kill(0);
        pair.set_way(0, Way::Open);
        pair.lead("t", 1, 2, &[1]);
        append(pair.node(1), batch(&["C", "D"]));
        pair.restart(0);
        pair.pass(WAIT);
        assert_eq!(read_from(pair.node(0), 0), ["A", "C", "D"], "{protocol}");
        same_files(&pair);
        assert_eq!(pair.epochs(0, "t"), [(0, 0), (2, 1)], "{protocol}");
        let told = pair.node(0).explained("t");
        assert!(
            told.contains("truncated from 2 to 1, high watermark 2: at the leader, leader epoch 0"),
            "{told}"
        );
    }
}

#[test]
fn a_fenced_follower_rests_until_it_hears_of_the_new_epoch() {
    let pair = pair(&[]);
    let failed = r#"kafka_server_replicafetchermanager_failedpartitionscount{clientId="Replica"}"#;
    pair.node(0).obeys(&order("t", 0, 1, &[0, 1]));
    assert_eq!(metric(pair.node(1), failed), "1.0");
    append(pair.node(0), good(1));
    pair.pass(BACKOFF);
    assert_eq!(pair.offsets(1, "t").2, 0);
    pair.node(1).obeys(&order("t", 0, 1, &[0, 1]));
    assert_eq!(metric(pair.node(1), failed), "0.0");
    same_files(&pair);
}

#[test]
fn a_follower_that_hears_first_of_a_new_epoch_waits_for_its_leader() {
    let pair = pair(&[]);
    append(pair.node(0), good(1));
    pair.node(1).obeys(&order("t", 0, 1, &[0, 1]));
    pair.pass(BACKOFF);
    append(pair.node(0), good(1));
    assert_eq!(pair.offsets(1, "t").2, 1);
    pair.node(0).obeys(&order("t", 0, 1, &[0, 1]));
    pair.pass(BACKOFF);
    same_files(&pair);
}

#[test]
fn a_leader_that_comes_back_without_its_sessions_is_followed_on() {
    let mut pair = pair(&[]);
    append(pair.node(0), good(2));
    pair.pass(WAIT);
    pair.kill(0);
    pair.pass(BACKOFF);
    pair.restart(0);
    pair.lead("t", 0, 1, &[0, 1]);
    pair.pass(BACKOFF);
    append(pair.node(0), good(3));
    same_files(&pair);
}

#[test]
fn a_follower_catches_up_within_the_limits_of_its_fetches() {
    let settings = [
        ("replica.fetch.max.bytes", "2000"),
        ("replica.fetch.response.max.bytes", "3000"),
        ("segment.bytes", "10000"),
        ("log.segment.bytes", "10000"),
    ];
    let pair = pair(&settings);
    pair.set_way(0, Way::Cut);
    for at in 0..40 {
        append(pair.node(0), good(1 + at % 7));
        // Larger than any limit, and so alone in its answer.
        if at % 10 == 0 {
            append(pair.node(0), sized(5_000));
        }
    }
    pair.set_way(0, Way::Open);
    pair.pass(BACKOFF);
    same_files(&pair);
    let fetches = r#"kafka_server_fetcherstats_requests_total{clientId="ReplicaFetcherThread-0-0",broker="host0:9092"}"#;
    assert!(metric(pair.node(1), fetches).parse::<u64>().unwrap() > 10);
}

/// KAFKA-6975.
#[test]
fn a_follower_that_begins_inside_a_batch_has_the_whole_batch_and_the_leaders_log_start() {
    let mut pair = pair(&[]);
    pair.set_way(0, Way::Cut);
    pair.lead("t", 0, 1, &[0]);
    append(pair.node(0), good(5));
    append(pair.node(0), good(1));
    let partition = DeleteRecordsPartition { partition_index: 0, offset: 3 };
    let topic = DeleteRecordsTopic { name: Str::from("t"), partitions: vec![partition] };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 60_000 };
    let waiting = pair.node(0).submit(frame(2, &request));
    pair.set_way(0, Way::Open);
    pair.pass(BACKOFF);
    pair.pass(WAIT);
    assert_eq!(pair.offsets(0, "t"), (3, 6, 6));
    assert_eq!(pair.offsets(1, "t"), (3, 6, 6), "{}", pair.node(1).explained("t"));
    same_files(&pair);
    // It made room for the whole batch, and nothing is said to be lost.
    assert_eq!(metric(pair.node(1), "blumfeld_log_truncations_below_high_watermark_total"), "0");
    let response: DeleteRecordsResponse = answer(&waiting, 2);
    assert_eq!(response.topics[0].partitions[0].low_watermark, 3);
}

/// KAFKA-14334.
#[test]
fn a_consumer_that_waits_at_a_follower_is_answered_when_the_high_watermark_comes() {
    let pair = pair(&[]);
    pair.node(0).produce("t", 0, batch(&["A"])).unwrap();
    pair.pass(WAIT);
    assert_eq!(read_from(pair.node(1), 0), ["A"]);
    let waiting = pair.node(1).submit(frame(FROM_FOLLOWERS, &fetch_request("t", 1, 60_000, 1)));
    append(pair.node(0), batch(&["B"]));
    // B is here, but not known to be committed.
    assert_eq!(pair.offsets(1, "t"), (0, 1, 2));
    assert!(waiting.try_recv().is_err());
    pair.pass(WAIT);
    assert_eq!(values(&answer(&waiting, FROM_FOLLOWERS)), ["B"]);
}

#[test]
fn a_follower_serves_consumers_that_may_read_from_it_and_no_others() {
    let pair = pair(&[]);
    pair.node(0).produce("t", 0, batch(&["A"])).unwrap();
    pair.pass(WAIT);
    for version in 4..=FROM_FOLLOWERS {
        let response: FetchResponse = pair.node(1).call(version, &fetch_request("t", 0, 0, 0));
        let told = ErrorCode::from_code(response.responses[0].partitions[0].error_code);
        let expected = if version < 11 { ErrorCode::NotLeaderOrFollower } else { ErrorCode::None };
        assert_eq!(told, Some(expected), "v{version}");
    }
}

/// KAFKA-10371.
#[test]
fn a_replica_that_is_stopped_is_not_fetched_any_more() {
    let pair = pair(&[]);
    append(pair.node(0), good(1));
    assert_eq!(pair.node(1).stop(&[("t", 1, true)]).error_code, 0);
    append(pair.node(0), good(1));
    pair.pass(BACKOFF);
    assert!(!pair.node(1).logs().join("t-0").exists());
    // The same name, made anew, begins from the start.
    pair.node(1).obeys(&order("t", 0, 0, &[0, 1]));
    pair.pass(BACKOFF);
    same_files(&pair);
}

/// KAFKA-13772.
#[test]
fn partitions_are_spread_over_the_fetchers_by_their_hash() {
    let mut pair = Pair::start(2, &[("num.replica.fetchers", "3"), NO_LAG]);
    let topics: Vec<_> = (0..12).map(|at| format!("topic{at}")).collect();
    for (at, topic) in (1..).zip(&topics) {
        pair.lead_by(&Order { id: TopicId([at; 16]), ..order(topic, 0, 0, &[0, 1]) });
    }
    // Lags are known with the first answers, and who comes while a fetch waits is asked for after it.
    pair.pass(2 * WAIT);
    let text = pair.node(1).broker.render_metrics();
    for topic in &topics {
        let number = fetcher_of(&TopicPartition::new(topic.as_str(), 0), 3);
        let labels =
            format!(r#"{{clientId="ReplicaFetcherThread-{number}-0",topic="{topic}",partition="0"}}"#);
        let series = format!("kafka_server_fetcherlagmetrics_consumerlag{labels} 0.0");
        assert!(text.contains(&series), "no {series} in\n{text}");
    }
}

#[test]
fn what_is_copied_is_counted_on_both_sides() {
    let pair = pair(&[]);
    append(pair.node(0), good(4));
    pair.pass(WAIT);
    let bytes = pair.log_bytes(0, "t").len().to_string();
    for (node, direction) in [(0, "out"), (1, "in")] {
        let series = format!("kafka_server_brokertopicmetrics_replicationbytes{direction}_total");
        assert_eq!(metric(pair.node(node), &series), bytes);
    }
    // Followers are no clients.
    assert_eq!(metric(pair.node(0), "kafka_server_brokertopicmetrics_bytesout_total"), "0");
    let manager = |name| {
        metric(pair.node(1), &format!(r#"kafka_server_replicafetchermanager_{name}{{clientId="Replica"}}"#))
    };
    assert_eq!((manager("maxlag"), manager("deadthreadcount")), ("0.0".to_owned(), "0.0".to_owned()));
    pair.pass(Duration::from_secs(6));
    // A fetch that waits is asked anew twice a second.
    let rate: f64 = manager("minfetchrate").parse().unwrap();
    assert!((1.0..4.0).contains(&rate), "{rate}");
    let expired = r#"kafka_server_delayedfetchmetrics_expires_total{fetcherType="follower"}"#;
    assert_ne!(metric(pair.node(0), expired), "0");
}

//! Consumers that are sent to a replica in their rack (KIP-392). Broker 0 leads `t` in rack `r0`, broker 1 follows in `r1`.

use std::time::Duration;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use wire::messages::fetch_response::PartitionData;
use wire::messages::{
    DeleteRecordsRequest, DeleteRecordsResponse, FetchRequest, FetchResponse, ProduceResponse,
    UpdateMetadataResponse,
};

use crate::cases_tools::{batches_of, good};
use crate::control_tools::{order, update_metadata};
use crate::harness::{Node, answer, frame, produce_request};
use crate::pair::{Pair, Way};
use crate::records::fetch_request;

const BY_RACK: (&str, &str) =
    ("replica.selector.class", "org.apache.kafka.common.replica.RackAwareReplicaSelector");
/// The first version that tells the consumer's rack.
const FIRST_WITH_RACK: i16 = 11;
/// The last version that names topics by name.
const BY_NAME: i16 = 12;
/// Longer than `replica.fetch.wait.max.ms`.
const WAIT: Duration = Duration::from_millis(600);

/// The pair with three records that both have; brokers hear that all of `live` are alive.
fn pair(settings: &[(&str, &str)], live: &[i32]) -> Pair {
    let mut settings = settings.to_vec();
    settings.push(("replica.lag.time.max.ms", "3600000"));
    let mut pair = Pair::start(2, &settings);
    pair.lead("t", 0, 0, &[0, 1]);
    pair.node(0).produce("t", 0, good(3)).unwrap();
    pair.pass(WAIT);
    for id in [0, 1] {
        tell_racks(pair.node(id), live);
    }
    pair
}

/// Every broker of `live` is in a rack of its own.
fn tell_racks(node: &Node, live: &[i32]) {
    let mut update = update_metadata(9, live, &[order("t", 0, 0, &[0, 1])]);
    for broker in &mut update.live_brokers {
        broker.rack = Some(Str::from(format!("r{}", broker.id)));
    }
    let response: UpdateMetadataResponse = node.call(8, &update);
    assert_eq!(response.error_code, 0);
}

fn from_rack(rack: &str, offset: i64) -> FetchRequest {
    FetchRequest { rack_id: Str::from(rack), ..fetch_request("t", offset, 0, 0) }
}

fn only(response: &FetchResponse) -> PartitionData {
    assert_eq!(response.error_code, 0);
    response.responses[0].partitions[0].clone()
}

/// Where the consumer is sent, and how many batches it is given.
fn read(node: &Node, rack: &str, offset: i64) -> (i32, usize) {
    let data = only(&node.call(BY_NAME, &from_rack(rack, offset)));
    assert_eq!(data.error_code, 0);
    (data.preferred_read_replica, batches_of(&data).len())
}

#[test]
fn a_consumer_is_sent_to_the_follower_in_its_rack_without_records_and_served_there() {
    let pair = pair(&[BY_RACK], &[0, 1]);
    let told = only(&pair.node(0).call(BY_NAME, &from_rack("r1", 0)));
    assert_eq!((told.error_code, told.preferred_read_replica), (0, 1));
    assert_eq!((told.high_watermark, told.last_stable_offset, told.log_start_offset), (3, 3, 0));
    assert!(batches_of(&told).is_empty());
    assert_eq!(read(pair.node(1), "r1", 0), (-1, 1));
    for rack in ["r0", "elsewhere", ""] {
        assert_eq!(read(pair.node(0), rack, 0), (-1, 1), "{rack:?}");
    }
}

/// KAFKA-13778.
#[test]
fn a_follower_sends_nobody_away() {
    let pair = pair(&[BY_RACK], &[0, 1]);
    for rack in ["r0", "r1", ""] {
        assert_eq!(read(pair.node(1), rack, 0), (-1, 1), "{rack:?}");
    }
}

#[test]
fn without_a_selector_or_a_way_to_the_follower_the_leader_serves() {
    assert_eq!(read(pair(&[], &[0, 1]).node(0), "r1", 0), (-1, 1));
    assert_eq!(read(pair(&[BY_RACK], &[0]).node(0), "r1", 0), (-1, 1), "a dead follower");
    let pair = pair(&[BY_RACK], &[0, 1]);
    let request = frame(BY_NAME, &from_rack("r1", 0));
    let response: FetchResponse = answer(&pair.node(0).submit_over("OTHER", request), BY_NAME);
    assert_eq!(only(&response).preferred_read_replica, -1, "a follower without a listener for the consumer");
}

#[test]
fn an_offset_that_the_follower_lacks_is_served_by_the_leader() {
    let pair = pair(&[BY_RACK], &[0, 1]);
    assert_eq!(read(pair.node(0), "r1", 3), (1, 0), "the end that both have");
    let beyond = only(&pair.node(0).call(BY_NAME, &from_rack("r1", 9)));
    assert_eq!((beyond.error_code, beyond.preferred_read_replica), (ErrorCode::OffsetOutOfRange.code(), -1));
    pair.set_way(0, Way::Cut);
    pair.pass(WAIT);
    let appended: ProduceResponse = pair.node(0).call(9, &produce_request("t", 0, good(2), 1));
    assert_eq!(appended.responses[0].partition_responses[0].error_code, 0);
    assert_eq!(read(pair.node(0), "r1", 5), (-1, 0));
}

#[test]
fn versions_that_tell_no_rack_and_followers_are_not_sent_away() {
    let pair = pair(&[BY_RACK], &[0, 1]);
    for version in FIRST_WITH_RACK..=BY_NAME {
        let told = only(&pair.node(0).call(version, &from_rack("r1", 0)));
        assert_eq!(told.preferred_read_replica, 1, "v{version}");
        let follower = FetchRequest { replica_id: 1, ..from_rack("r1", 0) };
        assert_eq!(only(&pair.node(0).call(version, &follower)).preferred_read_replica, -1, "v{version}");
    }
    let told = only(&pair.node(0).call(FIRST_WITH_RACK - 1, &from_rack("", 0)));
    assert_eq!((told.preferred_read_replica, batches_of(&told).len()), (-1, 1));
}

#[test]
fn the_leader_epoch_is_checked_before_a_consumer_is_sent_away() {
    let pair = pair(&[BY_RACK], &[0, 1]);
    let mut request = from_rack("r1", 0);
    request.topics[0].partitions[0].current_leader_epoch = 7;
    let told = only(&pair.node(0).call(BY_NAME, &request));
    let expected = (ErrorCode::UnknownLeaderEpoch.code(), -1);
    assert_eq!((told.error_code, told.preferred_read_replica), expected);
}

/// KAFKA-13767.
#[test]
fn who_is_sent_away_does_not_wait_and_hears_it_again_within_a_session() {
    let pair = pair(&[BY_RACK], &[0, 1]);
    let patient = FetchRequest { session_epoch: 0, max_wait_ms: 60_000, min_bytes: 1, ..from_rack("r1", 3) };
    let opened: FetchResponse = pair.node(0).call(BY_NAME, &patient);
    assert_eq!(only(&opened).preferred_read_replica, 1);
    assert!(opened.session_id > 0);
    let next =
        FetchRequest { session_id: opened.session_id, session_epoch: 1, topics: Vec::new(), ..patient };
    assert_eq!(only(&pair.node(0).call(BY_NAME, &next)).preferred_read_replica, 1);
}

/// Error, high watermark and number of batches that a consumer gets.
fn asked(node: &Node, offset: i64) -> (ErrorCode, i64, usize) {
    let data = only(&node.call(BY_NAME, &from_rack("r1", offset)));
    (ErrorCode::from_code(data.error_code).unwrap(), data.high_watermark, batches_of(&data).len())
}

/// What a follower lacks is out of range there, whereupon a consumer asks the leader; what nobody has been told yet is
/// empty, as at the leader. OFFSET_NOT_AVAILABLE is no answer to a fetch, in Kafka neither.
#[test]
fn a_follower_tells_what_it_lacks_from_what_is_not_replicated_yet() {
    let pair = pair(&[BY_RACK], &[0, 1]);
    let (leader, follower) = (pair.node(0), pair.node(1));
    pair.set_way(0, Way::Cut);
    pair.pass(WAIT);
    let appended: ProduceResponse = leader.call(9, &produce_request("t", 0, good(2), 1));
    assert_eq!(appended.responses[0].partition_responses[0].error_code, 0);
    assert_eq!(asked(follower, 3), (ErrorCode::None, 3, 0), "its end");
    assert_eq!(asked(follower, 4), (ErrorCode::OffsetOutOfRange, -1, 0));
    assert_eq!(asked(leader, 4), (ErrorCode::None, 3, 0));
    pair.set_way(0, Way::Open);
    for _ in 0..30 {
        if pair.offsets(1, "t").2 < 5 {
            pair.pass(Duration::from_millis(100));
        }
    }
    // The high watermark comes with the next answer.
    assert_eq!(pair.offsets(1, "t"), (0, 3, 5));
    assert_eq!(asked(follower, 4), (ErrorCode::None, 3, 0));
    pair.pass(WAIT);
    assert_eq!(asked(follower, 4), (ErrorCode::None, 5, 1));
    assert_eq!(asked(follower, 6), (ErrorCode::OffsetOutOfRange, -1, 0));
}

#[test]
fn a_follower_serves_from_its_own_log_start_on() {
    let pair = pair(&[BY_RACK], &[0, 1]);
    let partition = DeleteRecordsPartition { partition_index: 0, offset: 3 };
    let topic = DeleteRecordsTopic { name: Str::from("t"), partitions: vec![partition] };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 60_000 };
    let waiting = pair.node(0).submit(frame(2, &request));
    let at_leader = only(&pair.node(0).call(BY_NAME, &from_rack("", 0)));
    assert_eq!(at_leader.error_code, ErrorCode::OffsetOutOfRange.code());
    // The follower has not heard of it, and the leader knows that.
    assert_eq!(read(pair.node(0), "r1", 0), (1, 0));
    assert_eq!(asked(pair.node(1), 0), (ErrorCode::None, 3, 1));
    pair.pass(2 * WAIT);
    assert_eq!(asked(pair.node(1), 0), (ErrorCode::OffsetOutOfRange, -1, 0));
    assert_eq!(asked(pair.node(1), 3), (ErrorCode::None, 3, 0));
    let deleted: DeleteRecordsResponse = answer(&waiting, 2);
    let deleted = &deleted.topics[0].partitions[0];
    assert_eq!((deleted.error_code, deleted.low_watermark), (0, 3));
}

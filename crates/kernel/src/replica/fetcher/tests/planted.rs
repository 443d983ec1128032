//! What each planted fault does to the stories that it was invented for: they fail with it.

use super::stories::{DECIDED_BY_EPOCHS, Play, play, story};
use super::world::World;
use super::*;
use crate::planted::Fault;

fn play_with(fault: Fault, name: &str) -> (String, World) {
    play(&story(name), Play::Planted(Faults::default().and(fault)))
}

#[test]
fn truncation_by_the_high_watermark_loses_or_mixes_up_records() {
    for name in DECIDED_BY_EPOCHS {
        let (text, world) = play_with(Fault::TruncationByHighWatermark, name);
        assert!(!world.is_sound(), "{name} would not tell the difference:\n{text}");
    }
}

#[test]
fn an_end_without_its_epoch_leaves_records_of_an_epoch_that_the_leader_never_had() {
    for name in ["kip279_fast_failover", "kip279_fast_failover_by_fetch"] {
        let (text, world) = play_with(Fault::EpochEndWithoutEpoch, name);
        assert!(!world.is_sound(), "{name} would not tell the difference:\n{text}");
        assert!(text.contains("2: truncates to 15,"), "{name} is cut elsewhere:\n{text}");
    }
}

#[test]
fn a_high_watermark_of_a_diverging_reply_lies_above_where_the_logs_part() {
    let (text, _) = play_with(Fault::HighWatermarkOfDivergingReply, "kip279_two_rounds_by_fetch");
    // After the first cut, to 7, the logs agree below 5 only.
    let raised = text.find("2: high watermark 10").expect("raised by the first answer");
    let taken_back = text.find("its high watermark goes back from 7").expect("taken back by the second cut");
    assert!(raised < taken_back, "{text}");
    let (told, _) = play(&story("kip279_two_rounds_by_fetch"), Play::Told);
    assert!(!told.contains("goes back"), "{told}");
}

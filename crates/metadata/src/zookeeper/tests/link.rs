//! The time: signs of life, silence, and tries.

use super::server::Asked;
use super::*;

#[test]
fn a_quiet_session_gives_a_sign_of_life_every_third_of_its_timeout() {
    let mut bench = Bench::live(10);
    assert_eq!(bench.machine.deadline(), Some(bench.now + TIMEOUT / 3));
    bench.advance(TIMEOUT / 3 - Duration::from_millis(1));
    assert_eq!(bench.take_sent(), []);
    bench.advance(Duration::from_millis(1));
    assert_eq!(bench.take_sent(), [Asked::Ping]);
    bench.reply(-2, 0);
    bench.advance(TIMEOUT / 6);
    bench.submit(Request::delete("/a", None));
    bench.take_sent();
    bench.advance(TIMEOUT / 4);
    assert_eq!(bench.take_sent(), [], "a request is a sign of life, too");
}

#[test]
fn a_server_that_says_nothing_for_two_thirds_of_the_timeout_is_left() {
    let mut bench = Bench::live(10);
    bench.advance(TIMEOUT / 3);
    bench.advance(TIMEOUT / 3 - Duration::from_millis(1));
    assert_eq!(bench.hung_up, 0);
    bench.advance(Duration::from_millis(1));
    assert_eq!((bench.hung_up, bench.take_events()), (1, vec![StoreEvent::Disconnected]));
}

#[test]
fn every_server_is_tried_before_there_is_a_pause_which_grows() {
    let mut bench = Bench::new(3, 10, None);
    let mut pauses = Vec::new();
    for _ in 0..30 {
        bench.lose_connection();
        pauses.push(u64::try_from(bench.redial().as_millis()).unwrap());
    }
    assert_eq!(bench.dialed[..7], [0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(pauses[..9], [0, 0, 50, 0, 0, 100, 0, 0, 200]);
    assert_eq!(pauses.iter().max(), Some(&1000));
    bench.greet();
    bench.submit(Request::delete("/a", None));
    bench.reply(1, 0);
    bench.lose_connection();
    assert_eq!(bench.redial(), Duration::ZERO, "a connection that was of use is had again at once");
}

#[test]
fn a_try_ends_when_its_share_of_the_session_timeout_is_over() {
    let mut bench = Bench::new(3, 10, None);
    bench.advance(TIMEOUT / 3);
    assert_eq!(bench.hung_up, 1);
    assert_eq!((bench.redial(), bench.dialed.len()), (Duration::ZERO, 2));
    bench.step(Input::Connected);
    bench.advance(TIMEOUT / 3);
    assert_eq!(bench.hung_up, 2, "an answer to the greeting is part of it");
}

#[test]
fn a_server_that_hangs_up_on_each_request_is_not_asked_in_a_loop() {
    let mut bench = Bench::live(10);
    bench.submit(Request::get("/poison"));
    let mut tries = 0;
    let until = bench.now + Duration::from_secs(10);
    while bench.now < until {
        bench.lose_connection();
        bench.reconnect();
        tries += 1;
        assert!(tries < 100, "a loop");
    }
}

#[test]
fn the_longest_silence_of_a_session_tells_how_near_its_end_was() {
    let mut bench = Bench::live(10);
    bench.advance(Duration::from_secs(1));
    bench.reply(-2, 0);
    bench.lose_connection();
    bench.advance(Duration::from_secs(5));
    assert_eq!(bench.machine.longest_silence(), Duration::from_secs(1), "it may still be longer");
    bench.reconnect();
    assert_eq!(bench.machine.longest_silence(), Duration::from_secs(5));
    assert_eq!(bench.machine.session_timeout(), Some(TIMEOUT));
}

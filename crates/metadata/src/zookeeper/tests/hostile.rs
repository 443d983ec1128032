//! Servers that say anything at all.

use super::server;
use super::*;
use crate::store::Op;
use proptest::prelude::*;

fn requests() -> Vec<Request> {
    vec![
        Request::get("/a").watched(),
        Request::exists("/b").watched(),
        Request::children("/c").watched(),
        Request::set("/d", "", None),
        Request::Multi(vec![Op::check("/e", 1), Op::delete("/f", None)]),
    ]
}

proptest! {
    #[test]
    fn whatever_a_server_answers_everyone_is_answered_once(
        frames in prop::collection::vec((-8..8_i32, -130..3_i32, prop::collection::vec(any::<u8>(), 0..120)), 0..12),
        raw in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut bench = Bench::live(10);
        for request in requests() {
            bench.submit(request);
        }
        for (number, code, body) in &frames {
            bench.step(Input::Frame(server::reply(*number, 5, *code, body)));
        }
        bench.step(Input::Frame(raw.into()));
        if !bench.is_dialing {
            bench.lose_connection();
        }
        bench.step(Input::Close);
        bench.advance(Duration::from_secs(60));
        prop_assert!(bench.finished);
        let answered: Vec<_> = bench.answers().into_iter().map(|(place, _)| place).collect();
        prop_assert_eq!(answered, (0..requests().len()).collect::<Vec<_>>(), "in their order");
    }

    #[test]
    fn whatever_a_server_greets_with_the_machine_goes_on(greeting in prop::collection::vec(any::<u8>(), 0..50)) {
        let mut bench = Bench::new(1, 10, None);
        bench.step(Input::Connected);
        bench.step(Input::Frame(greeting.into()));
        bench.step(Input::Close);
        bench.advance(Duration::from_secs(60));
        prop_assert!(bench.finished);
    }
}

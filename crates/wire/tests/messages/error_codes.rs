//! The error codes against the table of the crate `kafka-protocol`, which ends at 106.

use kafka_protocol::ResponseError;
use wire::error_code::ErrorCode;

#[test]
fn codes_round_trip_and_are_those_of_kafka_3_9() {
    for code in i16::MIN..=i16::MAX {
        let ours = ErrorCode::from_code(code);
        assert_eq!(ours.is_some(), (-1..=127).contains(&code), "{code}");
        assert!(ours.is_none_or(|ours| ours.code() == code), "{code}");
    }
    assert_eq!(ErrorCode::ALL.len(), 129);
    assert_eq!(ErrorCode::default(), ErrorCode::None);
}

#[test]
fn names_are_those_of_the_oracle() {
    let mut compared = 0;
    for ours in ErrorCode::ALL.iter().copied().filter(|code| code.is_error()) {
        let Some(theirs) = ResponseError::try_from_code(ours.code()) else {
            panic!("{ours} is unknown to them")
        };
        if matches!(theirs, ResponseError::Unknown(_)) {
            continue;
        }
        compared += 1;
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
        if ours != ErrorCode::ConcurrentTransactions {
            assert_eq!(ours.is_retriable(), theirs.is_retriable(), "{ours}");
        }
        let words = ours.name().split('_');
        let camel: String = words.map(|word| word[..1].to_owned() + &word[1..].to_lowercase()).collect();
        assert_eq!(camel, format!("{ours:?}"));
    }
    assert_eq!(compared, 107, "their table ends at 106");
}

#[test]
fn codes_that_the_oracle_lacks_or_has_wrong_are_as_in_kafka_3_9() {
    let retriable = |codes: std::ops::RangeInclusive<i16>| -> Vec<i16> {
        codes.filter(|code| ErrorCode::from_code(*code).unwrap().is_retriable()).collect()
    };
    assert_eq!(
        retriable(51..=51),
        [51],
        "a transaction may be tried again when the other operation has ended"
    );
    assert_eq!(retriable(107..=127), [122, 123]);
    assert_eq!(ErrorCode::TransactionAbortable.code(), 120);
    assert_eq!(ErrorCode::VoterNotFound.name(), "VOTER_NOT_FOUND");
}

#[test]
fn every_code_has_a_text_of_its_own() {
    let mut texts: Vec<_> = ErrorCode::ALL.iter().map(|code| code.message()).collect();
    assert!(texts.iter().all(|text| text.ends_with('.') && text.len() > 8));
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), ErrorCode::ALL.len());
}

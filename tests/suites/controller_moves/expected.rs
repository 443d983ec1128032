//! The tables as a real Kafka 3.9 gives them, by case. Epochs are exact.

use super::case::{A, B, Case};

/// The table up to state S.
pub(crate) fn s(case: Case, topics: &[&str]) -> String {
    // The controller of case 2 goes with B: what the death of B leads to is done in the next term.
    let term = after_s(case);
    let gone = "leader B epoch 1, isr B, partition epoch 1, term +0";
    rows("A has gone", topics, gone)
        + &rows("S", topics, &format!("leader - epoch 2, isr B, partition epoch 2, term +{term}"))
}

fn after_s(case: Case) -> i32 {
    i32::from(case.controller == B)
}

fn rows(label: &str, topics: &[&str], state: &str) -> String {
    topics.iter().map(|topic| format!("{label}: {topic} {state}\n")).collect()
}

/// The table of the first pass.
pub(crate) fn first(case: Case) -> String {
    let term = after_s(case) + 1;
    // At its start a controller takes the replicas of dead brokers out once more, though nothing is left to take: the
    // epochs rise all the same.
    let offline = format!("leader - epoch 3, isr B, partition epoch 3, term +{term}");
    let unclean = format!("leader A epoch 4, isr A, partition epoch 4, term +{term}, recovering");
    let back = |leader| format!("leader {leader} epoch 4, isr A B, partition epoch 5, term +{term}");
    [
        s(case, &super::passes::FIRST),
        rows("C restarted", &super::passes::FIRST, &offline),
        rows("A is back", &super::passes::FIRST, &offline),
        rows("A is back, election refused, deletion waits", &["kept", "deleted"], &offline),
        rows("A elected uncleanly", &["unclean", "asked"], &unclean),
        rows("B is back", &["kept"], &back("B")),
        rows("B is back", &["unclean", "asked"], &back("A")),
    ]
    .concat()
}

/// The table of the second pass.
pub(crate) fn second(case: Case) -> String {
    let term = after_s(case);
    let (a_alone, b_alone) = (term + 1, term + 2);
    let both = if case.rebalance && case.replicas == [A, B] {
        "leader A epoch 5, isr A B, partition epoch 6"
    } else {
        "leader B epoch 4, isr A B, partition epoch 5"
    };
    let kept = &super::passes::SECOND;
    [
        s(case, kept),
        rows("A alone", kept, &format!("leader - epoch 3, isr B, partition epoch 3, term +{a_alone}")),
        rows("B alone", kept, &format!("leader B epoch 4, isr B, partition epoch 4, term +{b_alone}")),
        rows("A and B", kept, &format!("{both}, term +{b_alone}")),
    ]
    .concat()
}

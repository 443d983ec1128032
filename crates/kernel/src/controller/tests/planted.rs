//! What a planted fault does to the story that it was invented for.

use super::story::Story;
use crate::planted::{Fault, Faults};

/// Brokers 1 and 2 hold the replicas and die one after the other, while this broker is controller; 3 follows it.
fn end_of_seed_case(controller: i32, faults: Faults) -> Vec<String> {
    let mut story = Story::default();
    story.planted = faults;
    let first = format!("~ controller {controller}");
    let others = if controller == 2 { "~ brokers 1" } else { "~ brokers 1 2" };
    for line in [first.as_str(), "~ controller 3", others, "~ topic t 1,2", "~ crash 1", "~ crash 2"] {
        story.line(line);
    }
    story.line("show")
}

#[test]
fn offline_replicas_left_alone_leave_a_dead_leader_behind_when_the_controller_dies_with_it() {
    let faults = Faults::default().and(Fault::OfflineReplicasLeftAlone);
    let sound = |controller| end_of_seed_case(controller, Faults::default()).join("\n");
    let faulty = |controller| end_of_seed_case(controller, faults).join("\n");
    assert!(sound(2).contains("t-0 leader -1 epoch 2 isr 2 by 2 v2"), "{}", sound(2));
    assert!(faulty(2).contains("t-0 leader 2 epoch 1 isr 2 by 1 v1"), "{}", faulty(2));
    // A controller that lives through both deaths hears of them as events.
    assert_eq!(faulty(3), sound(3));
}

//! Every story under `tests/scenarios/groups` is told again, and must go as it is written.

use super::story::Story;
use crate::story_tests;

#[test]
fn every_story_goes_as_it_is_written() {
    story_tests::go_as_written("groups", Story::default, Story::line);
}

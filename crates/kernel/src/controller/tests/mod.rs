//! The controller in stories, and in random histories.

mod administration;
mod batch;
mod deletions;
mod election;
mod histories;
mod limits;
mod parse;
#[cfg(feature = "planted-faults")]
mod planted;
mod print;
mod receivers;
mod scenarios;
mod story;
mod world;

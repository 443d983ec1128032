//! The controller in stories, and in random histories.

mod batch;
mod election;
mod histories;
mod limits;
mod parse;
mod print;
mod scenarios;
mod story;
mod world;

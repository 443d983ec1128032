//! The client side of consumer groups (classic protocol, KIP-62, KIP-345, KIP-394): who reads which partitions, and
//! how far they came.
//!
//! [`Coordinator`] brings requests to the broker that coordinates a group. [`Member`] joins, beats and leaves;
//! [`Consumer`] reads as a member. Rebalances are eager: every partition is given up before it is given anew.

mod assign;
mod consumer;
mod coordinator;
pub(crate) mod embedded;
mod member;
mod settings;

pub(crate) use consumer::{Consumer, ConsumerSettings, Event, Subscription};
pub(crate) use coordinator::{Committer, Coordinator};

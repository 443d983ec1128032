//! Clusters of several brokers.

mod dev;
mod histories;
mod mixed;

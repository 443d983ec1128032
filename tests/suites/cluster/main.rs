//! Clusters of several brokers.

mod dev;
mod histories;
mod listeners;
mod mixed;
mod nearby;

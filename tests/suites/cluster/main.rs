//! Clusters of several brokers.

mod mixed;
mod oracle;

//! Clusters of several brokers.

mod oracle;

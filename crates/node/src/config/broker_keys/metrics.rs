//! Metrics and client telemetry.

use crate::config::definition::Scope::{ClusterWide, ReadOnly};
use crate::config::definition::Valid::{Any, AtLeast};
use crate::config::definition::{Definition, set};
use crate::config::value::Kind::{Boolean, Int, List, Long, String};

/// The keys, in name order.
pub(super) const KEYS: &[Definition] = &[
    set("auto.include.jmx.reporter", Boolean, "true", Any, ReadOnly),
    set("kafka.metrics.polling.interval.secs", Int, "10", AtLeast(1), ReadOnly),
    set("kafka.metrics.reporters", List, "", Any, ReadOnly),
    set("metric.reporters", List, "", Any, ClusterWide),
    set("metrics.num.samples", Int, "2", AtLeast(1), ReadOnly),
    set("metrics.recording.level", String, "INFO", Any, ReadOnly),
    set("metrics.sample.window.ms", Long, "30000", AtLeast(1), ReadOnly),
    set("telemetry.max.bytes", Int, "1048576", AtLeast(1), ReadOnly),
];

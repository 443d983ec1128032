//! What has configs, as the protocol names it.

/// What kinds of things have configs, by the numbers of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ResourceKind {
    /// A topic.
    Topic,
    /// A broker.
    Broker,
    /// The loggers of a broker.
    BrokerLogger,
}

impl ResourceKind {
    /// The number in requests.
    pub(crate) fn id(self) -> i8 {
        match self {
            Self::Topic => 2,
            Self::Broker => 4,
            Self::BrokerLogger => 8,
        }
    }

    /// The word in Kafka's lines.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Broker => "broker",
            Self::BrokerLogger => "broker-logger",
        }
    }
}

/// Something that has configs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Resource {
    /// What it is.
    pub(crate) kind: ResourceKind,
    /// Its name; empty for the defaults of brokers.
    pub(crate) name: String,
}

//! [`ApiKey`]: the requests of the protocol, the versions a broker of a ZooKeeper cluster serves of each in
//! Kafka 3.9, and the headers that go with them (KIP-482, KIP-511).

use std::fmt;
use std::ops::RangeInclusive;

/// The keys that a broker in a ZooKeeper cluster does not serve have no versions here.
const NOT_SERVED: RangeInclusive<i16> = RangeInclusive::new(0, -1);

macro_rules! api_keys {
    (@ $first:literal $last:literal) => { RangeInclusive::new($first, $last) };
    (@) => { NOT_SERVED };
    (# $flexible:literal) => { $flexible };
    (#) => { i16::MAX };
    ($($key:ident $code:literal $($first:literal-$last:literal $(flexible $flexible:literal)?)?;)*) => {
        /// The key of a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ApiKey {
            $(
                #[doc = concat!("`", stringify!($key), "` (", $code, ")")]
                $key = $code,
            )*
        }

        impl ApiKey {
            /// Every key, ascending.
            pub const ALL: &[Self] = &[$(Self::$key),*];

            /// The key with this number; `None` if Kafka 3.9 defines none.
            #[must_use]
            pub const fn from_code(code: i16) -> Option<Self> {
                match code {
                    $($code => Some(Self::$key),)*
                    _ => None,
                }
            }

            /// The name in Kafka, such as `ListOffsets`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$key => stringify!($key),)*
                }
            }

            /// The versions that a broker of a ZooKeeper cluster serves; empty if it does not serve the key.
            #[must_use]
            pub const fn versions(self) -> RangeInclusive<i16> {
                match self {
                    $(Self::$key => api_keys!(@ $($first $last)?),)*
                }
            }

            const fn first_flexible(self) -> i16 {
                match self {
                    $(Self::$key => api_keys!(# $($($flexible)?)?),)*
                }
            }
        }
    };
}

api_keys! {
    Produce 0 0-11 flexible 9;
    Fetch 1 0-17 flexible 12;
    ListOffsets 2 0-9 flexible 6;
    Metadata 3 0-12 flexible 9;
    LeaderAndIsr 4 0-7 flexible 4;
    StopReplica 5 0-4 flexible 2;
    UpdateMetadata 6 0-8 flexible 6;
    ControlledShutdown 7 0-3 flexible 3;
    OffsetCommit 8 0-9 flexible 8;
    OffsetFetch 9 0-9 flexible 6;
    FindCoordinator 10 0-6 flexible 3;
    JoinGroup 11 0-9 flexible 6;
    Heartbeat 12 0-4 flexible 4;
    LeaveGroup 13 0-5 flexible 4;
    SyncGroup 14 0-5 flexible 4;
    DescribeGroups 15 0-5 flexible 5;
    ListGroups 16 0-5 flexible 3;
    SaslHandshake 17 0-1;
    ApiVersions 18 0-4 flexible 3;
    CreateTopics 19 0-7 flexible 5;
    DeleteTopics 20 0-6 flexible 4;
    DeleteRecords 21 0-2 flexible 2;
    InitProducerId 22 0-5 flexible 2;
    OffsetForLeaderEpoch 23 0-4 flexible 4;
    AddPartitionsToTxn 24 0-5 flexible 3;
    AddOffsetsToTxn 25 0-4 flexible 3;
    EndTxn 26 0-4 flexible 3;
    WriteTxnMarkers 27 0-1 flexible 1;
    TxnOffsetCommit 28 0-4 flexible 3;
    DescribeAcls 29 0-3 flexible 2;
    CreateAcls 30 0-3 flexible 2;
    DeleteAcls 31 0-3 flexible 2;
    DescribeConfigs 32 0-4 flexible 4;
    AlterConfigs 33 0-2 flexible 2;
    AlterReplicaLogDirs 34 0-2 flexible 2;
    DescribeLogDirs 35 0-4 flexible 2;
    SaslAuthenticate 36 0-2 flexible 2;
    CreatePartitions 37 0-3 flexible 2;
    CreateDelegationToken 38 0-3 flexible 2;
    RenewDelegationToken 39 0-2 flexible 2;
    ExpireDelegationToken 40 0-2 flexible 2;
    DescribeDelegationToken 41 0-3 flexible 2;
    DeleteGroups 42 0-2 flexible 2;
    ElectLeaders 43 0-2 flexible 2;
    IncrementalAlterConfigs 44 0-1 flexible 1;
    AlterPartitionReassignments 45 0-0 flexible 0;
    ListPartitionReassignments 46 0-0 flexible 0;
    OffsetDelete 47 0-0;
    DescribeClientQuotas 48 0-1 flexible 1;
    AlterClientQuotas 49 0-1 flexible 1;
    DescribeUserScramCredentials 50 0-0 flexible 0;
    AlterUserScramCredentials 51 0-0 flexible 0;
    Vote 52;
    BeginQuorumEpoch 53;
    EndQuorumEpoch 54;
    DescribeQuorum 55;
    AlterPartition 56 0-3 flexible 0;
    UpdateFeatures 57 0-1 flexible 0;
    Envelope 58 0-0 flexible 0;
    FetchSnapshot 59;
    DescribeCluster 60 0-1 flexible 0;
    DescribeProducers 61 0-0 flexible 0;
    BrokerRegistration 62;
    BrokerHeartbeat 63;
    UnregisterBroker 64;
    DescribeTransactions 65 0-0 flexible 0;
    ListTransactions 66 0-1 flexible 0;
    AllocateProducerIds 67 0-0 flexible 0;
    ConsumerGroupHeartbeat 68 0-0 flexible 0;
    ConsumerGroupDescribe 69 0-0 flexible 0;
    ControllerRegistration 70;
    GetTelemetrySubscriptions 71;
    PushTelemetry 72;
    AssignReplicasToDirs 73;
    ListClientMetricsResources 74;
    DescribeTopicPartitions 75;
    ShareGroupHeartbeat 76;
    ShareGroupDescribe 77;
    ShareFetch 78;
    ShareAcknowledge 79;
    AddRaftVoter 80;
    RemoveRaftVoter 81;
    UpdateRaftVoter 82;
    InitializeShareGroupState 83;
    ReadShareGroupState 84;
    WriteShareGroupState 85;
    DeleteShareGroupState 86;
    ReadShareGroupStateSummary 87;
}

impl ApiKey {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// Whether a broker of a ZooKeeper cluster serves any version of this key.
    #[must_use]
    pub fn is_served(self) -> bool {
        !self.versions().is_empty()
    }

    /// Whether a broker of a ZooKeeper cluster serves this version.
    #[must_use]
    pub fn supports(self, version: i16) -> bool {
        self.versions().contains(&version)
    }

    /// Whether the version uses compact encodings and tagged fields (KIP-482).
    #[must_use]
    pub const fn is_flexible(self, version: i16) -> bool {
        version >= self.first_flexible()
    }

    /// The version of the header before a request: 2 in flexible versions, else 1; 0, without a client id,
    /// before ControlledShutdown v0 alone.
    #[must_use]
    pub const fn request_header_version(self, version: i16) -> i16 {
        match self {
            Self::ControlledShutdown if version == 0 => 0,
            _ if self.is_flexible(version) => 2,
            _ => 1,
        }
    }

    /// The version of the header before a response: 1 in flexible versions, else 0; always 0 before
    /// ApiVersions, whose client does not yet know what the broker understands (KIP-511).
    #[must_use]
    pub const fn response_header_version(self, version: i16) -> i16 {
        match self {
            Self::ApiVersions => 0,
            _ if self.is_flexible(version) => 1,
            _ => 0,
        }
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

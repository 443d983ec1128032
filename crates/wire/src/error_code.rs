//! [`ErrorCode`]: the error codes of the protocol as of Kafka 3.9, their names, whether a client may try
//! again, and a default text of our own for responses that carry one.

use std::fmt;

macro_rules! error_codes {
    (@ retriable) => { true };
    (@) => { false };
    ($($(#[$attribute:meta])* $variant:ident $code:literal $name:literal $(($retriable:ident))? $message:literal)*) => {
        /// An error code of the protocol.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ErrorCode {
            $(
                #[doc = concat!("`", $name, "` (", $code, "): ", $message, ".")]
                $(#[$attribute])*
                $variant = $code,
            )*
        }

        impl ErrorCode {
            /// Every code, ascending.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The code with this number.
            #[must_use]
            pub const fn from_code(code: i16) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The name in Kafka, such as `OFFSET_OUT_OF_RANGE`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// A text for responses that carry one, when there is none that says more.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($message, "."),)*
                }
            }

            /// Whether the same request may succeed later.
            #[must_use]
            pub const fn is_retriable(self) -> bool {
                match self {
                    $(Self::$variant => error_codes!(@ $($retriable)?),)*
                }
            }
        }
    };
}

impl ErrorCode {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// Whether this is an error at all.
    #[must_use]
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::None)
    }
}

impl From<ErrorCode> for i16 {
    fn from(code: ErrorCode) -> Self {
        code.code()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

error_codes! {
    UnknownServerError -1 "UNKNOWN_SERVER_ERROR"
        "The broker failed in a way it did not expect"
    #[default]
    None 0 "NONE"
        "No error"
    OffsetOutOfRange 1 "OFFSET_OUT_OF_RANGE"
        "The offset lies outside the log of this partition"
    CorruptMessage 2 "CORRUPT_MESSAGE" (retriable)
        "A batch is damaged: its checksum or size is wrong, or a compacted topic got a record without a key"
    UnknownTopicOrPartition 3 "UNKNOWN_TOPIC_OR_PARTITION" (retriable)
        "This broker does not host this partition"
    InvalidFetchSize 4 "INVALID_FETCH_SIZE"
        "The size to fetch is not valid"
    LeaderNotAvailable 5 "LEADER_NOT_AVAILABLE" (retriable)
        "The partition has no leader at the moment"
    NotLeaderOrFollower 6 "NOT_LEADER_OR_FOLLOWER" (retriable)
        "This broker is not the leader, or not a replica, of the partition"
    RequestTimedOut 7 "REQUEST_TIMED_OUT" (retriable)
        "The request was not completed in time"
    BrokerNotAvailable 8 "BROKER_NOT_AVAILABLE"
        "The broker is not available"
    ReplicaNotAvailable 9 "REPLICA_NOT_AVAILABLE" (retriable)
        "The replica is not available on this broker"
    MessageTooLarge 10 "MESSAGE_TOO_LARGE"
        "A batch is larger than the topic accepts"
    StaleControllerEpoch 11 "STALE_CONTROLLER_EPOCH"
        "The request comes from a controller that has been replaced"
    OffsetMetadataTooLarge 12 "OFFSET_METADATA_TOO_LARGE"
        "The metadata of a committed offset is too long"
    NetworkException 13 "NETWORK_EXCEPTION" (retriable)
        "The connection was lost before the response"
    CoordinatorLoadInProgress 14 "COORDINATOR_LOAD_IN_PROGRESS" (retriable)
        "The coordinator is still loading its state"
    CoordinatorNotAvailable 15 "COORDINATOR_NOT_AVAILABLE" (retriable)
        "The coordinator is not available"
    NotCoordinator 16 "NOT_COORDINATOR" (retriable)
        "This broker is not the coordinator"
    InvalidTopicException 17 "INVALID_TOPIC_EXCEPTION"
        "The topic is not valid for this operation"
    RecordListTooLarge 18 "RECORD_LIST_TOO_LARGE"
        "The records are larger than a log segment"
    NotEnoughReplicas 19 "NOT_ENOUGH_REPLICAS" (retriable)
        "Fewer replicas are in sync than the topic requires"
    NotEnoughReplicasAfterAppend 20 "NOT_ENOUGH_REPLICAS_AFTER_APPEND" (retriable)
        "The records were written, but to fewer in-sync replicas than the topic requires"
    InvalidRequiredAcks 21 "INVALID_REQUIRED_ACKS"
        "The value of acks is not -1, 0 or 1"
    IllegalGeneration 22 "ILLEGAL_GENERATION"
        "The generation of the group is another one"
    InconsistentGroupProtocol 23 "INCONSISTENT_GROUP_PROTOCOL"
        "The member shares no protocol with its group, or named none"
    InvalidGroupId 24 "INVALID_GROUP_ID"
        "The id of the group is not valid"
    UnknownMemberId 25 "UNKNOWN_MEMBER_ID"
        "The coordinator does not know this member"
    InvalidSessionTimeout 26 "INVALID_SESSION_TIMEOUT"
        "The session timeout lies outside the limits of the broker"
    RebalanceInProgress 27 "REBALANCE_IN_PROGRESS"
        "The group is rebalancing; the member has to join again"
    InvalidCommitOffsetSize 28 "INVALID_COMMIT_OFFSET_SIZE"
        "The committed offset with its metadata is too large"
    TopicAuthorizationFailed 29 "TOPIC_AUTHORIZATION_FAILED"
        "Access to the topic is denied"
    GroupAuthorizationFailed 30 "GROUP_AUTHORIZATION_FAILED"
        "Access to the group is denied"
    ClusterAuthorizationFailed 31 "CLUSTER_AUTHORIZATION_FAILED"
        "Access to the cluster is denied"
    InvalidTimestamp 32 "INVALID_TIMESTAMP"
        "The timestamp of a record lies outside the accepted range"
    UnsupportedSaslMechanism 33 "UNSUPPORTED_SASL_MECHANISM"
        "The broker does not offer this SASL mechanism"
    IllegalSaslState 34 "ILLEGAL_SASL_STATE"
        "The request does not fit the state of the SASL exchange"
    UnsupportedVersion 35 "UNSUPPORTED_VERSION"
        "The broker does not support this version of the request"
    TopicAlreadyExists 36 "TOPIC_ALREADY_EXISTS"
        "A topic of this name exists already"
    InvalidPartitions 37 "INVALID_PARTITIONS"
        "The number of partitions is not valid"
    InvalidReplicationFactor 38 "INVALID_REPLICATION_FACTOR"
        "The replication factor is below 1 or above the number of live brokers"
    InvalidReplicaAssignment 39 "INVALID_REPLICA_ASSIGNMENT"
        "The assignment of replicas is not valid"
    InvalidConfig 40 "INVALID_CONFIG"
        "A configuration is not valid"
    NotController 41 "NOT_CONTROLLER" (retriable)
        "This broker is not the controller"
    InvalidRequest 42 "INVALID_REQUEST"
        "The request is malformed, or its values contradict each other"
    UnsupportedForMessageFormat 43 "UNSUPPORTED_FOR_MESSAGE_FORMAT"
        "The message format of the topic does not support the request"
    PolicyViolation 44 "POLICY_VIOLATION"
        "The request violates a policy of the broker"
    OutOfOrderSequenceNumber 45 "OUT_OF_ORDER_SEQUENCE_NUMBER"
        "The producer skipped a sequence number"
    DuplicateSequenceNumber 46 "DUPLICATE_SEQUENCE_NUMBER"
        "The producer sent a sequence number a second time"
    InvalidProducerEpoch 47 "INVALID_PRODUCER_EPOCH"
        "The epoch of the producer is older than the one the broker knows"
    InvalidTxnState 48 "INVALID_TXN_STATE"
        "The transaction is in a state that does not allow this"
    InvalidProducerIdMapping 49 "INVALID_PRODUCER_ID_MAPPING"
        "The producer id does not belong to the transactional id"
    InvalidTransactionTimeout 50 "INVALID_TRANSACTION_TIMEOUT"
        "The transaction timeout is above the limit of the broker"
    ConcurrentTransactions 51 "CONCURRENT_TRANSACTIONS" (retriable)
        "Another operation on the same transaction is under way"
    TransactionCoordinatorFenced 52 "TRANSACTION_COORDINATOR_FENCED"
        "The coordinator that sent the marker is no longer the coordinator of this transaction"
    TransactionalIdAuthorizationFailed 53 "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
        "Access to the transactional id is denied"
    SecurityDisabled 54 "SECURITY_DISABLED"
        "The broker runs without an authorizer or another security feature that this needs"
    OperationNotAttempted 55 "OPERATION_NOT_ATTEMPTED"
        "The operation was not tried because another one of the request failed"
    KafkaStorageError 56 "KAFKA_STORAGE_ERROR" (retriable)
        "The log directory of the partition failed"
    LogDirNotFound 57 "LOG_DIR_NOT_FOUND"
        "The log directory is not one of this broker"
    SaslAuthenticationFailed 58 "SASL_AUTHENTICATION_FAILED"
        "Authentication by SASL failed"
    UnknownProducerId 59 "UNKNOWN_PRODUCER_ID"
        "The broker no longer knows this producer; its records may have been deleted"
    ReassignmentInProgress 60 "REASSIGNMENT_IN_PROGRESS"
        "The partition is being reassigned"
    DelegationTokenAuthDisabled 61 "DELEGATION_TOKEN_AUTH_DISABLED"
        "Delegation tokens are not enabled on this broker"
    DelegationTokenNotFound 62 "DELEGATION_TOKEN_NOT_FOUND"
        "The delegation token does not exist"
    DelegationTokenOwnerMismatch 63 "DELEGATION_TOKEN_OWNER_MISMATCH"
        "The principal is neither owner nor renewer of the delegation token"
    DelegationTokenRequestNotAllowed 64 "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
        "This connection may not ask for delegation tokens"
    DelegationTokenAuthorizationFailed 65 "DELEGATION_TOKEN_AUTHORIZATION_FAILED"
        "Access to the delegation token is denied"
    DelegationTokenExpired 66 "DELEGATION_TOKEN_EXPIRED"
        "The delegation token has expired"
    InvalidPrincipalType 67 "INVALID_PRINCIPAL_TYPE"
        "The type of the principal is not supported"
    NonEmptyGroup 68 "NON_EMPTY_GROUP"
        "The group still has members"
    GroupIdNotFound 69 "GROUP_ID_NOT_FOUND"
        "The group does not exist"
    FetchSessionIdNotFound 70 "FETCH_SESSION_ID_NOT_FOUND" (retriable)
        "The fetch session does not exist"
    InvalidFetchSessionEpoch 71 "INVALID_FETCH_SESSION_EPOCH" (retriable)
        "The epoch of the fetch session is not the expected one"
    ListenerNotFound 72 "LISTENER_NOT_FOUND" (retriable)
        "The leader has no listener of the name on which the request came in"
    TopicDeletionDisabled 73 "TOPIC_DELETION_DISABLED"
        "Deletion of topics is switched off"
    FencedLeaderEpoch 74 "FENCED_LEADER_EPOCH" (retriable)
        "The leader epoch of the request is older than the broker's"
    UnknownLeaderEpoch 75 "UNKNOWN_LEADER_EPOCH" (retriable)
        "The leader epoch of the request is newer than the broker's"
    UnsupportedCompressionType 76 "UNSUPPORTED_COMPRESSION_TYPE"
        "The client does not support the compression of the records"
    StaleBrokerEpoch 77 "STALE_BROKER_EPOCH"
        "The broker epoch of the request is not the current one"
    OffsetNotAvailable 78 "OFFSET_NOT_AVAILABLE" (retriable)
        "The high watermark of the new leader has not yet caught up"
    MemberIdRequired 79 "MEMBER_ID_REQUIRED"
        "The member has to join again with the id it was given"
    PreferredLeaderNotAvailable 80 "PREFERRED_LEADER_NOT_AVAILABLE" (retriable)
        "The preferred leader is not available"
    GroupMaxSizeReached 81 "GROUP_MAX_SIZE_REACHED"
        "The group is full"
    FencedInstanceId 82 "FENCED_INSTANCE_ID"
        "Another member has taken over this group instance id"
    EligibleLeadersNotAvailable 83 "ELIGIBLE_LEADERS_NOT_AVAILABLE" (retriable)
        "No replica of the partition may become its leader"
    ElectionNotNeeded 84 "ELECTION_NOT_NEEDED" (retriable)
        "The partition needs no election"
    NoReassignmentInProgress 85 "NO_REASSIGNMENT_IN_PROGRESS"
        "The partition is not being reassigned"
    GroupSubscribedToTopic 86 "GROUP_SUBSCRIBED_TO_TOPIC"
        "The group is subscribed to the topic"
    InvalidRecord 87 "INVALID_RECORD"
        "A record is not valid"
    UnstableOffsetCommit 88 "UNSTABLE_OFFSET_COMMIT" (retriable)
        "Offsets of open transactions are pending"
    ThrottlingQuotaExceeded 89 "THROTTLING_QUOTA_EXCEEDED" (retriable)
        "A quota is exceeded"
    ProducerFenced 90 "PRODUCER_FENCED"
        "A newer producer uses the same transactional id"
    ResourceNotFound 91 "RESOURCE_NOT_FOUND"
        "The resource does not exist"
    DuplicateResource 92 "DUPLICATE_RESOURCE"
        "The request names the same resource twice"
    UnacceptableCredential 93 "UNACCEPTABLE_CREDENTIAL"
        "The credential does not meet the requirements"
    InconsistentVoterSet 94 "INCONSISTENT_VOTER_SET"
        "Sender or receiver is not one of the voters"
    InvalidUpdateVersion 95 "INVALID_UPDATE_VERSION"
        "The update carries a version that is not valid"
    FeatureUpdateFailed 96 "FEATURE_UPDATE_FAILED"
        "The features could not be updated"
    PrincipalDeserializationFailure 97 "PRINCIPAL_DESERIALIZATION_FAILURE"
        "The principal of a forwarded request could not be read"
    SnapshotNotFound 98 "SNAPSHOT_NOT_FOUND"
        "The snapshot does not exist"
    PositionOutOfRange 99 "POSITION_OUT_OF_RANGE"
        "The position lies outside the snapshot"
    UnknownTopicId 100 "UNKNOWN_TOPIC_ID" (retriable)
        "This broker hosts no topic of this id"
    DuplicateBrokerRegistration 101 "DUPLICATE_BROKER_REGISTRATION"
        "Another live broker has this id"
    BrokerIdNotRegistered 102 "BROKER_ID_NOT_REGISTERED"
        "No broker is registered with this id"
    InconsistentTopicId 103 "INCONSISTENT_TOPIC_ID" (retriable)
        "The topic id differs from the one in the log directory"
    InconsistentClusterId 104 "INCONSISTENT_CLUSTER_ID"
        "The request is meant for another cluster"
    TransactionalIdNotFound 105 "TRANSACTIONAL_ID_NOT_FOUND"
        "The transactional id does not exist"
    FetchSessionTopicIdError 106 "FETCH_SESSION_TOPIC_ID_ERROR" (retriable)
        "The fetch session mixes topics with and without ids"
    IneligibleReplica 107 "INELIGIBLE_REPLICA"
        "A replica proposed for the in-sync set may not be in it"
    NewLeaderElected 108 "NEW_LEADER_ELECTED"
        "The partition was changed, and its leader with it"
    OffsetMovedToTieredStorage 109 "OFFSET_MOVED_TO_TIERED_STORAGE"
        "The offset has moved to tiered storage"
    FencedMemberEpoch 110 "FENCED_MEMBER_EPOCH"
        "The epoch of the member is fenced; it has to give up its partitions and join again"
    UnreleasedInstanceId 111 "UNRELEASED_INSTANCE_ID"
        "Another member still holds this group instance id"
    UnsupportedAssignor 112 "UNSUPPORTED_ASSIGNOR"
        "The group does not support this assignor"
    StaleMemberEpoch 113 "STALE_MEMBER_EPOCH"
        "The epoch of the member is old; it has to learn the new one by a heartbeat"
    MismatchedEndpointType 114 "MISMATCHED_ENDPOINT_TYPE"
        "The request was sent to an endpoint of another kind"
    UnsupportedEndpointType 115 "UNSUPPORTED_ENDPOINT_TYPE"
        "The kind of endpoint is not supported"
    UnknownControllerId 116 "UNKNOWN_CONTROLLER_ID"
        "No controller has this id"
    UnknownSubscriptionId 117 "UNKNOWN_SUBSCRIPTION_ID"
        "The subscription id of the telemetry is not valid or not current"
    TelemetryTooLarge 118 "TELEMETRY_TOO_LARGE"
        "The telemetry is larger than the broker accepts"
    InvalidRegistration 119 "INVALID_REGISTRATION"
        "The controller refused the registration"
    TransactionAbortable 120 "TRANSACTION_ABORTABLE"
        "The transaction failed and has to be aborted; its transactional id can be used again"
    InvalidRecordState 121 "INVALID_RECORD_STATE"
        "The records are in a state that does not allow the acknowledgement"
    ShareSessionNotFound 122 "SHARE_SESSION_NOT_FOUND" (retriable)
        "The share session does not exist"
    InvalidShareSessionEpoch 123 "INVALID_SHARE_SESSION_EPOCH" (retriable)
        "The epoch of the share session is not the expected one"
    FencedStateEpoch 124 "FENCED_STATE_EPOCH"
        "The state epoch of the share group is not the current one"
    InvalidVoterKey 125 "INVALID_VOTER_KEY"
        "The key of the voter is not that of the receiver"
    DuplicateVoter 126 "DUPLICATE_VOTER"
        "The replica is a voter already"
    VoterNotFound 127 "VOTER_NOT_FOUND"
        "The replica is not a voter"
}

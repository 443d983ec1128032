//! One member of a group.

use bytes::Bytes;
use wire::Str;
use wire::internal::MemberValue;

use super::ids::RequestId;

/// So many SyncGroup requests of one member wait at once; one more, and the oldest is answered.
pub(super) const MAX_PARKED_SYNCS: usize = 2;

/// A way of assignment that a member knows, and what it has to say for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Protocol {
    /// The name, such as `range`.
    pub name: Str,
    /// What the leader needs to know of the member; a subscription, in groups of type `consumer`.
    pub metadata: Bytes,
}

impl Protocol {
    /// A copy that does not pin the frame it came in.
    pub(super) fn owned(&self) -> Self {
        Self { name: owned(&self.name), metadata: Bytes::copy_from_slice(&self.metadata) }
    }
}

/// A copy that does not pin the frame it came in.
pub(super) fn owned(text: &Str) -> Str {
    Str::from(text.as_str())
}

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) member_id: Str,
    pub(super) instance_id: Option<Str>,
    pub(super) client_id: Str,
    pub(super) client_host: Str,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) session_timeout_ms: i32,
    /// In the member's order of preference.
    pub(super) protocols: Vec<Protocol>,
    pub(super) assignment: Bytes,
    /// It has not been told yet that it is a member: it cannot send heartbeats.
    pub(super) is_new: bool,
    pub(super) awaiting_join: Option<RequestId>,
    pub(super) awaiting_sync: Vec<RequestId>,
}

impl Member {
    pub(super) fn is_static(&self) -> bool {
        self.instance_id.is_some()
    }

    /// Whether a request of it waits, which counts as a sign of life for as long as it does.
    pub(super) fn is_parked(&self) -> bool {
        self.awaiting_join.is_some() || !self.awaiting_sync.is_empty()
    }

    /// Whether it offers the same protocols in the same order with the same metadata.
    pub(super) fn matches(&self, protocols: &[Protocol]) -> bool {
        self.protocols == protocols
    }

    /// What it has to say for a protocol; empty if it does not know it.
    pub(super) fn metadata(&self, protocol: &str) -> Bytes {
        let known = self.protocols.iter().find(|it| it.name == *protocol);
        known.map(|it| it.metadata.clone()).unwrap_or_default()
    }

    /// The first of its protocols that all members know.
    pub(super) fn vote(&self, is_candidate: impl Fn(&str) -> bool) -> Option<&Str> {
        self.protocols.iter().map(|it| &it.name).find(|name| is_candidate(name))
    }

    /// The member as it is stored, with an assignment that may not be its own yet.
    pub(super) fn to_value(&self, protocol: &str, assignment: Bytes) -> MemberValue {
        MemberValue {
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            session_timeout_ms: self.session_timeout_ms,
            subscription: self.metadata(protocol),
            assignment,
        }
    }

    /// A member as it was stored: it knows the protocol of its generation only.
    pub(super) fn from_value(value: &MemberValue, protocol: &Str) -> Self {
        Self {
            member_id: owned(&value.member_id),
            instance_id: value.group_instance_id.as_ref().map(owned),
            client_id: owned(&value.client_id),
            client_host: owned(&value.client_host),
            rebalance_timeout_ms: value.rebalance_timeout_ms,
            session_timeout_ms: value.session_timeout_ms,
            protocols: vec![
                Protocol { name: protocol.clone(), metadata: value.subscription.clone() }.owned(),
            ],
            assignment: Bytes::copy_from_slice(&value.assignment),
            is_new: false,
            awaiting_join: None,
            awaiting_sync: Vec::new(),
        }
    }
}

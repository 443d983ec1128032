//! What administrators see of a group: ListGroups and DescribeGroups.

use bytes::Bytes;
use wire::Str;

use super::{Group, Settings, State};

/// A group as ListGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Overview {
    /// The group.
    pub group_id: Str,
    /// What kind of members it has; empty if it has never had any.
    pub protocol_type: Str,
    /// Its state.
    pub state: State,
}

/// A group as DescribeGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribedGroup {
    /// Its state.
    pub state: State,
    /// What kind of members it has; empty if it has never had any.
    pub protocol_type: Str,
    /// The protocol of its generation; empty if it is not Stable.
    pub protocol: Str,
    /// The members.
    pub members: Vec<DescribedMember>,
}

/// A member as DescribeGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribedMember {
    /// The member id.
    pub member_id: Str,
    /// The instance id of a static member.
    pub instance_id: Option<Str>,
    /// The client id.
    pub client_id: Str,
    /// The client's address.
    pub client_host: Str,
    /// What it has to say for the protocol; empty if the group is not Stable.
    pub metadata: Bytes,
    /// Its assignment; empty if the group is not Stable.
    pub assignment: Bytes,
}

impl DescribedGroup {
    /// What DescribeGroups shows of a group that does not exist.
    #[must_use]
    pub const fn absent() -> Self {
        Self { state: State::Dead, protocol_type: Str::EMPTY, protocol: Str::EMPTY, members: Vec::new() }
    }
}

/// What a group can be asked.
impl Group {
    /// The group id.
    #[must_use]
    pub fn group_id(&self) -> &Str {
        &self.group_id
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// The generation: 0 before the first, and never less than before.
    #[must_use]
    pub fn generation(&self) -> i32 {
        self.generation
    }

    /// How many members it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// How many member ids were given out and have not come back yet.
    #[must_use]
    pub fn given_out_ids(&self) -> usize {
        self.pending_members.len()
    }

    /// Whether nothing has come of the group, or nothing is left: it has no members, nobody is about to join, and no offset
    /// is committed, being committed or part of an open transaction. The next expiry of offsets ends it (KIP-211).
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        self.state == State::Empty && self.offsets.is_empty() && self.pending_members.is_empty()
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What ListGroups shows.
    #[must_use]
    pub fn overview(&self) -> Overview {
        Overview {
            group_id: self.group_id.clone(),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            state: self.state,
        }
    }

    /// What DescribeGroups shows. Metadata and assignments mean something in a Stable group only.
    #[must_use]
    pub fn describe(&self) -> DescribedGroup {
        let stable = self.state == State::Stable;
        let protocol = self.protocol_name.clone().filter(|_| stable).unwrap_or_default();
        let members = self.members.values().map(|member| DescribedMember {
            member_id: member.member_id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            metadata: if stable { member.metadata(&protocol) } else { Bytes::new() },
            assignment: if stable { member.assignment.clone() } else { Bytes::new() },
        });
        let members = if self.state == State::Dead { Vec::new() } else { members.collect() };
        DescribedGroup {
            state: self.state,
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol,
            members,
        }
    }
}

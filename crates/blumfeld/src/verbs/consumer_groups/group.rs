//! One group as its coordinator tells it: state, members and what they are assigned, and committed offsets.

use std::collections::BTreeMap;
use std::time::Duration;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::describe_groups_response::DescribedGroupMember;
use wire::messages::{DescribeGroupsRequest, DescribeGroupsResponse};
use wire::types::{Offset, TopicPartition};

use crate::cluster::ClusterError;
use crate::group::Coordinator;
use crate::group::embedded::decode_assignment;

/// A member of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MemberOfGroup {
    pub(super) id: String,
    pub(super) instance: Option<String>,
    pub(super) client: String,
    pub(super) host: String,
    /// What it is assigned, ascending.
    pub(super) assigned: Vec<TopicPartition>,
}

/// A group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) state: String,
    /// The assignor; empty while there is none.
    pub(super) strategy: String,
    /// The coordinator's id and address.
    pub(super) coordinator: (i32, String),
    pub(super) members: Vec<MemberOfGroup>,
}

impl Group {
    /// Whether nothing is known of the group.
    pub(super) fn is_missing(&self) -> bool {
        self.state == "Dead"
    }

    /// Whether it has no members.
    pub(super) fn is_inactive(&self) -> bool {
        matches!(self.state.as_str(), "Empty" | "Dead")
    }

    /// What people must know before they read on, if anything.
    pub(super) fn remark(&self) -> Option<String> {
        let name = &self.name;
        match self.state.as_str() {
            "Empty" => Some(format!("Consumer group '{name}' has no active members.")),
            "PreparingRebalance" | "CompletingRebalance" | "Assigning" | "Reconciling" => {
                Some(format!("Warning: Consumer group '{name}' is rebalancing."))
            }
            _ => None,
        }
    }
}

/// Asks for a group.
///
/// # Errors
/// If the coordinator refuses or is not found in time.
pub(super) async fn describe(coordinator: &mut Coordinator) -> Result<Group, ClusterError> {
    let name = coordinator.group().to_owned();
    let request =
        |_: i16| DescribeGroupsRequest { groups: vec![Str::from(name.as_str())], ..Default::default() };
    let code =
        |response: &DescribeGroupsResponse| response.groups.first().map_or(0, |group| group.error_code);
    let response = coordinator.call(request, Duration::ZERO, code).await?;
    let at = coordinator.find().await?;
    let Some(told) = response.groups.into_iter().next() else {
        return Ok(Group { name, state: "Dead".to_owned(), coordinator: at, ..Default::default() });
    };
    // From version 6 on, which we do not speak, a missing group is an error; before, it is a dead one.
    if told.error_code != 0 && told.error_code != ErrorCode::GroupIdNotFound.code() {
        return Err(ClusterError::refused(format!("group {name}"), told.error_code, None));
    }
    let is_consumer = matches!(told.protocol_type.as_str(), "consumer" | "");
    let mut members: Vec<MemberOfGroup> =
        told.members.into_iter().map(|member| read_member(member, is_consumer)).collect();
    members.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(Group {
        name,
        state: told.group_state.as_str().to_owned(),
        strategy: told.protocol_data.as_str().to_owned(),
        coordinator: at,
        members,
    })
}

fn read_member(member: DescribedGroupMember, is_consumer: bool) -> MemberOfGroup {
    // What cannot be read is another protocol's; then nothing is known of it.
    let assigned = if is_consumer { decode_assignment(member.member_assignment) } else { Ok(Vec::new()) };
    let mut assigned = assigned.unwrap_or_default();
    assigned.sort();
    MemberOfGroup {
        id: member.member_id.as_str().to_owned(),
        instance: member.group_instance_id.map(|id| id.as_str().to_owned()),
        client: member.client_id.as_str().to_owned(),
        host: member.client_host.as_str().to_owned(),
        assigned,
    }
}

/// What the group has committed, and where the partitions end that it has committed for or is assigned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The committed offsets.
    pub(super) committed: BTreeMap<TopicPartition, Offset>,
    /// The ends; a partition whose end cannot be had is missing.
    pub(super) ends: BTreeMap<TopicPartition, Offset>,
}

impl Progress {
    /// How far the group is behind.
    pub(super) fn lag(&self, at: &TopicPartition) -> Option<i64> {
        Some(self.ends.get(at)?.0.saturating_sub(self.committed.get(at)?.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_without_members_or_between_two_assignments_is_remarked_on() {
        let group = |state: &str| Group { name: "g".into(), state: state.into(), ..Default::default() };
        assert_eq!(group("Empty").remark().unwrap(), "Consumer group 'g' has no active members.");
        assert!(group("PreparingRebalance").remark().unwrap().contains("rebalancing"));
        assert_eq!(group("Stable").remark(), None);
        assert!(group("Dead").is_missing() && group("Dead").is_inactive() && !group("Stable").is_inactive());
    }

    #[test]
    fn the_lag_is_known_where_both_offsets_are() {
        let at = TopicPartition::new("t", 0);
        let mut progress = Progress::default();
        progress.committed.insert(at.clone(), Offset(3));
        assert_eq!(progress.lag(&at), None);
        progress.ends.insert(at.clone(), Offset(10));
        assert_eq!(progress.lag(&at), Some(7));
    }
}

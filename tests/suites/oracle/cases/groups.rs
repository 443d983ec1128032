//! The life of a group, in every state of it and in every version: FindCoordinator, JoinGroup, SyncGroup, Heartbeat,
//! LeaveGroup, DescribeGroups, ListGroups, OffsetCommit, OffsetFetch, DeleteGroups, OffsetDelete.

use anyhow::{Context, Result};
use bytes::Bytes;
use wire::Str;
use wire::messages::join_group_request::JoinGroupRequestProtocol;
use wire::messages::leave_group_request::MemberIdentity;
use wire::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use wire::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use wire::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use wire::messages::sync_group_request::SyncGroupRequestAssignment;
use wire::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, FindCoordinatorRequest, HeartbeatRequest, JoinGroupRequest,
    JoinGroupResponse, LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest, OffsetDeleteRequest,
    OffsetFetchRequest, SyncGroupRequest,
};

use super::all;
use crate::lab::{Lab, Side};

pub fn run(lab: &mut Lab) -> Result<()> {
    find(lab)?;
    for version in all::<JoinGroupRequest>() {
        Trial::new(lab, "life", version).live()?;
    }
    Ok(())
}

fn find(lab: &mut Lab) -> Result<()> {
    let first = FindCoordinatorRequest { key: "life".into(), ..FindCoordinatorRequest::default() };
    lab.until("a coordinator", 3, &first, |it| it.error_code == 0)?;
    for key_type in [0, 2, 3, -1] {
        for key in ["life", "", "grüppe"] {
            lab.ask(&format!("coordinator {key_type} of {key:?}"), 1..=6, |_, version| {
                find_coordinator(version, key_type, &[key])
            })?;
        }
    }
    lab.ask("a coordinator", 0..=0, |_, version| find_coordinator(version, 0, &["life"]))?;
    lab.ask("many coordinators", 4..=6, |_, version| find_coordinator(version, 0, &["a", "b", "c", "life"]))?;
    lab.ask("no coordinators", 4..=6, |_, version| find_coordinator(version, 0, &[]))
}

fn find_coordinator(version: i16, key_type: i8, keys: &[&str]) -> FindCoordinatorRequest {
    let mut it = FindCoordinatorRequest { key_type, ..FindCoordinatorRequest::default() };
    if version >= 4 {
        it.coordinator_keys = keys.iter().map(|key| Str::from(*key)).collect();
    } else {
        it.key = Str::from(keys.first().copied().unwrap_or_default());
    }
    it
}

/// What a consumer says that it subscribes to: version 0, the topic, no user data.
pub fn subscription(topic: &str) -> Bytes {
    let length = u8::try_from(topic.len()).unwrap_or(0);
    Bytes::from([&[0, 0, 0, 0, 0, 1, 0, length], topic.as_bytes(), &[0xff; 4]].concat())
}

/// A protocol with the subscription of all members here.
pub fn protocol(name: &str) -> JoinGroupRequestProtocol {
    JoinGroupRequestProtocol { name: Str::from(name), metadata: subscription("life") }
}

/// An offset to be committed.
pub fn offset(partition_index: i32, committed_offset: i64, metadata: &str) -> OffsetCommitRequestPartition {
    OffsetCommitRequestPartition {
        partition_index,
        committed_offset,
        committed_metadata: Some(Str::from(metadata)),
        ..OffsetCommitRequestPartition::default()
    }
}

/// A query of a group's offsets, in the form of the version; of all of them without topics.
pub fn fetch_offsets(version: i16, group: &str, topics: Option<&[(&str, &[i32])]>) -> OffsetFetchRequest {
    let mut it = OffsetFetchRequest::default();
    if version >= 8 {
        let topics = topics.map(|all| {
            let topics = all.iter().map(|(name, partitions)| OffsetFetchRequestTopics {
                name: Str::from(*name),
                partition_indexes: partitions.to_vec(),
            });
            topics.collect()
        });
        let group_id = Str::from(group);
        it.groups.push(OffsetFetchRequestGroup { group_id, topics, ..OffsetFetchRequestGroup::default() });
    } else {
        it.group_id = Str::from(group);
        it.topics = topics.map(|all| {
            let topics = all.iter().map(|(name, partitions)| OffsetFetchRequestTopic {
                name: Str::from(*name),
                partition_indexes: partitions.to_vec(),
            });
            topics.collect()
        });
    }
    it
}

/// Members that leave, one or many as the version allows.
pub fn leave(version: i16, group: &str, members: Vec<MemberIdentity>) -> LeaveGroupRequest {
    let mut it = LeaveGroupRequest { group_id: Str::from(group), ..LeaveGroupRequest::default() };
    if version >= 3 {
        it.members = members;
    } else {
        it.member_id = members.into_iter().next().map(|member| member.member_id).unwrap_or_default();
    }
    it
}

/// Offsets of partitions that an administrator deletes.
pub fn delete_offsets(group: &str, topics: &[(&str, &[i32])]) -> OffsetDeleteRequest {
    let topics = topics.iter().map(|(name, partitions)| {
        let partitions =
            partitions.iter().map(|index| OffsetDeleteRequestPartition { partition_index: *index });
        OffsetDeleteRequestTopic { name: Str::from(*name), partitions: partitions.collect() }
    });
    OffsetDeleteRequest { group_id: Str::from(group), topics: topics.collect() }
}

/// A group in a version of JoinGroup; the other requests follow as far as their versions go. Members are named by the
/// test; who was never let in has its name for an id.
pub struct Trial<'a> {
    pub lab: &'a mut Lab,
    pub group: String,
    pub version: i16,
}

impl<'a> Trial<'a> {
    pub fn new(lab: &'a mut Lab, name: &str, version: i16) -> Self {
        Self { lab, group: format!("{name}-{version}"), version }
    }

    /// The name under which a member's id is remembered.
    pub fn name(&self, member: &str) -> String {
        format!("{}/{member}", self.group)
    }

    pub fn id(&self, side: &Side, member: &str) -> Str {
        side.text(&self.name(member)).unwrap_or_else(|| Str::from(member))
    }

    fn join_request(&self, side: &Side, member: &str) -> JoinGroupRequest {
        JoinGroupRequest {
            group_id: Str::from(self.group.as_str()),
            session_timeout_ms: 60_000,
            rebalance_timeout_ms: 60_000,
            member_id: self.id(side, member),
            protocol_type: "consumer".into(),
            protocols: vec![protocol("range"), protocol("roundrobin")],
            ..JoinGroupRequest::default()
        }
    }

    /// Joins; `change` makes the request another one.
    pub fn join(
        &mut self,
        case: &str,
        member: &str,
        change: impl Fn(&mut JoinGroupRequest),
    ) -> Result<[Option<JoinGroupResponse>; 2]> {
        let requests = [&self.lab.kafka, &self.lab.blumfeld].map(|side| {
            let mut request = self.join_request(side, member);
            change(&mut request);
            (side.data(), request)
        });
        self.lab.once(case, self.version, |side| pick(&requests, side))
    }

    /// Remembers the ids that answers gave a member.
    pub fn learn(&mut self, member: &str, answers: [Option<JoinGroupResponse>; 2]) -> Result<()> {
        let name = self.name(member);
        for (side, answer) in [&mut self.lab.kafka, &mut self.lab.blumfeld].into_iter().zip(answers) {
            side.remember_text(&name, answer.context("no answer to a member")?.member_id);
        }
        Ok(())
    }

    pub fn sync(&mut self, case: &str, member: &str, generation: i32, assigned: &[&str]) -> Result<()> {
        let requests = self.sync_requests(member, generation, assigned);
        self.lab.once(case, self.version.min(5), |side| pick(&requests, side))?;
        Ok(())
    }

    fn sync_requests(
        &self,
        member: &str,
        generation: i32,
        assigned: &[&str],
    ) -> [(Str, SyncGroupRequest); 2] {
        [&self.lab.kafka, &self.lab.blumfeld].map(|side| {
            let assignments = assigned.iter().map(|it| SyncGroupRequestAssignment {
                member_id: self.id(side, it),
                assignment: Bytes::from(format!("what {it} reads")),
            });
            let named = self.version >= 5;
            let request = SyncGroupRequest {
                group_id: Str::from(self.group.as_str()),
                generation_id: generation,
                member_id: self.id(side, member),
                protocol_type: named.then(|| "consumer".into()),
                protocol_name: named.then(|| "range".into()),
                assignments: assignments.collect(),
                ..SyncGroupRequest::default()
            };
            (side.data(), request)
        })
    }

    pub fn heartbeat(&mut self, member: &str, generation: i32) -> Result<()> {
        let requests = [&self.lab.kafka, &self.lab.blumfeld].map(|side| {
            let request = HeartbeatRequest {
                group_id: Str::from(self.group.as_str()),
                generation_id: generation,
                member_id: self.id(side, member),
                ..HeartbeatRequest::default()
            };
            (side.data(), request)
        });
        let case = format!("heartbeat of {member:?} in {generation}");
        self.lab.once(&case, self.version.min(4), |side| pick(&requests, side))?;
        Ok(())
    }

    /// Commits offsets, some of them of partitions that are not, one with metadata that is too long.
    pub fn commit(&mut self, member: &str, generation: i32) -> Result<()> {
        let topics = vec![
            OffsetCommitRequestTopic {
                name: "life".into(),
                partitions: vec![
                    offset(0, 5, "of a member"),
                    offset(1, -1, ""),
                    offset(2, 7, &"x".repeat(4_097)),
                    offset(9, 1, ""),
                ],
            },
            OffsetCommitRequestTopic { name: "other".into(), partitions: vec![offset(0, 6, "ü")] },
            OffsetCommitRequestTopic { name: "nobody".into(), partitions: vec![offset(0, 6, "")] },
        ];
        let version = self.version.min(9);
        let requests = [&self.lab.kafka, &self.lab.blumfeld].map(|side| {
            let has_members = version >= 1;
            let request = OffsetCommitRequest {
                group_id: Str::from(self.group.as_str()),
                generation_id_or_member_epoch: if has_members { generation } else { -1 },
                member_id: if has_members { self.id(side, member) } else { Str::EMPTY },
                topics: topics.clone(),
                ..OffsetCommitRequest::default()
            };
            (side.data(), request)
        });
        let case = format!("commit of {member:?} in {generation}");
        self.lab.once(&case, version, |side| pick(&requests, side))?;
        Ok(())
    }

    pub fn leave(&mut self, case: &str, members: &[(&str, Option<&str>)]) -> Result<()> {
        let version = self.version.min(5);
        let requests = [&self.lab.kafka, &self.lab.blumfeld].map(|side| {
            let members = members.iter().map(|(member, instance)| MemberIdentity {
                member_id: self.id(side, member),
                group_instance_id: instance.map(Str::from),
                ..MemberIdentity::default()
            });
            (side.data(), leave(version, &self.group, members.collect()))
        });
        self.lab.once(case, version, |side| pick(&requests, side))?;
        Ok(())
    }

    /// Everything that tells of a group and changes nothing.
    pub fn look(&mut self, when: &str) -> Result<()> {
        let (version, group) = (self.version, Str::from(self.group.as_str()));
        for asks in [false, true].into_iter().take(if version >= 3 { 2 } else { 1 }) {
            self.lab.once(&format!("described {when}"), version.min(5), |_| DescribeGroupsRequest {
                groups: vec![group.clone(), "absent".into()],
                include_authorized_operations: asks,
            })?;
        }
        let filters: &[&[&str]] = if version >= 4 {
            &[&[], &["Stable"], &["preparingREBALANCE", "Empty"], &["CompletingRebalance"], &["nonsense", ""]]
        } else {
            &[&[]]
        };
        for filter in filters {
            self.lab.once(&format!("listed {when} as {filter:?}"), version.min(5), |_| {
                let states_filter = filter.iter().map(|state| Str::from(*state)).collect();
                ListGroupsRequest { states_filter, ..ListGroupsRequest::default() }
            })?;
        }
        let some: [(&str, &[i32]); 3] = [("life", &[0, 1, 2, 9]), ("nobody", &[0]), ("other", &[0])];
        self.lab.once(&format!("offsets {when}"), version.min(9), |_| {
            fetch_offsets(version, &group, Some(&some))
        })?;
        if version >= 2 {
            self.lab.once(&format!("all offsets {when}"), version.min(9), |_| {
                fetch_offsets(version, &group, None)
            })?;
        }
        Ok(())
    }

    /// What an administrator may try; the group must have members.
    fn be_refused(&mut self, when: &str) -> Result<()> {
        let group = Str::from(self.group.as_str());
        self.lab.once(&format!("deleted {when}"), self.version.min(2), |_| DeleteGroupsRequest {
            groups_names: vec![group.clone(), "absent".into(), group.clone()],
        })?;
        self.lab.once(&format!("offsets deleted {when}"), 0, |_| {
            delete_offsets(&group, &[("life", &[0, 9]), ("other", &[0]), ("nobody", &[0])])
        })?;
        for (case, kind, names) in [
            ("another type", "connect", vec!["range"]),
            ("other protocols", "consumer", vec!["sticky"]),
            ("no protocols", "consumer", vec![]),
            ("no type", "", vec!["range"]),
        ] {
            self.join(&format!("{case} {when}"), "", |it| {
                it.protocol_type = Str::from(kind);
                it.protocols = names.iter().map(|name| protocol(name)).collect();
            })?;
        }
        self.join(&format!("nobody joins {when}"), "nobody", |_| ())?;
        self.heartbeat("nobody", 1)?;
        self.sync(&format!("nobody syncs {when}"), "nobody", 1, &[])?;
        self.commit("nobody", 1)?;
        self.commit("", -1)?;
        self.leave(&format!("nobody leaves {when}"), &[("nobody", None)])
    }

    fn wait_for(&mut self, state: &str) -> Result<()> {
        let groups = vec![Str::from(self.group.as_str())];
        let request = DescribeGroupsRequest { groups, ..DescribeGroupsRequest::default() };
        self.lab.until(state, 0, &request, |it| {
            it.groups.first().is_some_and(|group| group.group_state.as_str() == state)
        })
    }

    fn live(&mut self) -> Result<()> {
        self.look("before it is")?;
        let first = self.join("the first joins", "", |_| ())?;
        self.learn("a", first)?;
        self.join("the first joins by its id", "a", |_| ())?;
        self.be_refused("before the assignment")?;
        self.member("a", 1)?;
        self.look("before the assignment")?;
        self.sync("the leader assigns", "a", 1, &["a", "nobody"])?;
        self.sync("the leader asks again", "a", 1, &[])?;
        self.member("a", 1)?;
        self.look("in one's hands")?;
        self.be_refused("in one's hands")?;
        self.second()?;
        self.go()
    }

    /// What a member says in a generation, and in those that are not.
    fn member(&mut self, member: &str, generation: i32) -> Result<()> {
        for generation in [generation, generation - 1, generation + 1, -1] {
            self.heartbeat(member, generation)?;
            self.commit(member, generation)?;
        }
        self.sync("in the generation before", member, generation - 1, &[])
    }

    fn second(&mut self) -> Result<()> {
        if self.version >= 4 {
            let second = self.join("the second asks for an id", "", |_| ())?;
            self.learn("b", second)?;
            self.look("with an id given out")?;
        }
        let name = if self.version >= 4 { "b" } else { "" };
        let requests =
            [&self.lab.kafka, &self.lab.blumfeld].map(|side| (side.data(), self.join_request(side, name)));
        self.lab.send_aside("join", self.version, |side| pick(&requests, side))?;
        self.wait_for("PreparingRebalance")?;
        self.be_refused("in a rebalance")?;
        self.member("a", 1)?;
        self.sync("in a rebalance", "a", 1, &["a"])?;
        self.join("the first joins again", "a", |_| ())?;
        let second =
            self.lab.answer_aside::<JoinGroupRequest>("the second has joined", "join", self.version)?;
        self.learn("b", second)?;
        self.look("with two, before the assignment")?;
        let requests = self.sync_requests("b", 2, &[]);
        self.lab.send_aside("sync", self.version.min(5), |side| pick(&requests, side))?;
        self.sync("the leader assigns to two", "a", 2, &["a", "b"])?;
        self.lab.answer_aside::<SyncGroupRequest>("the second is assigned", "sync", self.version.min(5))?;
        self.look("with two")?;
        self.join("a follower asks where it is", "b", |_| ())?;
        self.member("b", 2)
    }

    fn go(&mut self) -> Result<()> {
        self.leave("the second goes", &[("b", None), ("nobody", None), ("b", None)])?;
        self.heartbeat("a", 2)?;
        self.join("the first is left", "a", |_| ())?;
        self.sync("of the one left", "a", 3, &["a"])?;
        self.leave("none go", &[])?;
        self.leave("the last goes", &[("a", None)])?;
        self.look("when it is empty")?;
        self.member("a", 4)?;
        self.join("who was there joins", "a", |_| ())?;
        self.commit("", -1)?;
        let group = Str::from(self.group.as_str());
        self.lab.once("offsets deleted when it is empty", 0, |_| {
            delete_offsets(&group, &[("life", &[0, 1, 9]), ("nobody", &[0])])
        })?;
        self.look("when offsets are deleted")?;
        for case in ["deleted when it is empty", "deleted when it is no more"] {
            self.lab.once(case, self.version.min(2), |_| DeleteGroupsRequest {
                groups_names: vec![group.clone(), "absent".into()],
            })?;
        }
        self.look("when it is no more")?;
        self.lab.once("offsets of none deleted", 0, |_| delete_offsets(&group, &[("life", &[0])]))?;
        Ok(())
    }
}

/// The request for one of the two brokers, which are told apart by their folders.
pub fn pick<R: Clone + Default>(requests: &[(Str, R); 2], side: &Side) -> R {
    let own = requests.iter().find(|(data, _)| *data == side.data());
    own.map(|(_, request)| request.clone()).unwrap_or_default()
}

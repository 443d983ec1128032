//! Who is a member: adding, changing and removing, with everything that is counted on the way.

use std::collections::BTreeSet;

use wire::Str;
use wire::types::Now;

use super::member::{Member, owned};
use super::timers::Timer;
use super::{Group, JoinRequest, Protocol, State};

impl Group {
    /// Adds a member; the first one becomes the leader.
    pub(super) fn add(&mut self, member: Member, protocol_type: &Str) {
        if self.members.is_empty() {
            self.protocol_type = Some(owned(protocol_type));
        }
        let id = member.member_id.clone();
        self.leader.get_or_insert_with(|| id.clone());
        if let Some(instance) = &member.instance_id {
            self.static_members.insert(instance.clone(), id.clone());
        }
        self.count_protocols(&member.protocols, true);
        self.awaiting_join += usize::from(member.awaiting_join.is_some());
        self.pending_members.remove(&id);
        self.timers.cancel(&Timer::PendingMember(id.clone()));
        self.members.insert(id, member);
    }

    /// Takes a member out, with its timer; what waits for an answer comes with it. A leader is followed by any other.
    pub(super) fn take(&mut self, id: &Str) -> Option<Member> {
        self.pending_members.remove(id);
        self.pending_sync.remove(id);
        self.timers.cancel(&Timer::PendingMember(id.clone()));
        self.timers.cancel(&Timer::Session(id.clone()));
        let member = self.members.remove(id)?;
        self.count_protocols(&member.protocols, false);
        self.awaiting_join -= usize::from(member.awaiting_join.is_some());
        if let Some(instance) = &member.instance_id {
            self.static_members.remove(instance);
        }
        if self.leader.as_ref() == Some(id) {
            self.leader = self.members.keys().next().cloned();
        }
        Some(member)
    }

    /// Gives a member new protocols and timeouts.
    pub(super) fn update(&mut self, id: &Str, join: &JoinRequest) {
        if let Some(member) = self.members.get_mut(id) {
            member.rebalance_timeout_ms = join.rebalance_timeout_ms;
            member.session_timeout_ms = join.session_timeout_ms;
        }
        self.set_protocols(id, join.protocols.iter().map(Protocol::owned).collect());
    }

    pub(super) fn set_protocols(&mut self, id: &Str, protocols: Vec<Protocol>) {
        let Some(member) = self.members.get_mut(id) else { return };
        let before = std::mem::replace(&mut member.protocols, protocols.clone());
        self.count_protocols(&before, false);
        self.count_protocols(&protocols, true);
    }

    /// Whether a joining member could take part: another one may not speak a language that nobody shares.
    pub(super) fn supports(&self, join: &JoinRequest) -> bool {
        if self.state == State::Empty {
            return !join.protocol_type.is_empty() && !join.protocols.is_empty();
        }
        let same_type = self.protocol_type.as_ref() == Some(&join.protocol_type);
        same_type && join.protocols.iter().any(|it| self.is_candidate(&it.name))
    }

    /// Whether all members know a protocol.
    pub(super) fn is_candidate(&self, protocol: &str) -> bool {
        self.supported_protocols.get(protocol).copied().unwrap_or(0) == self.members.len()
    }

    /// The protocol with the most votes among those that all members know.
    pub(super) fn select_protocol(&self) -> Option<Str> {
        let mut votes = std::collections::BTreeMap::<&Str, usize>::new();
        for member in self.members.values() {
            if let Some(name) = member.vote(|name| self.is_candidate(name)) {
                *votes.entry(name).or_default() += 1;
            }
        }
        votes.into_iter().max_by_key(|(_, votes)| *votes).map(|(name, _)| name.clone())
    }

    pub(super) fn is_leader(&self, id: &Str) -> bool {
        self.leader.as_ref() == Some(id)
    }

    /// The longest rebalance timeout of the members, in milliseconds.
    pub(super) fn rebalance_timeout_ms(&self) -> i64 {
        let longest = self.members.values().map(|it| it.rebalance_timeout_ms).max();
        i64::from(longest.unwrap_or(0).max(0))
    }

    /// Begins a full session timeout of a member. A request of it that waits counts as a sign of life, so nothing runs
    /// until it is answered, unless the member is too new to send heartbeats.
    pub(super) fn restart_session(&mut self, now: Now, id: &Str) {
        let Some(member) = self.members.get(id) else { return };
        let timer = Timer::Session(id.clone());
        if member.is_parked() && !member.is_new {
            self.timers.cancel(&timer);
        } else {
            self.timers.set(timer, now.mono_ms.saturating_add(i64::from(member.session_timeout_ms)));
        }
    }

    fn count_protocols(&mut self, protocols: &[Protocol], add: bool) {
        let names: BTreeSet<_> = protocols.iter().map(|it| &it.name).collect();
        for name in names {
            let count = self.supported_protocols.entry(name.clone()).or_default();
            *count = if add { *count + 1 } else { count.saturating_sub(1) };
            if *count == 0 {
                self.supported_protocols.remove(name);
            }
        }
    }
}

//! A static member whose process was restarted: the new one takes its place, in a Stable group without a rebalance
//! (KIP-345, KIP-814).

use wire::Str;
use wire::error_code::ErrorCode;
use wire::types::Now;

use super::in_flight::{InFlight, Replacement};
use super::join::refuse;
use super::member::{Member, owned};
use super::timers::Timer;
use super::{Answer, Command, Group, JoinRequest, Reason, RequestId, State, SyncAnswer, answer, errors};

impl Group {
    /// A process joins as the instance that `old` is the member of.
    pub(super) fn replace_static_member(
        &mut self,
        now: Now,
        request: RequestId,
        old: &Str,
        join: &JoinRequest,
        out: &mut Vec<Command>,
    ) {
        let (leader_before, new) = (self.leader.clone(), owned(&join.fresh_member_id));
        let Some(before) = self.rename(old, &new, out) else {
            // The edge gave out the same id twice; the next try gets another one.
            return refuse(request, ErrorCode::UnknownMemberId, Str::EMPTY, out);
        };
        self.update(&new, join);
        self.restart_session(now, &new);
        let is_unchanged = self.state == State::Stable && self.select_protocol() == self.protocol_name;
        if !is_unchanged {
            // Between join and sync the leader may have been told of the old one already (KAFKA-9801).
            self.begin_rebalance(now, Reason::InstanceReplaced(new.clone()), out);
            return self.park(&new, request, out);
        }
        let mut joined = self.joined(&new, false);
        if !join.supports_skipping_assignment {
            // A replaced leader that is not told of itself does not assign.
            joined.leader = leader_before.unwrap_or_default();
        } else if self.is_leader(&new) {
            joined.members = self.joined_members();
            joined.skip_assignment = true;
        }
        let replacement = Replacement { request, joined, member_id: new, before };
        let assignments: std::collections::BTreeMap<_, _> =
            self.members.iter().map(|(id, it)| (id.clone(), it.assignment.clone())).collect();
        let of = |id: &Str| assignments.get(id).cloned().unwrap_or_default();
        // KAFKA-10284: the next coordinator must know the new id too.
        self.store_group(now, of, InFlight::Replacement(Box::new(replacement)), out);
    }

    /// The end of storing a replacement. If that failed, the member is what it was before, wholly (KAFKA-18263).
    pub(super) fn replacement_stored(
        &mut self,
        now: Now,
        replacement: Replacement,
        outcome: Result<(), ErrorCode>,
        out: &mut Vec<Command>,
    ) {
        let Replacement { request, joined, member_id, before } = replacement;
        let Err(error) = outcome else {
            return answer(request, Answer::Join(joined), out);
        };
        refuse(request, errors::of_group(error), Str::EMPTY, out);
        if !self.members.contains_key(&member_id) {
            return;
        }
        let old = before.member_id.clone();
        self.rename(&member_id, &old, out);
        self.restore(&old, &before);
        self.restart_session(now, &old);
        // Somebody has been told of the one that is gone again: the leader, or the log by a record that is on its way.
        let is_told = self.in_flight.values().any(|it| matches!(it, InFlight::Replacement(_)));
        if is_told || self.state == State::CompletingRebalance {
            self.begin_rebalance(now, Reason::InstanceReplaced(old), out);
        }
    }

    /// Gives the member `old` the id `new`, and fences whoever still waits under the old id. Returns what it was.
    fn rename(&mut self, old: &Str, new: &Str, out: &mut Vec<Command>) -> Option<Member> {
        if old == new || self.members.contains_key(new) {
            return None;
        }
        self.fence_replacements(old, out);
        let mut member = self.members.remove(old)?;
        let fenced = ErrorCode::FencedInstanceId;
        if let Some(request) = member.awaiting_join.take() {
            self.awaiting_join -= 1;
            refuse(request, fenced, old.clone(), out);
        }
        for request in std::mem::take(&mut member.awaiting_sync) {
            answer(request, Answer::Sync(SyncAnswer::error(fenced)), out);
        }
        let before = member.clone();
        member.member_id = new.clone();
        if let Some(instance) = &member.instance_id {
            self.static_members.insert(instance.clone(), new.clone());
        }
        if self.leader.as_ref() == Some(old) {
            self.leader = Some(new.clone());
        }
        if self.pending_sync.remove(old) {
            self.pending_sync.insert(new.clone());
        }
        self.timers.cancel(&Timer::Session(old.clone()));
        self.members.insert(new.clone(), member);
        Some(before)
    }

    /// Whoever has just taken a place that is taken again is fenced, though his own record is not stored yet.
    fn fence_replacements(&mut self, id: &Str, out: &mut Vec<Command>) {
        let is_it = |it: &InFlight| matches!(it, InFlight::Replacement(it) if it.member_id == *id);
        let found: Vec<_> =
            self.in_flight.iter().filter(|(_, it)| is_it(it)).map(|(append, _)| *append).collect();
        for append in found {
            if let Some(InFlight::Replacement(replacement)) = self.in_flight.remove(&append) {
                refuse(replacement.request, ErrorCode::FencedInstanceId, id.clone(), out);
            }
        }
    }

    /// Takes protocols and timeouts back to what they were.
    fn restore(&mut self, id: &Str, before: &Member) {
        self.set_protocols(id, before.protocols.clone());
        if let Some(member) = self.members.get_mut(id) {
            member.rebalance_timeout_ms = before.rebalance_timeout_ms;
            member.session_timeout_ms = before.session_timeout_ms;
        }
    }
}

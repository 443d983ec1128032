//! LeaveGroup, and every other way for a member to go.

use wire::Str;
use wire::error_code::ErrorCode;
use wire::types::Now;

use super::join::refuse;
use super::member::Member;
use super::{Answer, Command, Group, LeavingMember, Note, Reason, RequestId, State, SyncAnswer, answer};

impl Group {
    pub(super) fn leave(
        &mut self,
        now: Now,
        request: RequestId,
        leaving: &[LeavingMember],
        out: &mut Vec<Command>,
    ) {
        if self.state == State::Dead {
            return answer(request, Answer::Leave(Err(ErrorCode::CoordinatorNotAvailable)), out);
        }
        let codes = leaving.iter().map(|it| self.leave_one(now, it, out).err().unwrap_or(ErrorCode::None));
        let codes = codes.collect();
        answer(request, Answer::Leave(Ok(codes)), out);
    }

    fn leave_one(
        &mut self,
        now: Now,
        leaving: &LeavingMember,
        out: &mut Vec<Command>,
    ) -> Result<(), ErrorCode> {
        let LeavingMember { member_id, instance_id } = leaving;
        if self.pending_members.contains(member_id) {
            // KAFKA-7909: nobody waits for it any more.
            self.take(member_id);
            self.maybe_complete_join(now, out);
            return Ok(());
        }
        let id = if member_id.is_empty() {
            // An administrator names the instance only.
            let current = instance_id.as_ref().and_then(|it| self.static_members.get(it));
            current.cloned().ok_or(ErrorCode::UnknownMemberId)?
        } else {
            self.check_member(member_id, instance_id.as_ref())?;
            member_id.clone()
        };
        self.remove_and_update(now, &id, Reason::Left(id.clone()), out);
        Ok(())
    }

    /// Removes a member, and rebalances or goes on without it.
    pub(super) fn remove_and_update(&mut self, now: Now, id: &Str, reason: Reason, out: &mut Vec<Command>) {
        let Some(member) = self.take(id) else { return };
        self.give_up_waiting(member, out);
        out.push(Command::Note(Note::MemberRemoved { member_id: id.clone(), reason: reason.clone() }));
        match self.state {
            State::Stable | State::CompletingRebalance => self.begin_rebalance(now, reason, out),
            State::PreparingRebalance => self.maybe_complete_join(now, out),
            State::Empty | State::Dead => {}
        }
    }

    /// Answers what a removed member waits for: if it is still there, it joins as somebody new.
    pub(super) fn give_up_waiting(&self, member: Member, out: &mut Vec<Command>) {
        if let Some(request) = member.awaiting_join {
            refuse(request, ErrorCode::UnknownMemberId, Str::EMPTY, out);
        }
        for request in member.awaiting_sync {
            answer(request, Answer::Sync(SyncAnswer::error(ErrorCode::UnknownMemberId)), out);
        }
    }
}

//! Heartbeat: a sign of life, answered with whether the member has to join again.

use wire::error_code::ErrorCode;
use wire::types::Now;

use super::{Answer, Command, Group, HeartbeatRequest, RequestId, State, answer};

impl Group {
    pub(super) fn heartbeat(
        &mut self,
        now: Now,
        request: RequestId,
        heartbeat: &HeartbeatRequest,
        out: &mut Vec<Command>,
    ) {
        let error = self.check_heartbeat(heartbeat).err().unwrap_or_else(|| {
            self.restart_session(now, &heartbeat.member_id);
            match self.state {
                State::PreparingRebalance => ErrorCode::RebalanceInProgress,
                _ => ErrorCode::None,
            }
        });
        answer(request, Answer::Heartbeat(error), out);
    }

    fn check_heartbeat(&self, heartbeat: &HeartbeatRequest) -> Result<(), ErrorCode> {
        if self.state == State::Dead {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        self.check_member(&heartbeat.member_id, heartbeat.instance_id.as_ref())?;
        if heartbeat.generation != self.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        Ok(())
    }
}

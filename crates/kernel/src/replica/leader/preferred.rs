//! Which replica a consumer should read from (KIP-392): the one in its own rack, if that has what it asks for.
//!
//! The rule is that of Kafka's `RackAwareReplicaSelector`. Only in-sync replicas count, since one that lags would keep its
//! readers behind (KAFKA-14372); of several in the rack, the one that has most, then the one that had everything last,
//! then the one of the highest id.

use wire::types::{BrokerId, Offset};

use super::{Leader, RemoteReplica};

impl Leader {
    /// The follower to which a consumer in `client_rack` is sent for `fetch_offset`; `None`: it is served here.
    ///
    /// `rack_of` tells the rack of a broker that is alive and has a listener for the consumer.
    pub fn preferred_read_replica<'a>(
        &self,
        fetch_offset: Offset,
        client_rack: &str,
        rack_of: impl Fn(BrokerId) -> Option<&'a str>,
    ) -> Option<BrokerId> {
        let is_near = |id: BrokerId| !client_rack.is_empty() && rack_of(id) == Some(client_rack);
        if is_near(self.broker) {
            return None;
        }
        let may_serve = |id: BrokerId, it: &RemoteReplica| {
            self.leadership.isr.contains(&id)
                && it.log_end() != Offset::UNKNOWN
                && it.log_start() <= fetch_offset
                && fetch_offset <= it.log_end()
        };
        let near = self.remotes.iter().filter(|(id, it)| may_serve(**id, it) && is_near(**id));
        near.max_by_key(|(id, it)| (it.log_end(), it.last_caught_up_ms(), **id)).map(|(id, _)| *id)
    }
}

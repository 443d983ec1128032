//! Where the role of a partition changes, and nowhere else: to leader, to follower, to nothing.

use std::sync::{Arc, PoisonError, RwLockWriteGuard};

use kernel::replica::leader::{Cause, Leadership, Settings, Start};
use storage::log_config::LogConfig;
use storage::partition_log::LogError;
use wire::types::Millis;

use super::history::{Epochs, Happened, Origin, Trigger, What};
use super::role::{Following, Leading, State};
use super::{Event, Partition, live_among};
use crate::broker::Broker;

impl Partition {
    /// Leads by this decision: the epoch is recorded, with the log end as its start, before anything is appended in it
    /// (KAFKA-7415), and the high watermark moves as far as it may.
    ///
    /// # Errors
    /// If the epoch cannot be recorded; the role stays as it was.
    pub(crate) fn become_leader(
        &self,
        broker: &Arc<Broker>,
        leadership: Leadership,
        origin: Origin,
    ) -> Result<(), LogError> {
        let told = Epochs { leader: leadership.leader_epoch, partition: leadership.partition_epoch };
        let live = live_among(&broker.image(), &leadership.replicas);
        let mut effects = {
            let mut state = self.state_mut();
            self.log.become_leader(leadership.leader_epoch)?;
            let positions = self.log.positions();
            let start = Start {
                broker: broker.id(),
                high_watermark: positions.high_watermark,
                log_end: positions.log_end,
                settings: settings(broker, &self.log.config()),
                live,
                leadership,
            };
            let (leading, effects) = Leading::begin(start, state.leading().ok(), &self.log, broker.now());
            *state = State::Leader(Box::new(leading));
            effects
        };
        self.note_causes(broker, std::mem::take(&mut effects.notes), Some((origin, told)));
        self.carry_out(broker, effects);
        self.wake_all(broker);
        Ok(())
    }

    /// Follows from now on: appends and produces that wait for replicas fail.
    pub(crate) fn become_follower(&self, broker: &Arc<Broker>, following: Following, origin: Origin) {
        *self.state_mut() = State::Follower(following);
        let told = Epochs { leader: following.epoch, partition: following.partition_epoch };
        self.note(broker, Trigger::Request(origin), Some(told), What::Follows(following));
        self.wake_all(broker);
    }

    /// The log directory has failed: nobody is served from here until the broker is restarted.
    pub(crate) fn become_offline(&self, broker: &Arc<Broker>) {
        *self.state_mut() = State::Offline;
        self.note(broker, Trigger::DiskFailure, None, What::Offline);
        self.wake_all(broker);
    }

    /// The replica is removed from this broker. Returns what had happened to it, for those who ask later.
    pub(crate) fn become_deleted(&self, broker: &Arc<Broker>, origin: Origin) -> Vec<Happened> {
        *self.state_mut() = State::Deleted;
        self.note(broker, Trigger::Request(origin), None, What::Deleted);
        self.wake_all(broker);
        self.history()
    }

    /// The replica is not served for a while. It keeps its role and epoch; whoever waits sees for himself.
    pub(crate) fn stop(&self, broker: &Arc<Broker>, origin: Origin) {
        self.note(broker, Trigger::Request(origin), None, What::Stopped);
        self.wake_all(broker);
    }

    /// The log has new settings.
    pub(crate) fn update_config(&self, broker: &Arc<Broker>, config: Arc<LogConfig>) {
        let settings = settings(broker, &config);
        self.log.update_config(config);
        self.tell_leader(broker, Event::Settings(settings));
    }

    /// Notes what the leader did; `given`: the request that made it leader, and the epochs that it told.
    pub(super) fn note_causes(&self, broker: &Broker, causes: Vec<Cause>, given: Option<(Origin, Epochs)>) {
        let meters = &broker.metrics().replicas;
        for cause in causes {
            let trigger = match &cause {
                Cause::Confirmed { expanded: true, .. } => {
                    meters.isr_expands.inc();
                    Trigger::IsrAnswer
                }
                Cause::Confirmed { expanded: false, .. } => {
                    meters.isr_shrinks.inc();
                    Trigger::IsrAnswer
                }
                Cause::NotAttempted { .. } | Cause::Superseded { .. } => Trigger::IsrAnswer,
                Cause::Expanding { replica, .. } => Trigger::FollowerFetch(*replica),
                Cause::Leading { .. } => {
                    given.map_or(Trigger::Opened, |(origin, _)| Trigger::Request(origin))
                }
                Cause::Shrinking { .. } => Trigger::Lag,
            };
            let told = given.map(|(_, told)| told);
            self.note(broker, trigger, told, What::Leader(cause));
        }
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn settings(broker: &Broker, config: &LogConfig) -> Settings {
    Settings {
        replica_lag_time_max: Millis(broker.config().replica_lag_time_max_ms),
        min_insync_replicas: config.min_insync_replicas,
    }
}

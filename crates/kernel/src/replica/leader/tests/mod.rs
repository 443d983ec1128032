//! A leader with a log end and a clock of its own, and followers that fetch when a test says so.

mod high_watermark;
mod isr;
mod model;
mod preferred;
mod succession;

use super::*;

pub(super) const ME: BrokerId = BrokerId(1);
pub(super) const LAG_MS: i64 = 30_000;

pub(super) fn ids(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

pub(super) fn live(ids: &[i32]) -> BTreeSet<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

pub(super) fn leadership(leader_epoch: i32, replicas: &[i32], isr: &[i32]) -> Leadership {
    Leadership {
        leader_epoch: LeaderEpoch(leader_epoch),
        partition_epoch: leader_epoch * 10,
        controller_epoch: ControllerEpoch(1),
        replicas: ids(replicas),
        adding: Vec::new(),
        removing: Vec::new(),
        isr: ids(isr),
    }
}

/// The machine with what surrounds it.
#[derive(Clone, Debug)]
pub(super) struct Bench {
    pub(super) leader: Leader,
    pub(super) log_end: i64,
    pub(super) now_ms: i64,
}

impl Bench {
    /// Broker 1 leads in epoch 5 with the log at `high_watermark..log_end`; everybody is alive.
    pub(super) fn start(replicas: &[i32], isr: &[i32], high_watermark: i64, log_end: i64) -> Self {
        Self::start_with(replicas, isr, high_watermark, log_end, 1).0
    }

    pub(super) fn start_with(
        replicas: &[i32],
        isr: &[i32],
        high_watermark: i64,
        log_end: i64,
        min_insync_replicas: i32,
    ) -> (Self, Vec<Command>) {
        let start = Start {
            broker: ME,
            leadership: leadership(5, replicas, isr),
            high_watermark: Offset(high_watermark),
            log_end: Offset(log_end),
            settings: Settings { replica_lag_time_max: Millis(LAG_MS), min_insync_replicas },
            live: live(replicas),
        };
        let mut out = Vec::new();
        let leader = Leader::begin(start, None, now(1), &mut out);
        leader.check();
        (Self { leader, log_end, now_ms: 1 }, out)
    }

    /// The same broker leads on in another epoch.
    pub(super) fn lead_again(&mut self, leadership: Leadership) -> Vec<Command> {
        let start = Start {
            broker: ME,
            live: leadership.replicas.iter().copied().collect(),
            leadership,
            high_watermark: self.leader.high_watermark(),
            log_end: Offset(self.log_end),
            settings: self.leader.settings,
        };
        let mut out = Vec::new();
        self.leader = Leader::begin(start, Some(&self.leader), now(self.now_ms), &mut out);
        self.leader.check();
        out
    }

    pub(super) fn step(&mut self, event: Event) -> Vec<Command> {
        let mut out = Vec::new();
        self.leader.step(now(self.now_ms), event, &mut out);
        self.leader.check();
        out
    }

    pub(super) fn append(&mut self, records: i64) -> Vec<Command> {
        self.log_end += records;
        self.step(Event::Appended { log_end: Offset(self.log_end) })
    }

    pub(super) fn fetch(&mut self, replica: i32, offset: i64) -> Vec<Command> {
        self.fetch_in(-1, replica, offset)
    }

    /// A fetch that names the broker epoch of the replica.
    pub(super) fn fetch_in(&mut self, broker_epoch: i64, replica: i32, offset: i64) -> Vec<Command> {
        self.step(Event::FollowerFetched {
            replica: BrokerId(replica),
            broker_epoch: BrokerEpoch(broker_epoch),
            leader_epoch: self.leader.leader_epoch(),
            offset: Offset(offset),
            log_start: Offset(0),
            leader_end: Offset(self.log_end),
        })
    }

    pub(super) fn wait(&mut self, ms: i64) -> Vec<Command> {
        self.now_ms += ms;
        self.step(Event::Tick)
    }

    pub(super) fn answer(&mut self, change: IsrChange, answer: IsrAnswer) -> Vec<Command> {
        self.step(Event::IsrAnswered { change, answer })
    }

    /// The change is made, and the partition epoch rises by one.
    pub(super) fn confirm(&mut self, change: IsrChange) -> Vec<Command> {
        let answer = confirmed(change.leader_epoch.0, change.partition_epoch + 1, &change.isr);
        self.answer(change, answer)
    }

    pub(super) fn high_watermark(&self) -> i64 {
        self.leader.high_watermark().0
    }

    pub(super) fn isr(&self) -> Vec<i32> {
        self.leader.isr().iter().map(|id| id.0).collect()
    }
}

pub(super) fn now(mono_ms: i64) -> Now {
    Now { mono_ms, wall_ms: 0 }
}

pub(super) fn confirmed(leader_epoch: i32, partition_epoch: i32, isr: &[BrokerId]) -> IsrAnswer {
    IsrAnswer::Confirmed { leader_epoch: LeaderEpoch(leader_epoch), partition_epoch, isr: isr.to_vec() }
}

/// The change of the ISR among the commands.
pub(super) fn submitted(commands: &[Command]) -> Option<IsrChange> {
    let mut changes = commands.iter().filter_map(|command| match command {
        Command::SubmitIsr(change) => Some(change.clone()),
        _ => None,
    });
    let first = changes.next();
    assert_eq!(changes.next(), None, "one change at a time: {commands:?}");
    first
}

/// Where the high watermark is to go.
pub(super) fn advanced(commands: &[Command]) -> Option<i64> {
    commands.iter().find_map(|command| match command {
        Command::AdvanceHighWatermark(offset) => Some(offset.0),
        _ => None,
    })
}

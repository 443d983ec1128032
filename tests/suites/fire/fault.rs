//! The kinds of faults, and how long each lasts.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

/// How long after its last word ZooKeeper counts a broker as gone, in milliseconds.
pub(crate) const SESSION_TIMEOUT_MS: u32 = 2000;

/// What happens to a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// A leader is killed with SIGKILL and started again, before or after its session's end.
    KillLeader,
    /// The controller is.
    KillController,
    /// A leader is stopped with SIGTERM and started again.
    StopLeader,
    /// The controller is.
    StopController,
    /// A broker is frozen (SIGSTOP), and goes on within its session.
    FreezeBriefly,
    /// A leader is frozen, and goes on when its session has ended.
    FreezeLeader,
    /// The controller is.
    FreezeController,
    /// A leader and another broker do not reach each other.
    Part,
    /// What one broker says to another is held, the other way is free.
    Deafen,
    /// What anybody says to a broker is held, its own requests reach the others.
    HoldRequests,
    /// What a broker answers is held.
    HoldAnswers,
    /// All connections to a broker are closed.
    Sever,
    /// A broker does not reach ZooKeeper until its session has ended; clients and brokers still reach it.
    LoseZooKeeper,
    /// What a broker says to ZooKeeper is held, and goes on when its session has ended; it still hears.
    MuteToZooKeeper,
    /// What ZooKeeper says to a broker is held; ZooKeeper still hears it.
    DeafToZooKeeper,
    /// A broker reaches nobody and nobody reaches it, until its session has ended.
    CutOff,
    /// The controller's office is taken away.
    Depose,
    /// The leader of the ZooKeeper servers is killed and started again.
    KillZooKeeperLeader,
    /// Another ZooKeeper server is.
    KillZooKeeperFollower,
}

impl Fault {
    /// All kinds.
    pub(crate) const ALL: [Self; 19] = [
        Self::KillLeader,
        Self::KillController,
        Self::StopLeader,
        Self::StopController,
        Self::FreezeBriefly,
        Self::FreezeLeader,
        Self::FreezeController,
        Self::Part,
        Self::Deafen,
        Self::HoldRequests,
        Self::HoldAnswers,
        Self::Sever,
        Self::LoseZooKeeper,
        Self::MuteToZooKeeper,
        Self::DeafToZooKeeper,
        Self::CutOff,
        Self::Depose,
        Self::KillZooKeeperLeader,
        Self::KillZooKeeperFollower,
    ];

    /// How long it lasts this time.
    pub(crate) fn duration(self, random: &mut Rng) -> Duration {
        let session = u64::from(SESSION_TIMEOUT_MS);
        Duration::from_millis(match self {
            Self::Sever | Self::Depose => 0,
            Self::FreezeBriefly => random.u64(100..session / 2),
            _ if self.outlasts_session() => random.u64(session + 500..session + 2000),
            _ => random.u64(200..session + 1500),
        })
    }

    /// Whether it counts only if the broker's session ends by it.
    pub(crate) fn outlasts_session(self) -> bool {
        matches!(
            self,
            Self::FreezeLeader
                | Self::FreezeController
                | Self::LoseZooKeeper
                | Self::MuteToZooKeeper
                | Self::CutOff
        )
    }

    /// Whether it concerns the ZooKeeper servers, of which only one may be down.
    pub(crate) fn is_of_zookeeper(self) -> bool {
        matches!(self, Self::KillZooKeeperLeader | Self::KillZooKeeperFollower)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KillLeader => "leader killed",
            Self::KillController => "controller killed",
            Self::StopLeader => "leader stopped",
            Self::StopController => "controller stopped",
            Self::FreezeBriefly => "broker frozen within its session",
            Self::FreezeLeader => "leader frozen beyond its session",
            Self::FreezeController => "controller frozen beyond its session",
            Self::Part => "brokers parted both ways",
            Self::Deafen => "brokers parted one way",
            Self::HoldRequests => "requests to a broker held",
            Self::HoldAnswers => "answers of a broker held",
            Self::Sever => "connections closed",
            Self::LoseZooKeeper => "broker cut off from ZooKeeper",
            Self::MuteToZooKeeper => "broker not heard by ZooKeeper",
            Self::DeafToZooKeeper => "broker does not hear ZooKeeper",
            Self::CutOff => "broker cut off from all",
            Self::Depose => "controller deposed",
            Self::KillZooKeeperLeader => "leader of ZooKeeper killed",
            Self::KillZooKeeperFollower => "follower of ZooKeeper killed",
        })
    }
}

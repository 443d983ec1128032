//! A reader that shares the partitions of its topics with the other members of a group.
//!
//! Whoever uses it asks for one event after the other. Records count as read when the next event is asked for, or
//! up to where [`Consumer::stop_at`] says; what is read is committed before partitions are given up, and from time
//! to time if that is wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regex_lite::Regex;
use tokio::time::Instant;
use wire::types::{Offset, TopicPartition};

use super::member::{Beat, Member, MemberSettings};
use crate::cluster::fetcher::{FetchSettings, Fetched, Fetcher};
use crate::cluster::settings::ClientSettings;
use crate::cluster::{Cluster, ClusterError, Topics, error_name};

/// Which topics are read.
#[derive(Clone, Debug)]
pub(crate) enum Subscription {
    /// These.
    Names(BTreeSet<String>),
    /// All whose whole name fits; internal ones only if the second says so.
    Pattern(Regex, bool),
}

impl Subscription {
    /// The topics that exist and are meant; those that are named, whether they exist or not.
    ///
    /// # Errors
    /// If no broker answers.
    pub(crate) async fn topics(&self, cluster: &mut Cluster) -> Result<BTreeSet<String>, ClusterError> {
        let (regex, internal) = match self {
            Self::Names(names) => return Ok(names.clone()),
            Self::Pattern(regex, internal) => (regex, *internal),
        };
        let metadata = cluster.metadata(Topics::All).await?;
        let fitting = metadata.topics.iter().filter(|topic| internal || !topic.is_internal);
        let names = fitting.filter_map(|topic| topic.name.as_deref());
        Ok(names.filter(|name| regex.is_match(name)).map(str::to_owned).collect())
    }
}

/// How a consumer reads.
#[derive(Clone, Debug)]
pub(crate) struct ConsumerSettings {
    /// As a member.
    pub(crate) member: MemberSettings,
    /// Records.
    pub(crate) fetch: FetchSettings,
    /// `heartbeat.interval.ms`
    pub(crate) heartbeat: Duration,
    /// `auto.commit.interval.ms`; none if offsets are committed by the user only.
    pub(crate) auto_commit: Option<Duration>,
    /// `metadata.max.age.ms`: how often topics are looked at for new partitions.
    pub(crate) metadata_age: Duration,
}

/// What happens to a consumer.
#[derive(Debug)]
pub(crate) enum Event {
    /// It is to read these partitions, and no others.
    Assigned(Vec<TopicPartition>),
    /// It has given these up.
    Revoked(Vec<TopicPartition>),
    /// Records came, or none for a while.
    Records(Vec<Fetched>),
}

/// When something is due.
#[derive(Debug)]
struct Due {
    at: Instant,
    every: Duration,
}

impl Due {
    fn every(every: Duration) -> Self {
        Self { at: Instant::now() + every, every }
    }

    /// Whether it is time; then the next time is set.
    fn now(&mut self) -> bool {
        let due = Instant::now() >= self.at;
        if due {
            self.at = Instant::now() + self.every;
        }
        due
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Consumer {
    member: Member,
    settings: ConsumerSettings,
    subscription: Subscription,
    /// For fetches while there is no fetcher.
    cluster: Option<Cluster>,
    /// There is one while partitions are assigned.
    fetcher: Option<Fetcher>,
    assigned: Vec<TopicPartition>,
    joined: bool,
    topics: BTreeSet<String>,
    /// Where reading has come to, and what of it was committed.
    read: BTreeMap<TopicPartition, Offset>,
    committed: BTreeMap<TopicPartition, Offset>,
    /// Set by [`stop_at`](Self::stop_at): what was fetched beyond does not count.
    stopped: bool,
    heartbeat: Due,
    commit: Option<Due>,
    look: Due,
}

impl Consumer {
    /// A consumer that has not joined yet.
    ///
    /// # Errors
    /// If no broker answers.
    pub(crate) async fn open(
        servers: Vec<String>,
        client: ClientSettings,
        subscription: Subscription,
        settings: ConsumerSettings,
    ) -> Result<Self, ClusterError> {
        // Two, since the coordinator parks what a member asks.
        let of_member = Cluster::connect(servers.clone(), client.clone()).await?;
        let cluster = Cluster::connect(servers, client).await?;
        Ok(Self {
            member: Member::new(of_member, settings.member.clone()),
            subscription,
            cluster: Some(cluster),
            fetcher: None,
            assigned: Vec::new(),
            joined: false,
            topics: BTreeSet::new(),
            read: BTreeMap::new(),
            committed: BTreeMap::new(),
            stopped: false,
            heartbeat: Due::every(settings.heartbeat),
            commit: settings.auto_commit.map(Due::every),
            look: Due::every(settings.metadata_age),
            settings,
        })
    }

    /// The next event; records that came before count as read.
    ///
    /// # Errors
    /// If the group or a broker refuses for good.
    pub(crate) async fn next(&mut self) -> Result<Event, ClusterError> {
        self.note_read();
        if !self.joined {
            return self.join().await;
        }
        if self.commit.as_mut().is_some_and(Due::now) {
            self.commit().await?;
        }
        if self.heartbeat.now() {
            match self.member.beat().await? {
                Beat::Fine => {}
                Beat::Rejoin => return self.give_up(true).await,
                Beat::Lost => return self.give_up(false).await,
            }
        }
        if self.look.now() && self.must_rejoin().await? {
            return self.give_up(true).await;
        }
        match &mut self.fetcher {
            Some(fetcher) => Ok(Event::Records(fetcher.next().await?)),
            None => {
                // Nothing was assigned: there are more members than partitions.
                tokio::time::sleep(self.settings.fetch.max_wait.min(self.settings.heartbeat)).await;
                Ok(Event::Records(Vec::new()))
            }
        }
    }

    /// Says that of the records that came last, only those below these offsets were read.
    pub(crate) fn stop_at(&mut self, offsets: &BTreeMap<TopicPartition, Offset>) {
        self.read.extend(offsets.iter().map(|(at, offset)| (at.clone(), *offset)));
        self.stopped = true;
    }

    /// Commits what was read and is not committed yet. Tells what was committed, and the error code of each
    /// partition.
    ///
    /// # Errors
    /// If the coordinator is not found in time.
    pub(crate) async fn commit(&mut self) -> Result<BTreeMap<TopicPartition, (Offset, i16)>, ClusterError> {
        self.note_read();
        let news: BTreeMap<TopicPartition, Offset> = self
            .read
            .iter()
            .filter(|(at, offset)| self.committed.get(*at) != Some(*offset))
            .map(|(at, offset)| (at.clone(), *offset))
            .collect();
        let codes = self.member.commit(&news).await?;
        let mut told = BTreeMap::new();
        for (at, code) in codes {
            let Some(offset) = news.get(&at) else { continue };
            if code == 0 {
                self.committed.insert(at.clone(), *offset);
            }
            told.insert(at, (*offset, code));
        }
        Ok(told)
    }

    /// Gives all up and leaves the group; what was read is committed first if offsets are committed by themselves.
    /// Tells which partitions were given up.
    ///
    /// # Errors
    /// If the coordinator is not found in time.
    pub(crate) async fn close(mut self) -> Result<Vec<TopicPartition>, ClusterError> {
        self.note_read();
        if self.commit.is_some() {
            warn_refused(&self.commit().await?);
        }
        self.member.leave().await?;
        Ok(self.assigned)
    }

    fn note_read(&mut self) {
        if let Some(fetcher) = self.fetcher.as_ref().filter(|_| !self.stopped) {
            self.read.extend(fetcher.positions().iter().map(|(at, offset)| (at.clone(), *offset)));
        }
    }

    /// Whether topics came or went, or have other partitions than the leader has shared.
    async fn must_rejoin(&mut self) -> Result<bool, ClusterError> {
        if matches!(self.subscription, Subscription::Pattern(..)) {
            let topics = self.subscription.topics(self.member.coordinator().cluster()).await?;
            if topics != self.topics {
                return Ok(true);
            }
        }
        self.member.must_share_anew().await
    }

    async fn give_up(&mut self, commit: bool) -> Result<Event, ClusterError> {
        if commit && self.commit.is_some() {
            warn_refused(&self.commit().await?);
        }
        self.joined = false;
        if let Some(fetcher) = self.fetcher.take() {
            self.cluster = Some(fetcher.into_cluster());
        }
        self.read.clear();
        self.committed.clear();
        Ok(Event::Revoked(std::mem::take(&mut self.assigned)))
    }

    async fn join(&mut self) -> Result<Event, ClusterError> {
        self.topics = self.subscription.topics(self.member.coordinator().cluster()).await?;
        let assigned = self.member.join(&self.topics).await?;
        self.joined = true;
        self.heartbeat = Due::every(self.settings.heartbeat);
        if !assigned.is_empty() {
            let positions = self.positions(&assigned).await?;
            if let Some(cluster) = self.cluster.take() {
                self.fetcher = Some(Fetcher::new(cluster, self.settings.fetch.clone(), positions));
            }
        }
        self.assigned.clone_from(&assigned);
        Ok(Event::Assigned(assigned))
    }

    /// Where reading goes on: what the group has committed, else where `auto.offset.reset` says.
    async fn positions(
        &mut self,
        assigned: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, Offset>, ClusterError> {
        let coordinator = self.member.coordinator();
        let committed = coordinator.committed(Some(assigned)).await?;
        let mut positions: BTreeMap<TopicPartition, Offset> =
            committed.into_iter().map(|(at, committed)| (at, committed.offset)).collect();
        self.committed.clone_from(&positions);
        let missing: Vec<TopicPartition> =
            assigned.iter().filter(|at| !positions.contains_key(*at)).cloned().collect();
        let Some(first) = missing.first() else { return Ok(positions) };
        let fetch = &self.settings.fetch;
        let Some(place) = fetch.reset else {
            let code = wire::error_code::ErrorCode::OffsetOutOfRange.code();
            let text = "the group has committed no offset, and auto.offset.reset is none";
            return Err(ClusterError::refused(first.to_string(), code, Some(text)));
        };
        let cluster = self.member.coordinator().cluster();
        for (at, offset) in cluster.list_offsets(missing, place, fetch.isolation).await? {
            positions.insert(at, offset?.unwrap_or_default());
        }
        Ok(positions)
    }
}

/// Tells of offsets that were not committed; whoever reads these partitions next reads some records again.
fn warn_refused(told: &BTreeMap<TopicPartition, (Offset, i16)>) {
    for (at, (offset, code)) in told.iter().filter(|(_, (_, code))| *code != 0) {
        eprintln!("WARNING: offset {offset} of {at} was not committed: {}", error_name(*code));
    }
}

//! A receiver comes to the same end whether it is told everything or only what is not void.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use wire::types::{
    BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, Now, TopicId, TopicName, TopicPartition,
};

use super::*;
use crate::controller::values::{
    ControlSender, EPOCH_DURING_DELETE, LEADER_DURING_DELETE, LeaderAndIsr, LeaderAndIsrPartition,
    LeaderAndIsrRequest, LeaderRecoveryState, ReplicaAssignment, StopReplicaPartition, StopReplicaRequest,
    UpdateMetadataBody, UpdateMetadataPartition, UpdateMetadataRequest,
};

/// The broker that the requests go to.
const RECEIVER: BrokerId = BrokerId(1);

const SENDER: ControlSender = ControlSender {
    controller_id: BrokerId(9),
    controller_epoch: ControllerEpoch(7),
    broker_epoch: BrokerEpoch(40),
};

/// What a broker makes of control requests.
#[derive(Clone, Debug, Default, PartialEq)]
struct Receiver {
    live: BTreeSet<BrokerId>,
    metadata: BTreeMap<TopicName, BTreeMap<i32, UpdateMetadataPartition>>,
    ids: BTreeMap<TopicName, TopicId>,
    /// The partitions whose groups' offsets were dropped, because they were told to be gone.
    forgotten: BTreeSet<TopicPartition>,
    replicas: BTreeMap<TopicPartition, Replica>,
}

#[derive(Clone, Debug, PartialEq)]
struct Replica {
    /// What it was last told and acted on.
    state: Option<LeaderAndIsr>,
    is_running: bool,
    topic_id: Option<TopicId>,
    /// Whether its log was placed anywhere, or only where it would be found again.
    is_placed_anywhere: bool,
}

impl Receiver {
    fn receive(&mut self, request: &ControlRequest) {
        match request {
            ControlRequest::UpdateMetadata(update) => self.learn(&update.body),
            ControlRequest::LeaderAndIsr(request) => {
                for (tp, partition) in &request.partitions {
                    self.lead(tp, partition, request.topic_ids.get(&tp.topic).copied());
                }
            }
            ControlRequest::StopReplica(request) => {
                for (tp, stop) in &request.partitions {
                    self.stop(tp, *stop);
                }
            }
        }
    }

    fn learn(&mut self, body: &UpdateMetadataBody) {
        self.live = body.live_brokers.keys().copied().collect();
        for tp in body.partitions.keys() {
            match body.topic_ids.get(&tp.topic) {
                Some(id) => self.ids.insert(tp.topic.clone(), *id),
                None => self.ids.remove(&tp.topic),
            };
        }
        for (tp, partition) in &body.partitions {
            if partition.state.leader != LEADER_DURING_DELETE {
                self.metadata.entry(tp.topic.clone()).or_default().insert(tp.partition, partition.clone());
                continue;
            }
            self.forgotten.insert(tp.clone());
            if let Some(partitions) = self.metadata.get_mut(&tp.topic) {
                partitions.remove(&tp.partition);
                if partitions.is_empty() {
                    self.metadata.remove(&tp.topic);
                    self.ids.remove(&tp.topic);
                }
            }
        }
    }

    fn lead(&mut self, tp: &TopicPartition, partition: &LeaderAndIsrPartition, topic_id: Option<TopicId>) {
        let present = self.replicas.get(tp);
        let known_id = present.and_then(|replica| replica.topic_id);
        if known_id.is_some() && topic_id.is_some() && known_id != topic_id {
            return;
        }
        let epoch =
            present.and_then(|replica| replica.state.as_ref()).map_or(-1, |state| state.leader_epoch.0);
        let told = partition.state.leader_epoch.0;
        if told < epoch {
            return;
        }
        let leader = partition.state.leader;
        let fresh =
            Replica { state: None, is_running: false, topic_id, is_placed_anywhere: partition.is_new };
        let replica = self.replicas.entry(tp.clone()).or_insert(fresh);
        replica.topic_id = replica.topic_id.or(topic_id);
        if told > epoch && (leader == RECEIVER || self.live.contains(&leader)) {
            replica.state = Some(partition.state.clone());
            replica.is_running = true;
        }
    }

    fn stop(&mut self, tp: &TopicPartition, stop: StopReplicaPartition) {
        let Some(replica) = self.replicas.get_mut(tp) else { return };
        let epoch = replica.state.as_ref().map_or(-1, |state| state.leader_epoch.0);
        if stop.leader_epoch.0 >= 0 && stop.leader_epoch.0 < epoch {
            return;
        }
        replica.is_running = false;
        if stop.delete {
            self.replicas.remove(tp);
        }
    }
}

/// Something that makes a controller tell the receiver.
#[derive(Clone, Debug)]
enum Change {
    Create { topic: usize, leader: i32, has_id: bool },
    GiveId { topic: usize },
    Elect { topic: usize, partition: i32, leader: i32 },
    Resend { topic: usize, partition: i32 },
    Stop { topic: usize, partition: i32, is_in_sync: bool },
    MoveAway { topic: usize, partition: i32 },
    MoveBack { topic: usize, partition: i32 },
    Delete { topic: usize },
    Flip { broker: i32 },
    Announce,
}

fn change() -> impl Strategy<Value = Change> {
    let (topic, partition, leader) = (0..3usize, 0..2, 1..5);
    prop_oneof![
        2 => (topic.clone(), leader.clone(), prop::bool::weighted(0.8))
            .prop_map(|(topic, leader, has_id)| Change::Create { topic, leader, has_id }),
        1 => topic.clone().prop_map(|topic| Change::GiveId { topic }),
        6 => (topic.clone(), partition.clone(), leader)
            .prop_map(|(topic, partition, leader)| Change::Elect { topic, partition, leader }),
        1 => (topic.clone(), partition.clone()).prop_map(|(topic, partition)| Change::Resend { topic, partition }),
        2 => (topic.clone(), partition.clone(), any::<bool>())
            .prop_map(|(topic, partition, is_in_sync)| Change::Stop { topic, partition, is_in_sync }),
        1 => (topic.clone(), partition.clone()).prop_map(|(topic, partition)| Change::MoveAway { topic, partition }),
        2 => (topic.clone(), partition).prop_map(|(topic, partition)| Change::MoveBack { topic, partition }),
        2 => topic.prop_map(|topic| Change::Delete { topic }),
        3 => (2..5).prop_map(|broker| Change::Flip { broker }),
        1 => Just(Change::Announce),
    ]
}

/// A controller that knows three topics of two partitions and five brokers.
#[derive(Clone, Debug, Default)]
struct World {
    live: BTreeSet<BrokerId>,
    topics: BTreeMap<usize, Topic>,
    ids: u8,
}

#[derive(Clone, Debug)]
struct Topic {
    id: Option<TopicId>,
    partitions: BTreeMap<i32, (LeaderAndIsr, bool)>,
}

impl World {
    fn new() -> Self {
        Self { live: (1..5).map(BrokerId).collect(), ..Self::default() }
    }

    /// A live broker, or none.
    fn leader(&self, wanted: i32) -> BrokerId {
        Some(BrokerId(wanted)).filter(|id| self.live.contains(id)).unwrap_or(BrokerId::NONE)
    }

    fn tell(&mut self, change: &Change) -> Vec<ControlRequest> {
        match *change {
            Change::Create { topic, leader, has_id } => self.create(topic, leader, has_id),
            Change::GiveId { topic } => {
                self.ids += 1;
                match self.topics.get_mut(&topic) {
                    Some(known) if known.id.is_none() => known.id = Some(TopicId([self.ids; 16])),
                    _ => return vec![],
                }
                self.decided(topic, &[0, 1], false)
            }
            Change::Elect { topic, partition, leader } => {
                let leader = self.leader(leader);
                self.bump(topic, partition, Some(leader));
                self.decided(topic, &[partition], false)
            }
            Change::Resend { topic, partition } => self.decided(topic, &[partition], false),
            Change::Stop { topic, partition, is_in_sync } => {
                let told = self.stops(topic, &[partition], false);
                if is_in_sync {
                    self.bump(topic, partition, None);
                }
                told
            }
            Change::MoveAway { topic, partition } => {
                let mut told = self.stops(topic, &[partition], false);
                told.extend(self.stops(topic, &[partition], true));
                if let Some((_, hosted)) = self.partition(topic, partition) {
                    *hosted = false;
                }
                told
            }
            Change::MoveBack { topic, partition } => match self.partition(topic, partition) {
                Some((_, hosted)) if !*hosted => {
                    *hosted = true;
                    self.bump(topic, partition, None);
                    self.decided(topic, &[partition], true)
                }
                _ => vec![],
            },
            Change::Delete { topic } => self.delete(topic),
            Change::Flip { broker } => {
                if !self.live.remove(&BrokerId(broker)) {
                    self.live.insert(BrokerId(broker));
                }
                vec![self.update(BTreeMap::new(), BTreeMap::new())]
            }
            Change::Announce => vec![self.update(BTreeMap::new(), BTreeMap::new())],
        }
    }

    fn partition(&mut self, topic: usize, partition: i32) -> Option<&mut (LeaderAndIsr, bool)> {
        self.topics.get_mut(&topic)?.partitions.get_mut(&partition)
    }

    fn bump(&mut self, topic: usize, partition: i32, leader: Option<BrokerId>) {
        if let Some((state, _)) = self.partition(topic, partition) {
            state.leader = leader.unwrap_or(state.leader);
            state.leader_epoch.0 += 1;
            state.partition_epoch += 1;
        }
    }

    fn create(&mut self, topic: usize, leader: i32, has_id: bool) -> Vec<ControlRequest> {
        if self.topics.contains_key(&topic) {
            return vec![];
        }
        self.ids += 1;
        let state = LeaderAndIsr {
            leader: self.leader(leader),
            leader_epoch: LeaderEpoch(0),
            isr: vec![BrokerId(leader), RECEIVER],
            recovery_state: LeaderRecoveryState::Recovered,
            controller_epoch: SENDER.controller_epoch,
            partition_epoch: 0,
        };
        let id = has_id.then_some(TopicId([self.ids; 16]));
        // Both partitions, or only one has a leader.
        let known: &[i32] = [&[0, 1][..], &[0], &[1]][usize::from(self.ids % 3)];
        let partitions = known.iter().map(|p| (*p, (state.clone(), true))).collect();
        self.topics.insert(topic, Topic { id, partitions });
        self.decided(topic, &[0, 1], true)
    }

    /// LeaderAndIsr if the receiver is a replica, and UpdateMetadata.
    fn decided(&self, topic: usize, partitions: &[i32], is_new: bool) -> Vec<ControlRequest> {
        let Some(known) = self.topics.get(&topic) else { return vec![] };
        let named: Vec<_> = partitions
            .iter()
            .filter_map(|p| Some((tp(topic, *p), known.partitions.get(p)?.clone())))
            .collect();
        let ids: BTreeMap<TopicName, TopicId> = known.id.iter().map(|id| (name(topic), *id)).collect();
        let hosted = named.iter().filter(|(_, (_, hosted))| *hosted);
        let lead = ControlRequest::LeaderAndIsr(LeaderAndIsrRequest {
            sender: SENDER,
            partitions: hosted
                .map(|(tp, (state, _))| {
                    let assignment = ReplicaAssignment::of(vec![RECEIVER]);
                    (tp.clone(), LeaderAndIsrPartition { state: state.clone(), assignment, is_new })
                })
                .collect(),
            topic_ids: ids.clone(),
            live_leaders: vec![],
        });
        let told = named.into_iter().map(|(tp, (state, _))| (tp, state)).collect();
        let update = self.update(told, ids);
        let is_told = matches!(&lead, ControlRequest::LeaderAndIsr(lead) if !lead.partitions.is_empty());
        if is_told { vec![lead, update] } else { vec![update] }
    }

    fn update(
        &self,
        partitions: BTreeMap<TopicPartition, LeaderAndIsr>,
        topic_ids: BTreeMap<TopicName, TopicId>,
    ) -> ControlRequest {
        let told = |state| UpdateMetadataPartition { state, replicas: vec![], offline_replicas: vec![] };
        let body = UpdateMetadataBody {
            partitions: partitions.into_iter().map(|(tp, state)| (tp, told(state))).collect(),
            topic_ids,
            live_brokers: self.live.iter().map(|id| (*id, Arc::default())).collect(),
        };
        ControlRequest::UpdateMetadata(UpdateMetadataRequest { sender: SENDER, body: Arc::new(body) })
    }

    fn stops(&self, topic: usize, partitions: &[i32], delete: bool) -> Vec<ControlRequest> {
        let Some(known) = self.topics.get(&topic) else { return vec![] };
        let stops: BTreeMap<_, _> = partitions
            .iter()
            .filter_map(|p| Some((p, known.partitions.get(p)?)))
            .map(|(p, (state, _))| {
                (tp(topic, *p), StopReplicaPartition { leader_epoch: state.leader_epoch, delete })
            })
            .collect();
        if stops.is_empty() {
            return vec![];
        }
        vec![ControlRequest::StopReplica(StopReplicaRequest { sender: SENDER, partitions: stops })]
    }

    fn delete(&mut self, topic: usize) -> Vec<ControlRequest> {
        let Some(gone) = self.topics.remove(&topic) else { return vec![] };
        let ids = gone.id.iter().map(|id| (name(topic), *id)).collect();
        let told = gone.partitions.iter().map(|(p, (state, _))| {
            (tp(topic, *p), LeaderAndIsr { leader: LEADER_DURING_DELETE, ..state.clone() })
        });
        let mut requests = vec![self.update(told.collect(), ids)];
        for delete in [false, true] {
            let stop = StopReplicaPartition { leader_epoch: EPOCH_DURING_DELETE, delete };
            let partitions = gone.partitions.iter().filter(|(_, (_, hosted))| *hosted);
            let partitions: BTreeMap<_, _> = partitions.map(|(p, _)| (tp(topic, *p), stop)).collect();
            if !partitions.is_empty() {
                requests.push(ControlRequest::StopReplica(StopReplicaRequest { sender: SENDER, partitions }));
            }
        }
        requests
    }
}

fn name(topic: usize) -> TopicName {
    format!("t{topic}").as_str().into()
}

fn tp(topic: usize, partition: i32) -> TopicPartition {
    TopicPartition::new(name(topic), partition)
}

fn queue(requests: &[ControlRequest]) -> VecDeque<Waiting> {
    requests.iter().map(|request| Waiting { request: request.clone(), since: 0 }).collect()
}

/// How many steps and words the requests hold.
fn held(requests: &VecDeque<Waiting>) -> usize {
    let each = requests.iter().map(|waiting| match &waiting.request {
        ControlRequest::LeaderAndIsr(request) => request.partitions.len(),
        ControlRequest::UpdateMetadata(update) => update.body.partitions.len(),
        ControlRequest::StopReplica(request) => request.partitions.len(),
    });
    each.sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_receiver_ends_as_if_nothing_had_been_dropped(
        changes in prop::collection::vec(change(), 1..40),
        delivered in 0..20usize,
        release in prop::sample::select(vec![MetadataVersion::IBP_2_5_IV0, MetadataVersion::IBP_3_9_IV0]),
    ) {
        let mut world = World::new();
        let mut receiver = Receiver::default();
        receiver.receive(&world.update(BTreeMap::new(), BTreeMap::new()));
        for change in changes.iter().take(delivered) {
            for request in world.tell(change) {
                receiver.receive(&request);
            }
        }
        let announced = receiver.live.clone();
        let requests: Vec<_> = changes.iter().skip(delivered).flat_map(|change| world.tell(change)).collect();
        let mut expected = receiver.clone();
        for request in &requests {
            expected.receive(request);
        }
        let waiting: Vec<_> =
            requests.iter().flat_map(|request| requests::split(request.clone(), release)).collect();
        let coalesced = coalesce::coalesce(queue(&waiting), Some(&announced), RECEIVER, release);
        for Waiting { request, .. } in &coalesced {
            receiver.receive(request);
            prop_assert_eq!(requests::split(request.clone(), release).len(), 1);
        }
        prop_assert_eq!(&receiver, &expected, "{:#?}", coalesced);

        // Six partitions, each with a limited number of steps and two words; no request is held for nothing.
        prop_assert!(held(&coalesced) <= 6 * (replica_steps::MAX_STEPS + 2));
        prop_assert!(coalesced.len() <= 2 * 6 * (replica_steps::MAX_STEPS + 2) + 1);
    }

    #[test]
    fn a_channel_that_coalesces_at_any_time_leads_the_receiver_to_the_same_end(
        changes in prop::collection::vec((change(), 0..4usize), 1..60),
        limit in 1..6usize,
    ) {
        let mut channel = Channel::new(RECEIVER, MetadataVersion::IBP_3_9_IV0, Millis(30_000));
        (channel.limit, channel.coalesce_above) = (limit, limit);
        let (mut world, mut receiver, mut expected) = (World::new(), Receiver::default(), Receiver::default());
        let mut out = Vec::new();
        let hello = world.update(BTreeMap::new(), BTreeMap::new());
        expected.receive(&hello);
        channel.step(Now::default(), Event::Enqueue(hello), &mut out);
        for (change, answers) in &changes {
            for request in world.tell(change) {
                expected.receive(&request);
                channel.step(Now::default(), Event::Enqueue(request), &mut out);
                channel.check();
            }
            (0..*answers).for_each(|_| answer(&mut channel, &mut receiver));
        }
        while channel.under_way.is_some() {
            answer(&mut channel, &mut receiver);
        }
        prop_assert_eq!(receiver, expected);
    }
}

/// The receiver acts on what is under way, and answers.
fn answer(channel: &mut Channel, receiver: &mut Receiver) {
    let Some(UnderWay { request, attempt: Attempt::Sent { id, .. } }) = channel.under_way.clone() else {
        return;
    };
    receiver.receive(&request);
    let reply = match request {
        ControlRequest::LeaderAndIsr(_) => ControlReply::LeaderAndIsr(Default::default()),
        ControlRequest::UpdateMetadata(_) => ControlReply::UpdateMetadata(Default::default()),
        ControlRequest::StopReplica(_) => ControlReply::StopReplica(Default::default()),
    };
    channel.step(Now::default(), Event::Answered { id, reply }, &mut Vec::new());
    channel.check();
}

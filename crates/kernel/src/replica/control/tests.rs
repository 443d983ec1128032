use super::*;

const ME: BrokerId = BrokerId(1);
const ID: TopicId = TopicId([7; 16]);

fn local(leader_epoch: i32, topic_id: Option<TopicId>) -> Local {
    Local::Present { leader_epoch: LeaderEpoch(leader_epoch), partition_epoch: leader_epoch, topic_id }
}

fn ordered(leader: i32, leader_epoch: i32, topic_id: TopicId) -> Ordered<'static> {
    const REPLICAS: [BrokerId; 2] = [BrokerId(1), BrokerId(2)];
    Ordered {
        leader: BrokerId(leader),
        leader_epoch: LeaderEpoch(leader_epoch),
        partition_epoch: leader_epoch,
        replicas: &REPLICAS,
        topic_id,
    }
}

fn decide(local: Local, ordered: &Ordered<'_>) -> Order {
    leader_and_isr(ME, local, ordered, |id| id == BrokerId(2))
}

#[test]
fn a_request_for_an_earlier_life_of_the_broker_is_stale() {
    let mut fence = Fence::new(BrokerEpoch(100), ControllerEpoch(3), Faults::default());
    assert_eq!(fence.admit(BrokerEpoch(99), ControllerEpoch(9), 1), Err(Stale::BrokerEpoch));
    assert_eq!(fence.controller_epoch(), ControllerEpoch(3), "its controller is not believed either");
    assert_eq!(fence.admit(BrokerEpoch(100), ControllerEpoch(3), 1), Ok(()));
    assert_eq!(fence.admit(BrokerEpoch(-1), ControllerEpoch(3), 1), Ok(()), "the controller is an old one");
    assert_eq!(fence.admit(BrokerEpoch(101), ControllerEpoch(3), 1), Ok(()), "the controller saw it first");
    fence.registered(BrokerEpoch(120));
    assert_eq!(fence.admit(BrokerEpoch(101), ControllerEpoch(3), 1), Err(Stale::BrokerEpoch));
}

#[test]
fn what_comes_late_over_a_connection_that_the_controller_has_given_up_is_stale() {
    let mut fence = Fence::new(BrokerEpoch(1), ControllerEpoch(3), Faults::default());
    let mut admit = |controller_epoch, connection| {
        fence.admit(BrokerEpoch(1), ControllerEpoch(controller_epoch), connection)
    };
    assert_eq!(admit(3, 7), Ok(()));
    assert_eq!(admit(3, 7), Ok(()));
    assert_eq!(admit(3, 9), Ok(()));
    assert_eq!(admit(3, 7), Err(Stale::Connection));
    assert_eq!(admit(3, 9), Ok(()));
    assert_eq!(admit(4, 8), Ok(()), "the next controller has connected earlier");
    assert_eq!(admit(4, 7), Err(Stale::Connection));
    assert_eq!(admit(3, 9), Err(Stale::ControllerEpoch));
}

#[test]
fn a_controller_that_was_replaced_is_not_obeyed() {
    let mut fence = Fence::new(BrokerEpoch(1), ControllerEpoch(3), Faults::default());
    assert_eq!(fence.admit(BrokerEpoch(1), ControllerEpoch(4), 1), Ok(()));
    assert_eq!(fence.admit(BrokerEpoch(1), ControllerEpoch(3), 1), Err(Stale::ControllerEpoch));
    assert_eq!(fence.admit(BrokerEpoch(1), ControllerEpoch(4), 1), Ok(()));
}

#[test]
fn a_newer_leader_epoch_makes_a_leader_or_a_follower() {
    assert_eq!(decide(local(-1, None), &ordered(1, 0, ID)), Order::Lead);
    assert_eq!(decide(local(4, Some(ID)), &ordered(1, 5, ID)), Order::Lead);
    assert_eq!(decide(local(4, Some(ID)), &ordered(2, 5, ID)), Order::Follow);
    assert_eq!(decide(local(4, Some(ID)), &ordered(2, 5, TopicId::ZERO)), Order::Follow);
}

#[test]
fn an_older_leader_epoch_is_refused() {
    assert_eq!(decide(local(4, Some(ID)), &ordered(1, 3, ID)), Order::Refused(Refusal::StaleLeaderEpoch));
}

#[test]
fn an_equal_leader_epoch_is_refused_unless_it_is_about_the_topic_id() {
    // KAFKA-13132, KAFKA-13394
    let stale = Order::Refused(Refusal::StaleLeaderEpoch);
    assert_eq!(decide(local(4, Some(ID)), &ordered(1, 4, ID)), stale);
    assert_eq!(decide(local(4, Some(ID)), &ordered(2, 4, ID)), stale);
    assert_eq!(decide(local(4, None), &ordered(2, 4, TopicId::ZERO)), stale);
    assert_eq!(decide(local(4, None), &ordered(1, 4, ID)), Order::AssignTopicId);
    assert_eq!(decide(local(4, None), &ordered(2, 4, ID)), Order::AssignTopicId);
    assert_eq!(decide(local(4, Some(ID)), &ordered(2, 4, TopicId::ZERO)), Order::ForgetTopicId);
    assert_eq!(decide(local(4, Some(ID)), &ordered(1, 4, TopicId::ZERO)), stale, "a leader keeps it");
}

#[test]
fn a_log_of_another_topic_of_the_same_name_is_told_apart_before_epochs_are_compared() {
    let refused = Order::Refused(Refusal::InconsistentTopicId);
    for leader_epoch in [3, 4, 5] {
        assert_eq!(decide(local(4, Some(TopicId([8; 16]))), &ordered(1, leader_epoch, ID)), refused);
    }
}

#[test]
fn a_failed_log_directory_comes_before_everything() {
    let refused = Order::Refused(Refusal::Offline);
    assert_eq!(decide(Local::Offline, &ordered(1, 9, ID)), refused);
    assert_eq!(stop_replica(Local::Offline, EPOCH_DURING_DELETE), Err(Refusal::Offline));
}

#[test]
fn a_broker_that_is_no_replica_refuses() {
    let elsewhere = Ordered { replicas: &[BrokerId(2), BrokerId(3)], ..ordered(2, 5, ID) };
    assert_eq!(decide(local(4, Some(ID)), &elsewhere), Order::Refused(Refusal::NotAReplica));
}

#[test]
fn a_leader_that_is_not_alive_is_not_followed_but_the_log_is_kept() {
    for leader in [3, -1] {
        assert_eq!(decide(local(4, Some(ID)), &ordered(leader, 5, ID)), Order::KeepLog);
    }
}

#[test]
fn an_older_partition_epoch_is_overtaken_and_no_error() {
    let older = Ordered { partition_epoch: 3, ..ordered(1, 5, ID) };
    assert_eq!(decide(local(4, Some(ID)), &older), Order::Overtaken);
    let older = Ordered { partition_epoch: 3, ..ordered(2, 5, ID) };
    assert_eq!(decide(local(4, Some(ID)), &older), Order::Overtaken);
}

#[test]
fn a_stop_of_an_older_epoch_is_fenced_and_one_of_the_same_is_obeyed() {
    // KAFKA-9539, KAFKA-13972
    assert_eq!(stop_replica(local(4, None), LeaderEpoch(3)), Err(Refusal::StaleLeaderEpoch));
    assert_eq!(stop_replica(local(4, None), LeaderEpoch(4)), Ok(()));
    assert_eq!(stop_replica(local(4, None), LeaderEpoch(5)), Ok(()));
    assert_eq!(stop_replica(local(4, None), LeaderEpoch::UNKNOWN), Ok(()), "an old controller tells none");
    assert_eq!(stop_replica(local(4, None), EPOCH_DURING_DELETE), Ok(()), "the topic is being deleted");
}

#[cfg(feature = "planted-faults")]
#[test]
fn a_planted_fault_makes_brokers_obey_a_controller_that_was_replaced() {
    let faults = Faults::default().and(Fault::StaleControllersObeyed);
    let mut fence = Fence::new(BrokerEpoch(1), ControllerEpoch(3), faults);
    assert_eq!(fence.admit(BrokerEpoch(1), ControllerEpoch(2), 1), Ok(()));
}

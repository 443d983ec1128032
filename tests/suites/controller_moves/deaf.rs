//! A controller whose session lives and who does not hear that another was elected: what it still writes is refused,
//! because it is written for a term that is over (KAFKA-6082).

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::admin;
use interop::broker::Kind;
use interop::calls;
use interop::cluster::{Cluster, LIMIT, Plan};
use interop::raw::{Answer, Connection, frame};
use interop::tcp_proxy::Direction;
use interop::wait;
use kafka_protocol::messages::alter_partition_request::{PartitionData, TopicData};
use kafka_protocol::messages::{AlterPartitionRequest, AlterPartitionResponse, BrokerId};
use kafka_protocol::protocol::{Decodable, HeaderVersion};

use super::case::{A, B, C};

const TOPIC: &str = "kept";
/// The newest version that names topics.
const ALTER_PARTITION: i16 = 1;
/// Kafka's number of the state in which a controller changes in-sync replicas.
const ISR_CHANGE: f64 = 9.0;
const NOT_CONTROLLER: i16 = 41;
/// How soon the old controller must be at it: before it misses the pings that are held.
const SOON: Duration = Duration::from_secs(10);
/// The beginning of the error when the old controller has written.
pub(crate) const WRITTEN: &str = "the old controller has written";

/// The wish of the leader A to be in sync alone, as A would tell it.
fn alone(cluster: &Cluster) -> Result<AlterPartitionRequest> {
    let mut tree = cluster.tree()?;
    let state = tree.state(TOPIC, 0)?.context("no state")?;
    ensure!(state.leader == A && state.isr.len() == 2, "{state:?}");
    let broker_epoch = tree.client().created_in(&format!("/brokers/ids/{A}"))?.context("A is not there")?;
    let partition = PartitionData::default()
        .with_leader_epoch(state.leader_epoch)
        .with_partition_epoch(state.partition_epoch)
        .with_new_isr(vec![BrokerId(A)]);
    let topic =
        TopicData::default().with_topic_name(calls::topic_name(TOPIC)).with_partitions(vec![partition]);
    Ok(AlterPartitionRequest::default()
        .with_broker_id(BrokerId(A))
        .with_broker_epoch(broker_epoch)
        .with_topics(vec![topic]))
}

/// The story.
pub(crate) fn deaf(planted_faults: Option<&'static str>) -> Result<()> {
    let mut plan = Plan::of(Kind::Blumfeld, 3).with(&[("auto.leader.rebalance.enable", "false")]);
    plan.session_timeout_ms = 30_000;
    plan.options.planted_faults = planted_faults;
    let mut cluster = Cluster::prepare(&plan)?;
    cluster.start_brokers(&[C])?;
    cluster.start_brokers(&[A, B])?;
    let controller = cluster.broker(C)?.bootstrap();
    let code = admin::create_assigned(&controller, TOPIC, &[&[A, B]])?;
    ensure!(code == 0, "CreateTopics: error {code}");
    cluster.until_in_sync(TOPIC)?;
    let wish = alone(&cluster)?;
    let mut tree = cluster.tree()?;
    let (term, before) = (tree.controller_epoch()?, tree.state(TOPIC, 0)?);
    ensure!(tree.controller()? == Some(C), "C has lost its office");

    let to_zookeeper = cluster.zookeeper_proxies(C)?;
    to_zookeeper.iter().for_each(|proxy| proxy.hold(Direction::Answers));
    ensure!(tree.depose_controller()?, "there was no controller");
    wait::until("another controller", LIMIT, || Ok((tree.controller_epoch()? > term).then_some(())))?;
    ensure!(tree.controller()? != Some(C), "C is in office again");

    let mut connection = Connection::open(&controller)?;
    connection.send(&frame(ALTER_PARTITION, 1, &wish)?)?;
    let old = cluster.broker(C)?;
    wait::until("a change of in-sync replicas by the old controller", SOON, || {
        let state = old.metric("kafka_controller_kafkacontroller_controllerstate")?;
        Ok(((state - ISR_CHANGE).abs() < 0.5).then_some(()))
    })?;
    cluster.zookeeper_proxies(C)?.iter().for_each(interop::tcp_proxy::TcpProxy::heal);
    let answer = connection.receive()?;
    let after = tree.state(TOPIC, 0)?;
    ensure!(after == before, "{WRITTEN}: {before:?}, now {after:?}");
    let Answer::Frame(mut bytes) = answer else { anyhow::bail!("{answer:?} instead of an answer") };
    let _header =
        bytes.split_to(if AlterPartitionResponse::header_version(ALTER_PARTITION) == 0 { 4 } else { 5 });
    let response = AlterPartitionResponse::decode(&mut bytes, ALTER_PARTITION)?;
    ensure!(response.error_code == NOT_CONTROLLER, "{response:?}");
    cluster.until_all_known()
}

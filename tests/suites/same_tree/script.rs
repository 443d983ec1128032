//! The commands. Brokers 1, 2 and 3; 1 is controller all the time.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use interop::broker::Kind;
use interop::cluster::{Cluster, LIMIT, Plan};
use interop::depth::Depth;
use interop::java::{self, Jars};
use interop::wait;

use super::seen::{Names, Seen, output, tree};

const TOPICS: &str = "org.apache.kafka.tools.TopicCommand";
const CONFIGS: &str = "kafka.admin.ConfigCommand";
const ELECTION: &str = "org.apache.kafka.tools.LeaderElectionCommand";
/// How long a tree must stay as it is to be looked at.
const QUIET: Duration = Duration::from_millis(700);

struct Run {
    cluster: Cluster,
    names: Names,
    seen: Vec<Seen>,
    depth: Depth,
}

/// Runs the script and tells what was seen after each step.
pub(crate) fn run(kind: Kind) -> Result<Vec<Seen>> {
    let mut plan = Plan::of(kind, 3).with(&[
        ("auto.leader.rebalance.enable", "false"),
        ("controlled.shutdown.retry.backoff.ms", "200"),
        ("replica.lag.time.max.ms", "60000"),
    ]);
    plan.session_timeout_ms = 6_000;
    let mut cluster = Cluster::prepare(&plan)?;
    for id in 1..=3 {
        cluster.start_brokers(&[id])?;
    }
    let names = Names::of(&cluster);
    let mut run = Run { cluster, names, seen: Vec::new(), depth: Depth::from_environment()? };
    run.look("the start")?;
    create(&mut run).context("creation")?;
    configure(&mut run).context("configs")?;
    grow(&mut run).context("more partitions")?;
    lose_a_broker(&mut run).context("a broker that is killed")?;
    elect_uncleanly(&mut run).context("unclean election")?;
    delete(&mut run).context("deletion")?;
    Ok(run.seen)
}

fn create(run: &mut Run) -> Result<()> {
    run.topics("--create --topic a --replica-assignment 1:2:3,2:3:1,3:1:2 --config retention.ms=100000")?;
    run.topics("--create --topic b.c --replica-assignment 3:2")?;
    run.topics_too("--create --topic a --partitions 1")?;
    run.topics("--create --topic x --replica-assignment 7:8")?;
    run.topics_too("--create --topic x --partitions 1 --config no.such.config=1")?;
    run.settle(&["a", "b.c"])?;
    run.look("creation")?;
    run.topics_too("--list")?;
    run.topics("--describe")
}

fn configure(run: &mut Run) -> Result<()> {
    let entity = "--entity-type topics --entity-name a";
    run.configs(&format!("--alter {entity} --add-config max.message.bytes=5000,cleanup.policy=compact"))?;
    run.configs(&format!("--describe {entity}"))?;
    run.configs(&format!("--alter {entity} --delete-config retention.ms"))?;
    run.configs_too(&format!("--alter {entity} --add-config retention.ms=x"))?;
    run.configs_too("--describe --entity-type topics --entity-name none")?;
    run.look("configs")?;
    run.topics_too("--describe --topics-with-overrides")?;
    let (one, all) = ("--entity-type brokers --entity-name 1", "--entity-type brokers --entity-default");
    run.configs(&format!("--alter {all} --add-config log.retention.ms=200000,num.io.threads=9"))?;
    run.configs(&format!("--alter {one} --add-config num.io.threads=10"))?;
    run.configs(&format!("--describe {one}"))?;
    run.configs_too(&format!("--describe {all}"))?;
    run.configs_too(&format!("--describe {entity} --all"))?;
    run.configs_too(&format!("--alter {one} --add-config num.io.threads=100"))?;
    run.configs_too(&format!("--alter {all} --add-config broker.rack=r"))?;
    run.look("configs of brokers")?;
    run.configs(&format!("--alter {all} --delete-config log.retention.ms,num.io.threads"))?;
    run.configs_too(&format!("--alter {one} --delete-config num.io.threads"))?;
    run.look("configs of brokers that are deleted")
}

fn grow(run: &mut Run) -> Result<()> {
    run.topics("--alter --topic b.c --partitions 3 --replica-assignment 3:2,2:3,3:1")?;
    run.topics_too("--alter --topic b.c --partitions 2")?;
    run.settle(&["b.c"])?;
    run.look("more partitions")?;
    run.topics_too("--describe --topic b.c")
}

fn lose_a_broker(run: &mut Run) -> Result<()> {
    run.cluster.broker(3)?.kill()?;
    run.cluster.until_all_known()?;
    run.look("the death of 3")?;
    run.topics("--describe --under-replicated-partitions")?;
    run.topics_too("--describe --at-min-isr-partitions")?;
    run.election("--election-type preferred --topic a --partition 2")?;
    run.election_too("--election-type preferred --topic none --partition 0")?;
    run.cluster.start_brokers(&[3])?;
    run.settle(&["a", "b.c"])?;
    run.look("the return of 3")?;
    run.election("--election-type preferred --topic a --partition 2")?;
    run.election_too("--election-type preferred --topic a --partition 2")?;
    run.election("--election-type preferred --all-topic-partitions")?;
    run.settle(&["a", "b.c"])?;
    run.look("preferred leaders")
}

fn elect_uncleanly(run: &mut Run) -> Result<()> {
    for id in [2, 3] {
        run.cluster.broker(id)?.kill()?;
        run.cluster.until_all_known()?;
        run.look(&format!("the death of {id}"))?;
    }
    run.cluster.start_brokers(&[2])?;
    run.look("the return of 2")?;
    run.topics_too("--describe --unavailable-partitions")?;
    run.election_too("--election-type preferred --topic b.c --partition 0")?;
    run.election("--election-type unclean --topic b.c --partition 0")?;
    run.look("an unclean election")?;
    run.election_too("--election-type unclean --topic b.c --partition 0")?;
    run.cluster.start_brokers(&[3])?;
    run.settle(&["a", "b.c"])?;
    run.look("the return of all")
}

fn delete(run: &mut Run) -> Result<()> {
    run.topics("--delete --topic a")?;
    run.topics_too("--delete --topic none")?;
    let mut tree = run.cluster.tree()?;
    wait::until("the end of the topic", LIMIT, || {
        Ok(tree.client().data("/brokers/topics/a")?.is_none().then_some(()))
    })?;
    run.look("deletion")?;
    run.topics("--list")
}

impl Run {
    fn topics(&mut self, arguments: &str) -> Result<()> {
        self.tool("kafka-topics", TOPICS, arguments)
    }

    /// The same for what changes nothing; a tool takes its time, so only in the long form.
    fn topics_too(&mut self, arguments: &str) -> Result<()> {
        if self.depth == Depth::Long { self.topics(arguments) } else { Ok(()) }
    }

    fn configs(&mut self, arguments: &str) -> Result<()> {
        self.tool("kafka-configs", CONFIGS, arguments)
    }

    /// The same for what changes nothing, only in the long form.
    fn configs_too(&mut self, arguments: &str) -> Result<()> {
        if self.depth == Depth::Long { self.configs(arguments) } else { Ok(()) }
    }

    /// As [`Run::election`], for what changes nothing, only in the long form.
    fn election_too(&mut self, arguments: &str) -> Result<()> {
        if self.depth == Depth::Long { self.election(arguments) } else { Ok(()) }
    }

    fn election(&mut self, arguments: &str) -> Result<()> {
        self.tool("kafka-leader-election", ELECTION, arguments)
    }

    fn tool(&mut self, name: &str, class: &str, arguments: &str) -> Result<()> {
        let address = self.cluster.addresses().first().cloned().context("no broker")?;
        let mut words = vec!["--bootstrap-server", &address];
        words.extend(arguments.split(' '));
        let finished = java::tool_any_end(Jars::Kafka39, class, &words)?;
        let step = format!("{name} {arguments}");
        self.seen.push(output(&step, &finished, &self.cluster, &mut self.names)?);
        Ok(())
    }

    /// Waits until these topics are in sync and all brokers tell so.
    fn settle(&self, topics: &[&str]) -> Result<()> {
        for topic in topics {
            self.cluster.until_in_sync(topic)?;
            let partitions = self.cluster.tree()?.assignment(topic)?.len();
            self.cluster.until_agreed(topic, i32::try_from(partitions)?)?;
        }
        Ok(())
    }

    /// Notes the tree, when it does not change any more.
    fn look(&mut self, step: &str) -> Result<()> {
        let mut last = tree(step, &self.cluster, &mut self.names)?;
        for _ in 0..20 {
            wait::pause(QUIET);
            let now = tree(step, &self.cluster, &mut self.names)?;
            if now == last {
                self.seen.push(now);
                return Ok(());
            }
            last = now;
        }
        ensure!(false, "the tree does not come to rest after {step}");
        Ok(())
    }
}

//! Real clients behind one face: create a topic, produce with a codec, read one partition.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::cache;
use crate::java::{self, Jars};
use crate::process::run_well;

const LIMIT: Duration = Duration::from_secs(120);

/// The codecs that every client writes with.
pub const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

/// A client program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Java's console tools of 3.9 or 4.x.
    Java(Jars),
    /// kcat, on librdkafka.
    Kcat,
    /// A program in `clients/python`, by its module's name.
    Python(&'static str),
    /// franz-go.
    Franz,
    /// sarama.
    Sarama,
    /// kafkajs.
    Node,
}

/// A record as a client read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The offset.
    pub offset: i64,
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
}

/// Key and value of record `index` written with `codec`.
#[must_use]
pub fn record(codec: &str, index: usize) -> (String, String) {
    let key = format!("{codec}-{index}");
    let value = format!("{key} {}", "all work and no play ".repeat(20));
    (key, value)
}

impl Client {
    /// Creates a topic.
    ///
    /// # Errors
    /// When the client fails.
    pub fn create(self, bootstrap: &str, topic: &str, partitions: usize) -> Result<()> {
        let partitions = partitions.to_string();
        match self {
            Self::Java(jars) => {
                let arguments = [
                    "--bootstrap-server",
                    bootstrap,
                    "--create",
                    "--topic",
                    topic,
                    "--partitions",
                    &partitions,
                    "--replication-factor",
                    "1",
                ];
                java::tool(jars, "org.apache.kafka.tools.TopicCommand", &arguments, "").map(|_| ())
            }
            // Has no admin command: its first write lets the broker create the topic.
            Self::Kcat => Ok(()),
            Self::Python(_) | Self::Franz | Self::Sarama | Self::Node => {
                self.program(&["create", bootstrap, topic, &partitions]).map(|_| ())
            }
        }
    }

    /// Writes `count` records.
    ///
    /// # Errors
    /// When the client fails, or a record is not acknowledged.
    pub fn produce(self, bootstrap: &str, topic: &str, codec: &str, count: usize) -> Result<()> {
        let lines = |separator: char| -> String {
            (0..count).map(|i| record(codec, i)).map(|(k, v)| format!("{k}{separator}{v}\n")).collect()
        };
        match self {
            Self::Java(jars) => {
                let class = match jars {
                    Jars::Kafka39 => "kafka.tools.ConsoleProducer",
                    Jars::Tools4 => "org.apache.kafka.tools.ConsoleProducer",
                };
                let property = if jars == Jars::Kafka39 { "--property" } else { "--reader-property" };
                let arguments = [
                    "--bootstrap-server",
                    bootstrap,
                    "--topic",
                    topic,
                    "--compression-codec",
                    codec,
                    property,
                    "parse.key=true",
                    property,
                    "key.separator=|",
                ];
                java::tool(jars, class, &arguments, &lines('|')).map(|_| ())
            }
            Self::Kcat => {
                let mut command = Command::new("kcat");
                command.args([
                    "-P",
                    "-b",
                    bootstrap,
                    "-t",
                    topic,
                    "-z",
                    codec,
                    "-K",
                    "|",
                    "-X",
                    "linger.ms=20",
                ]);
                command.args(["-X", "partitioner=murmur2_random"]);
                run_well(&mut command, &lines('|'), LIMIT).map(|_| ())
            }
            Self::Python(_) | Self::Franz | Self::Sarama | Self::Node => {
                self.program(&["produce", bootstrap, topic, codec, &count.to_string()]).map(|_| ())
            }
        }
    }

    /// Reads one partition from its start up to `end` (exclusive).
    ///
    /// # Errors
    /// When the client fails, or prints what is no record.
    pub fn consume(self, bootstrap: &str, topic: &str, partition: usize, end: i64) -> Result<Vec<Read>> {
        if end == 0 {
            return Ok(Vec::new());
        }
        let (partition, count) = (partition.to_string(), end.to_string());
        let output = match self {
            Self::Java(jars) => {
                let property = if jars == Jars::Kafka39 { "--property" } else { "--formatter-property" };
                let arguments = [
                    "--bootstrap-server",
                    bootstrap,
                    "--topic",
                    topic,
                    "--partition",
                    &partition,
                    "--offset",
                    "earliest",
                    "--max-messages",
                    &count,
                    property,
                    "print.offset=true",
                    property,
                    "print.key=true",
                ];
                let class = "org.apache.kafka.tools.consumer.ConsoleConsumer";
                java::tool(jars, class, &arguments, "")?.stdout
            }
            Self::Kcat => {
                let mut command = Command::new("kcat");
                command.args([
                    "-C",
                    "-b",
                    bootstrap,
                    "-t",
                    topic,
                    "-p",
                    &partition,
                    "-o",
                    "beginning",
                    "-e",
                    "-q",
                ]);
                command.args(["-X", "check.crcs=true", "-f", "%o\t%k\t%s\n"]);
                run_well(&mut command, "", LIMIT)?.stdout
            }
            Self::Python(_) | Self::Franz | Self::Sarama => {
                self.program(&["consume", bootstrap, topic, &partition, &count])?
            }
            Self::Node => anyhow::bail!("kafkajs reads only in groups"),
        };
        output.lines().map(parse).collect()
    }

    /// A member of a group that reads `topic` until it is asked to end. It prints `read`, partition and offset of each
    /// record, split by tabs; Java's consumer writes `Partition:` and `Offset:` before the numbers. The members of our own
    /// programs commit by hand (sarama's does not), and print what was `committed`, or that it has `failed`. With the id of
    /// an `instance` it is a static member, whose session is long enough for it to be started again.
    ///
    /// # Errors
    /// When the client is not installed.
    pub fn member(
        self,
        bootstrap: &str,
        topic: &str,
        group: &str,
        instance: Option<&str>,
    ) -> Result<Command> {
        ensure!(instance.is_none() || self.knows_static_members(), "{self:?} has no static members");
        let session = format!("session.timeout.ms={}", if instance.is_some() { 30_000 } else { 6_000 });
        let instance_property = instance.map(|id| format!("group.instance.id={id}"));
        match self {
            Self::Java(jars) => {
                let property = if jars == Jars::Kafka39 { "--property" } else { "--formatter-property" };
                let mut arguments = vec!["--bootstrap-server", bootstrap, "--topic", topic, "--group", group];
                arguments.extend([
                    "--from-beginning",
                    property,
                    "print.partition=true",
                    property,
                    "print.offset=true",
                ]);
                let properties = [&session, "heartbeat.interval.ms=500", "auto.commit.interval.ms=200"];
                for consumer in properties.into_iter().chain(instance_property.as_deref()) {
                    arguments.extend(["--consumer-property", consumer]);
                }
                let options = ["-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"];
                java::command(jars, &options, "org.apache.kafka.tools.consumer.ConsoleConsumer", &arguments)
            }
            Self::Kcat => {
                let mut command = Command::new("kcat");
                command.args([
                    "-b",
                    bootstrap,
                    "-u",
                    "-f",
                    "read\t%p\t%o\n",
                    "-X",
                    "auto.offset.reset=earliest",
                ]);
                command.args(["-X", &session, "-X", "heartbeat.interval.ms=500"]);
                command.args(instance_property.iter().flat_map(|it| ["-X", it]));
                command.args(["-X", "auto.commit.interval.ms=200", "-G", group, topic]);
                Ok(command)
            }
            Self::Python(_) | Self::Franz | Self::Sarama | Self::Node => {
                let mut command = self.command()?;
                command.args(["group", bootstrap, topic, group]).args(instance);
                Ok(command)
            }
        }
    }

    /// Whether its members can be static (KIP-345).
    #[must_use]
    pub fn knows_static_members(self) -> bool {
        self != Self::Node
    }

    /// Whether its members tell what they have committed. The consoles of Kafka and kcat commit by themselves and say
    /// nothing, and Sarama's last commit of a session is made when nobody can say so any more.
    #[must_use]
    pub fn tells_commits(self) -> bool {
        !matches!(self, Self::Java(_) | Self::Kcat | Self::Sarama)
    }

    /// Runs the client's own program and returns what it printed.
    ///
    /// # Errors
    /// When the program fails, or the client has none.
    pub fn program(self, arguments: &[&str]) -> Result<String> {
        Ok(run_well(self.command()?.args(arguments), "", LIMIT)?.stdout)
    }

    fn command(self) -> Result<Command> {
        let (cache, clients) = (cache::folder()?, cache::workspace().join("tests/clients"));
        Ok(match self {
            Self::Python(module) => {
                let mut command = Command::new(cache.join("python/venv/bin/python"));
                command.arg("-B").arg(clients.join("python").join(format!("{module}.py")));
                command
            }
            Self::Franz => Command::new(cache.join("go/franz")),
            Self::Sarama => Command::new(cache.join("go/sarama")),
            Self::Node => {
                let mut command = Command::new("node");
                command.env("NODE_PATH", cache.join("node/node_modules"));
                command.env("KAFKAJS_NO_PARTITIONER_WARNING", "1").arg(clients.join("node/client.js"));
                command
            }
            Self::Java(_) | Self::Kcat => anyhow::bail!("{self:?} has no program of ours"),
        })
    }
}

/// A printed record. Java's consumer writes `Offset:` before the number.
fn parse(line: &str) -> Result<Read> {
    let mut fields = line.splitn(3, '\t');
    let mut field = || fields.next().with_context(|| format!("not a record: {line:?}"));
    let (offset, key, value) = (field()?, field()?, field()?);
    let offset = offset.strip_prefix("Offset:").unwrap_or(offset);
    let offset = offset.parse().with_context(|| format!("not an offset: {offset:?}"))?;
    Ok(Read { offset, key: key.to_owned(), value: value.to_owned() })
}

/// Wants `partitions` to hold every record of `codecs` once, those of a codec in the order written, at offsets
/// without a gap.
///
/// # Errors
/// When something is missing, doubled, out of order or changed; the message says what.
pub fn judge(partitions: &[Vec<Read>], codecs: &[&str], count: usize) -> Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for (partition, records) in partitions.iter().enumerate() {
        let mut last: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
        for (position, read) in records.iter().enumerate() {
            let expected = i64::try_from(position)?;
            ensure!(read.offset == expected, "partition {partition}: offset {} at {expected}", read.offset);
            let (codec, index) = read.key.rsplit_once('-').with_context(|| format!("key {:?}", read.key))?;
            let index: usize = index.parse()?;
            ensure!(
                read.value == record(codec, index).1,
                "partition {partition}: value of {} changed",
                read.key
            );
            ensure!(seen.insert(read.key.clone()), "{} is there twice", read.key);
            if let Some(before) = last.insert(codec, index) {
                ensure!(before < index, "partition {partition}: {} after {codec}-{before}", read.key);
            }
        }
    }
    for codec in codecs {
        for index in 0..count {
            ensure!(seen.contains(&record(codec, index).0), "{codec}-{index} is missing");
        }
    }
    ensure!(seen.len() == codecs.len() * count, "{} records instead of {}", seen.len(), codecs.len() * count);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(offset: i64, codec: &str, index: usize) -> Read {
        let (key, value) = record(codec, index);
        Read { offset, key, value }
    }

    #[test]
    fn lines_of_all_clients_are_understood() {
        let expected = Read { offset: 7, key: "a-1".to_owned(), value: "x\ty".to_owned() };
        assert_eq!(parse("7\ta-1\tx\ty").unwrap(), expected);
        assert_eq!(parse("Offset:7\ta-1\tx\ty").unwrap(), expected);
        assert!(parse("no record").is_err());
    }

    #[test]
    fn each_kind_of_damage_is_seen() {
        let good =
            vec![vec![read(0, "none", 0), read(1, "lz4", 0)], vec![read(0, "none", 1), read(1, "lz4", 1)]];
        let codecs = ["none", "lz4"];
        judge(&good, &codecs, 2).unwrap();
        let broken = |change: &dyn Fn(&mut Vec<Vec<Read>>)| {
            let mut partitions = good.clone();
            change(&mut partitions);
            judge(&partitions, &codecs, 2).unwrap_err().to_string()
        };
        assert!(broken(&|p| drop(p[0].pop())).contains("missing"));
        assert!(broken(&|p| p[1][1] = read(1, "none", 0)).contains("twice"));
        assert!(broken(&|p| p[1][1].offset = 5).contains("offset 5"));
        assert!(broken(&|p| p[1][1].value.push('!')).contains("changed"));
        assert!(broken(&|p| p[1].extend([read(2, "none", 9), read(3, "none", 8)])).contains("after"));
        assert!(broken(&|p| p[1].push(read(2, "none", 9))).contains("records instead"));
    }
}

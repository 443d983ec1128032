//! A broker of either kind, on a loopback port and in a folder of its own, alone or a member of a cluster.
//!
//! Both kinds read the same properties. A real Kafka that is alone gets a ZooKeeper beside it that outlives
//! restarts; a Blumfeld that is alone needs none.

use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kafka_protocol::messages::MetadataRequest;
use tempfile::TempDir;

use crate::cache;
use crate::folders;
use crate::java::{self, Jars};
use crate::ports;
use crate::process::Process;
use crate::raw::Connection;
use crate::wait;
use crate::zookeeper::Zookeeper;

const START_LIMIT: Duration = Duration::from_secs(90);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Which program serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The broker under test.
    Blumfeld,
    /// The real one.
    Kafka,
}

impl Kind {
    /// The kind named by `$BLUMFELD_TEST_TARGET`; Blumfeld without it. With `kafka` a suite judges itself.
    ///
    /// # Errors
    /// When the variable names neither kind.
    pub fn from_environment() -> Result<Self> {
        match std::env::var("BLUMFELD_TEST_TARGET").as_deref() {
            Err(_) | Ok("" | "blumfeld") => Ok(Self::Blumfeld),
            Ok("kafka") => Ok(Self::Kafka),
            Ok(other) => bail!("BLUMFELD_TEST_TARGET is neither blumfeld nor kafka: {other}"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blumfeld => "Blumfeld",
            Self::Kafka => "Kafka",
        })
    }
}

/// How a broker is started.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Properties beyond the common ones, or instead of them.
    pub properties: Vec<(String, String)>,
    /// Flags for the Java virtual machine of a real Kafka; small and quick to start without any.
    pub java_options: Vec<String>,
    /// Limit of the address space of a Blumfeld process, in bytes.
    pub address_space: Option<u64>,
    /// The names of faults to plant in a Blumfeld; a build that can do that is used then.
    pub planted_faults: Option<&'static str>,
}

impl Options {
    /// Options with some properties.
    #[must_use]
    pub fn with(properties: &[(&str, &str)]) -> Self {
        let properties = properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Self { properties, ..Self::default() }
    }
}

/// What makes a broker a member of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its `broker.id`.
    pub id: i32,
    /// `zookeeper.connect`.
    pub connect: String,
    /// The port that it tells others, if it is not its own.
    pub advertised_port: Option<u16>,
}

/// A broker with its folder; the process may be stopped and started again.
#[derive(Debug)]
pub struct Broker {
    // Declared first: the processes end before the folder goes.
    process: Option<Process>,
    frozen: bool,
    zookeeper: Option<Arc<Zookeeper>>,
    /// None for a broker that is alone.
    member: Option<Member>,
    kind: Kind,
    port: u16,
    options: Options,
    folder: Arc<TempDir>,
    data: PathBuf,
}

impl Broker {
    /// Starts a fresh broker and waits until it says that it has started.
    ///
    /// # Errors
    /// When it does not start; the message holds the end of its log.
    pub fn start(kind: Kind, options: Options) -> Result<Self> {
        let mut broker = Self::prepare(kind, options)?;
        broker.resume()?;
        Ok(broker)
    }

    /// A fresh broker that is not started yet: its data folder may be filled first.
    ///
    /// # Errors
    /// When the folder, or a real Kafka's ZooKeeper, cannot be had.
    pub fn prepare(kind: Kind, options: Options) -> Result<Self> {
        let folder = Arc::new(folders::temporary("blumfeld-test-")?);
        let zookeeper = match kind {
            Kind::Kafka => Some(Arc::new(Zookeeper::start(&folder.path().join("zk"))?)),
            Kind::Blumfeld => None,
        };
        let data = folder.path().join("data");
        let port = ports::free()?;
        Ok(Self { process: None, frozen: false, zookeeper, member: None, kind, port, options, folder, data })
    }

    /// A member of a cluster on this port, not started yet.
    ///
    /// # Errors
    /// When the folder cannot be had.
    pub fn prepare_member(kind: Kind, options: Options, port: u16, member: Member) -> Result<Self> {
        let folder = Arc::new(folders::temporary("blumfeld-test-")?);
        let data = folder.path().join("data");
        Ok(Self {
            process: None,
            frozen: false,
            zookeeper: None,
            member: Some(member),
            kind,
            port,
            options,
            folder,
            data,
        })
    }

    /// Starts the process again on the same folder and port.
    ///
    /// # Errors
    /// When it does not start, or runs already.
    pub fn resume(&mut self) -> Result<()> {
        let from = std::fs::metadata(self.log_path()).map_or(0, |metadata| metadata.len());
        let mut process = self.spawn()?;
        process.wait_for_log(&format!("[KafkaServer id={}] started", self.id()), from, START_LIMIT)?;
        self.process = Some(process);
        if self.member.is_some() {
            return Ok(());
        }
        // The controller may learn of the broker a moment after the broker has started.
        wait::until("a controller that knows the broker", START_LIMIT, || {
            let request = MetadataRequest::default().with_topics(Some(Vec::new()));
            let metadata = Connection::open(&self.bootstrap())?.call(1, &request)?;
            Ok((metadata.controller_id.0 == 0 && !metadata.brokers.is_empty()).then_some(()))
        })
    }

    /// Starts the process and returns at once; [`Broker::adopt`] gives it back.
    ///
    /// # Errors
    /// When it cannot be started, or runs already.
    pub fn spawn(&self) -> Result<Process> {
        ensure!(self.process.is_none(), "{} runs already", self.kind);
        let mut command = self.command()?;
        Process::spawn(&self.kind.to_string(), &mut command, &self.log_path())
    }

    /// Takes over a process that [`Broker::spawn`] started.
    pub fn adopt(&mut self, process: Process) {
        self.process = Some(process);
    }

    /// Stops the process with SIGTERM; a broker that ends with another code than 0 (143 for Java) is an error.
    ///
    /// # Errors
    /// When it does not stop in time, or ends badly.
    pub fn stop(&mut self) -> Result<()> {
        let process = self.process.take().with_context(|| format!("{} does not run", self.kind))?;
        self.judge_end(process.terminate(STOP_LIMIT)?)
    }

    /// Whether the process has ended in order after it was asked to; then it may be started again.
    ///
    /// # Errors
    /// When it has ended otherwise.
    pub fn has_stopped(&mut self) -> Result<bool> {
        let Some(status) = self.process()?.status()? else { return Ok(false) };
        self.process = None;
        self.judge_end(status).map(|()| true)
    }

    fn judge_end(&self, status: ExitStatus) -> Result<()> {
        let expected = if self.kind == Kind::Kafka { 143 } else { 0 };
        ensure!(status.code() == Some(expected), "{} ended with {status} after SIGTERM", self.kind);
        Ok(())
    }

    /// Kills the process with SIGKILL.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&mut self) -> Result<()> {
        self.frozen = false;
        self.process.take().with_context(|| format!("{} does not run", self.kind))?.kill()
    }

    /// Stops the process where it is (SIGSTOP), until [`Broker::thaw`].
    ///
    /// # Errors
    /// When it does not run.
    pub fn freeze(&mut self) -> Result<()> {
        self.process()?.freeze()?;
        self.frozen = true;
        Ok(())
    }

    /// Lets a frozen process go on.
    ///
    /// # Errors
    /// When it does not run.
    pub fn thaw(&mut self) -> Result<()> {
        self.process()?.thaw()?;
        self.frozen = false;
        Ok(())
    }

    /// The running process.
    ///
    /// # Errors
    /// When it is stopped.
    pub fn process(&mut self) -> Result<&mut Process> {
        let kind = self.kind;
        self.process.as_mut().with_context(|| format!("{kind} does not run"))
    }

    /// Which program this is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its `broker.id`.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.member.as_ref().map_or(0, |member| member.id)
    }

    /// Whether there is a process, and it is not frozen.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.process.is_some() && !self.frozen
    }

    /// `host:port` for clients.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The folder of `log.dirs`.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The ZooKeeper of a real Kafka.
    ///
    /// # Errors
    /// When this is a Blumfeld.
    pub fn zookeeper(&self) -> Result<&Zookeeper> {
        self.zookeeper.as_deref().with_context(|| format!("{} has no ZooKeeper", self.kind))
    }

    /// Everything that the process printed, over all its starts.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(self.log_path())?).into_owned())
    }

    /// The properties file, as written by the last start.
    #[must_use]
    pub fn properties_path(&self) -> PathBuf {
        self.folder.path().join("server.properties")
    }

    /// The value of a metric of a Blumfeld, of the first series with this name.
    ///
    /// # Errors
    /// When it does not answer, or has no such metric.
    pub fn metric(&self, name: &str) -> Result<f64> {
        let properties = std::fs::read_to_string(self.properties_path())?;
        let address = properties.lines().find_map(|line| line.strip_prefix("blumfeld.http.address="));
        let mut page = TcpStream::connect(address.context("no address for metrics")?)?;
        page.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        page.read_to_string(&mut text)?;
        let is_it = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        let line = text.lines().find(is_it).with_context(|| format!("no metric {name}"))?;
        Ok(line.rsplit(' ').next().unwrap_or_default().parse()?)
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("broker.log")
    }

    fn properties(&self) -> Result<String> {
        let mut lines: Vec<(String, String)> = [
            ("broker.id", self.id().to_string()),
            ("listeners", format!("PLAINTEXT://127.0.0.1:{}", self.port)),
            ("log.dirs", self.data.to_string_lossy().into_owned()),
            ("num.partitions", "3".to_owned()),
            ("offsets.topic.replication.factor", "1".to_owned()),
            ("transaction.state.log.replication.factor", "1".to_owned()),
            ("transaction.state.log.min.isr", "1".to_owned()),
            ("group.initial.rebalance.delay.ms", "0".to_owned()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .to_vec();
        lines.extend(self.place()?.into_iter().map(|(key, value)| (key.to_owned(), value)));
        for (key, value) in &self.options.properties {
            lines.retain(|(known, _)| known != key);
            lines.push((key.clone(), value.clone()));
        }
        Ok(lines.iter().map(|(key, value)| format!("{key}={value}\n")).collect())
    }

    /// Properties that tell where its cluster is and how it is reached.
    fn place(&self) -> Result<Vec<(&'static str, String)>> {
        let mut lines = Vec::new();
        if let Some(Member { connect, advertised_port, .. }) = &self.member {
            lines.push(("zookeeper.connect", connect.clone()));
            if let Some(port) = advertised_port {
                lines.push(("advertised.listeners", format!("PLAINTEXT://127.0.0.1:{port}")));
            }
        } else if let Some(zookeeper) = &self.zookeeper {
            lines.push(("zookeeper.connect", zookeeper.address()));
        }
        if self.kind == Kind::Blumfeld {
            lines.push(("blumfeld.http.address", format!("127.0.0.1:{}", ports::free()?)));
            lines.extend(
                self.options.planted_faults.map(|names| ("blumfeld.planted.faults", names.to_owned())),
            );
        }
        Ok(lines)
    }

    fn command(&self) -> Result<Command> {
        std::fs::create_dir_all(&self.data)?;
        let properties = self.properties_path();
        std::fs::write(&properties, self.properties()?)?;
        match self.kind {
            Kind::Blumfeld => {
                let binary = match self.options.planted_faults {
                    None => cache::blumfeld_binary()?,
                    Some(_) => cache::planted_binary()?,
                };
                let mut command = match self.options.address_space {
                    None => Command::new(&binary),
                    Some(bytes) => {
                        let mut command = Command::new("prlimit");
                        command.arg(format!("--as={bytes}")).arg(&binary);
                        command
                    }
                };
                command.arg("server").arg(&properties).current_dir(self.folder.path());
                Ok(command)
            }
            Kind::Kafka => self.kafka_command(&properties),
        }
    }

    fn kafka_command(&self, properties: &Path) -> Result<Command> {
        let log4j = self.folder.path().join("log4j.properties");
        std::fs::write(
            &log4j,
            "log4j.rootLogger=INFO, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n\
             log4j.appender.out.layout=org.apache.log4j.PatternLayout\n\
             log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n\n\
             log4j.logger.org.apache.zookeeper=WARN\nlog4j.logger.kafka.server.KafkaConfig=WARN\n",
        )?;
        let small = ["-Xmx1G", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"].map(str::to_owned).to_vec();
        let mut options =
            if self.options.java_options.is_empty() { small } else { self.options.java_options.clone() };
        options.push(format!("-Dlog4j.configuration=file:{}", log4j.display()));
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let properties = properties.to_string_lossy();
        let mut command = java::command(Jars::Kafka39, &options, "kafka.Kafka", &[&properties])?;
        command.current_dir(self.folder.path());
        Ok(command)
    }
}

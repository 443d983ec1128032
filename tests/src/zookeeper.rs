//! A ZooKeeper server from the real Kafka's jars, alone or of an ensemble, and a small client for its tree.
//!
//! The client speaks the public protocol: length-prefixed frames, a connect handshake, then requests with an
//! xid and an operation code. It knows what moving a tree needs: create, get, children.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::java::{self, Jars};
use crate::ports;
use crate::process::Process;
use crate::wait;

const START_LIMIT: Duration = Duration::from_secs(60);
const PROBE_LIMIT: Duration = Duration::from_millis(500);
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// A server; its process may be killed and started again.
#[derive(Debug)]
pub struct Zookeeper {
    /// None while it is down.
    process: Option<Process>,
    folder: PathBuf,
    port: u16,
}

impl Zookeeper {
    /// Starts a server with its data below `folder`.
    ///
    /// # Errors
    /// When it does not answer within a minute.
    pub fn start(folder: &Path) -> Result<Self> {
        Self::start_with(folder, &[])
    }

    /// Starts a server with these settings on top. Session timeouts are between 2 and 20 times `tickTime`.
    ///
    /// # Errors
    /// When it does not answer within a minute.
    pub fn start_with(folder: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let port = ports::free()?;
        let mut config = format!(
            "tickTime=2000\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
             maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\n",
            folder.join("zookeeper").display()
        );
        for (key, value) in settings {
            config.push_str(&format!("{key}={value}\n"));
        }
        std::fs::write(folder.join(CONFIG), config)?;
        let mut server = Self { process: None, folder: folder.to_path_buf(), port };
        server.start_again()?;
        server.until_ok()?;
        Ok(server)
    }

    /// Kills the process and starts it again on the same data and port; `while_down` runs in between.
    ///
    /// # Errors
    /// When it does not end or not start again.
    pub fn restart(&mut self, while_down: impl FnOnce()) -> Result<()> {
        self.kill()?;
        while_down();
        self.start_again()?;
        self.until_ok()
    }

    /// Kills the process (SIGKILL).
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&mut self) -> Result<()> {
        self.process.take().context("ZooKeeper does not run")?.kill()
    }

    /// Starts a process on the same data and port, and does not wait until it serves.
    ///
    /// # Errors
    /// When it cannot be started, or runs.
    pub fn start_again(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "ZooKeeper runs already");
        let options = ["-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
        let class = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
        let config = self.folder.join(CONFIG);
        let mut command = java::command(Jars::Kafka39, &options, class, &[&config.to_string_lossy()])?;
        self.process = Some(Process::spawn("ZooKeeper", &mut command, &self.folder.join("zookeeper.log"))?);
        Ok(())
    }

    /// Waits until the server says that it is well.
    fn until_ok(&mut self) -> Result<()> {
        let port = self.port;
        let process = self.process.as_mut().context("ZooKeeper does not run")?;
        wait::until("ZooKeeper's imok", START_LIMIT, || {
            ensure!(process.is_running()?, "ZooKeeper ended:\n{}", process.log_tail(30));
            Ok((ask(port, "ruok").ok().as_deref() == Some("imok")).then_some(()))
        })
    }

    /// `host:port` of the server.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What it is in its ensemble: `leader` or `follower`, `standalone` without one; none while it does not serve.
    #[must_use]
    pub fn mode(&self) -> Option<String> {
        let answer = ask(self.port, "srvr").ok()?;
        answer.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
    }
}

const CONFIG: &str = "zookeeper.properties";

/// The answer to a word of four letters.
fn ask(port: u16, word: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    // A server that has just begun to listen may take a question and never answer it.
    stream.set_read_timeout(Some(PROBE_LIMIT))?;
    stream.write_all(word.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A node of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Znode {
    /// Its path.
    pub path: String,
    /// Its data; `None` is null.
    pub data: Option<Vec<u8>>,
}

/// A session with a server.
#[derive(Debug)]
pub struct ZookeeperClient {
    stream: TcpStream,
    next_xid: i32,
}

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const EXISTS: i32 = 3;
const GET_DATA: i32 = 4;
const SET_DATA: i32 = 5;
const GET_CHILDREN: i32 = 8;
const NO_NODE: i32 = -101;
/// Bytes of a node's figures before the version of its data: two transactions and two times.
const BEFORE_VERSION: usize = 32;

impl ZookeeperClient {
    /// Opens a session. A server that has just started answers questions of its health before it takes
    /// sessions, so this tries for a while.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub fn connect(address: &str) -> Result<Self> {
        Self::connect_to_one_of(&[address.to_owned()])
    }

    /// Opens a session with the first of an ensemble's servers that takes it.
    ///
    /// # Errors
    /// When none of them does.
    pub fn connect_to_one_of(addresses: &[String]) -> Result<Self> {
        wait::until("a session with ZooKeeper", ANSWER_LIMIT, || {
            Ok(addresses.iter().find_map(|address| Self::try_connect(address).ok()))
        })
    }

    fn try_connect(address: &str) -> Result<Self> {
        let stream =
            TcpStream::connect(address).with_context(|| format!("cannot reach ZooKeeper {address}"))?;
        // One that has just begun to listen may never answer.
        stream.set_read_timeout(Some(HANDSHAKE_LIMIT))?;
        let mut client = Self { stream, next_xid: 1 };
        let mut hello = Vec::new();
        put_int(&mut hello, 0);
        hello.extend_from_slice(&0_i64.to_be_bytes());
        put_int(&mut hello, 30_000);
        hello.extend_from_slice(&0_i64.to_be_bytes());
        put_bytes(&mut hello, &[0; 16])?;
        client.write_frame(&hello)?;
        let answer = client.read_frame()?;
        ensure!(answer.len() >= 16, "a short answer to the handshake");
        client.stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        Ok(client)
    }

    /// Creates a persistent node that everybody may change; `None` is null data.
    ///
    /// # Errors
    /// When the server refuses, for instance because the node exists.
    pub fn create(&mut self, path: &str, data: Option<&[u8]>) -> Result<()> {
        let mut body = Vec::new();
        put_bytes(&mut body, path.as_bytes())?;
        match data {
            Some(data) => put_bytes(&mut body, data)?,
            None => put_int(&mut body, -1),
        }
        put_int(&mut body, 1);
        put_int(&mut body, 31);
        put_bytes(&mut body, b"world")?;
        put_bytes(&mut body, b"anyone")?;
        put_int(&mut body, 0);
        match self.call(CREATE, &body)? {
            (0, _) => Ok(()),
            (error, _) => bail!("cannot create {path}: error {error}"),
        }
    }

    /// Deletes a node, whatever its version. Returns whether it was there.
    ///
    /// # Errors
    /// When the server refuses, for instance because the node has children.
    pub fn delete(&mut self, path: &str) -> Result<bool> {
        let mut body = Vec::new();
        put_bytes(&mut body, path.as_bytes())?;
        put_int(&mut body, -1);
        match self.call(DELETE, &body)? {
            (0, _) => Ok(true),
            (NO_NODE, _) => Ok(false),
            (error, _) => bail!("cannot delete {path}: error {error}"),
        }
    }

    /// Replaces the data of a node, whatever its version. Returns the new version.
    ///
    /// # Errors
    /// When the server refuses, for instance because there is no such node.
    pub fn set(&mut self, path: &str, data: &[u8]) -> Result<i32> {
        let mut body = Vec::new();
        put_bytes(&mut body, path.as_bytes())?;
        put_bytes(&mut body, data)?;
        put_int(&mut body, -1);
        let (error, answer) = self.call(SET_DATA, &body)?;
        ensure!(error == 0, "cannot set {path}: error {error}");
        let mut reader = Reader(&answer);
        reader.take(BEFORE_VERSION)?;
        reader.int()
    }

    /// The transaction that created a node, or `None` when there is no such node.
    ///
    /// # Errors
    /// When the server answers with another error.
    pub fn created_in(&mut self, path: &str) -> Result<Option<i64>> {
        let (error, answer) = self.read_call(EXISTS, path)?;
        match error {
            0 => {
                let (zxid, _) = answer.split_first_chunk().context("a short answer")?;
                Ok(Some(i64::from_be_bytes(*zxid)))
            }
            NO_NODE => Ok(None),
            _ => bail!("cannot look at {path}: error {error}"),
        }
    }

    /// The data of a node (`Some(None)` is null data), or `None` when there is no such node.
    ///
    /// # Errors
    /// When the server answers with another error.
    pub fn data(&mut self, path: &str) -> Result<Option<Option<Vec<u8>>>> {
        Ok(self.versioned_data(path)?.map(|(data, _)| data))
    }

    /// The same with the version of the data.
    ///
    /// # Errors
    /// As [`ZookeeperClient::data`].
    pub fn versioned_data(&mut self, path: &str) -> Result<Option<(Option<Vec<u8>>, i32)>> {
        let (error, answer) = self.read_call(GET_DATA, path)?;
        match error {
            0 => {
                let mut reader = Reader(&answer);
                let data = reader.nullable_bytes()?;
                reader.take(BEFORE_VERSION)?;
                Ok(Some((data, reader.int()?)))
            }
            NO_NODE => Ok(None),
            _ => bail!("cannot read {path}: error {error}"),
        }
    }

    /// The names of a node's children, sorted.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn children(&mut self, path: &str) -> Result<Vec<String>> {
        let (error, answer) = self.read_call(GET_CHILDREN, path)?;
        ensure!(error == 0, "cannot list {path}: error {error}");
        let mut reader = Reader(&answer);
        let count = reader.int()?;
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(String::from_utf8(reader.bytes()?)?);
        }
        names.sort();
        Ok(names)
    }

    /// All nodes below `root` with their data, parents first.
    ///
    /// # Errors
    /// When the tree cannot be read.
    pub fn tree(&mut self, root: &str) -> Result<Vec<Znode>> {
        let mut nodes = Vec::new();
        let mut open = vec![root.to_owned()];
        while let Some(path) = open.pop() {
            let Some(data) = self.data(&path)? else { continue };
            for child in self.children(&path)?.into_iter().rev() {
                open.push(if path == "/" { format!("/{child}") } else { format!("{path}/{child}") });
            }
            nodes.push(Znode { path, data });
        }
        Ok(nodes)
    }

    fn read_call(&mut self, operation: i32, path: &str) -> Result<(i32, Vec<u8>)> {
        let mut body = Vec::new();
        put_bytes(&mut body, path.as_bytes())?;
        body.push(0);
        self.call(operation, &body)
    }

    /// Error code and body of the answer.
    fn call(&mut self, operation: i32, body: &[u8]) -> Result<(i32, Vec<u8>)> {
        let xid = self.next_xid;
        self.next_xid += 1;
        let mut request = Vec::new();
        put_int(&mut request, xid);
        put_int(&mut request, operation);
        request.extend_from_slice(body);
        self.write_frame(&request)?;
        let answer = self.read_frame()?;
        let mut reader = Reader(&answer);
        let got = reader.int()?;
        ensure!(got == xid, "answer {got} to request {xid}");
        reader.take(8)?;
        Ok((reader.int()?, reader.0.to_vec()))
    }

    fn write_frame(&mut self, body: &[u8]) -> Result<()> {
        let mut frame = Vec::new();
        put_bytes(&mut frame, body)?;
        Ok(self.stream.write_all(&frame)?)
    }

    fn read_frame(&mut self) -> Result<Vec<u8>> {
        let mut size = [0; 4];
        self.stream.read_exact(&mut size)?;
        let mut body = vec![0; usize::try_from(i32::from_be_bytes(size))?];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }
}

fn put_int(to: &mut Vec<u8>, value: i32) {
    to.extend_from_slice(&value.to_be_bytes());
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    put_int(to, i32::try_from(bytes.len())?);
    to.extend_from_slice(bytes);
    Ok(())
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count).context("a short answer")?;
        self.0 = tail;
        Ok(head)
    }

    fn int(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.take(4)?.try_into()?))
    }

    fn nullable_bytes(&mut self) -> Result<Option<Vec<u8>>> {
        let length = self.int()?;
        if length < 0 {
            return Ok(None);
        }
        Ok(Some(self.take(usize::try_from(length)?)?.to_vec()))
    }

    fn bytes(&mut self) -> Result<Vec<u8>> {
        Ok(self.nullable_bytes()?.unwrap_or_default())
    }
}

//! A ZooKeeper ensemble on loopback: several servers, or one that is alone.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::ports;
use crate::zookeeper::{Zookeeper, ZookeeperClient};

/// Servers, each with a folder of its own.
#[derive(Debug)]
pub struct Ensemble {
    servers: Vec<Zookeeper>,
}

impl Ensemble {
    /// Starts so many servers below `folder` and waits until they have a leader and take sessions.
    ///
    /// # Errors
    /// When one of them does not start.
    pub fn start(folder: &Path, servers: usize, tick_ms: u32) -> Result<Self> {
        ensure!(servers > 0, "an ensemble without servers");
        let mut settings: Vec<(String, String)> =
            [("tickTime", tick_ms), ("initLimit", 20), ("syncLimit", 10)]
                .map(|(key, value)| (key.to_owned(), value.to_string()))
                .to_vec();
        if servers > 1 {
            for number in 1..=servers {
                let address = format!("127.0.0.1:{}:{}", ports::free()?, ports::free()?);
                settings.push((format!("server.{number}"), address));
            }
        }
        let settings: Vec<_> = settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let mut ensemble = Self { servers: Vec::new() };
        for number in 1..=servers {
            let own = folder.join(number.to_string());
            std::fs::create_dir_all(own.join("zookeeper"))?;
            std::fs::write(own.join("zookeeper/myid"), number.to_string())?;
            ensemble.servers.push(Zookeeper::start_with(&own, &settings)?);
        }
        for server in &ensemble.servers {
            ZookeeperClient::connect(&server.address())?;
        }
        Ok(ensemble)
    }

    /// `host:port` of each server, running or not.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        self.servers.iter().map(Zookeeper::address).collect()
    }

    /// `zookeeper.connect` with all servers.
    #[must_use]
    pub fn connect(&self) -> String {
        self.addresses().join(",")
    }

    /// The place of the server that leads, if there are several and they have a leader now.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        self.servers.iter().position(|server| server.mode().as_deref() == Some("leader"))
    }

    /// Whether every server runs and is in touch with a leader.
    #[must_use]
    pub fn are_all_serving(&self) -> bool {
        self.servers.iter().all(|server| server.mode().is_some())
    }

    /// The server of that place, counted from 0.
    ///
    /// # Errors
    /// When there is none.
    pub fn server(&mut self, place: usize) -> Result<&mut Zookeeper> {
        self.servers.get_mut(place).context("no such server")
    }

    /// Kills the server of that place, runs `while_down`, and starts it again until it takes sessions.
    ///
    /// # Errors
    /// When there is no such server, or it does not start again.
    pub fn restart(&mut self, place: usize, while_down: impl FnOnce()) -> Result<()> {
        let server = self.server(place)?;
        server.restart(while_down)?;
        ZookeeperClient::connect(&server.address())?;
        Ok(())
    }
}

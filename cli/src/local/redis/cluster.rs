//! A cluster of primaries on loopback.

use redis::RedisResult;
use shared::adapters::redis::RedisSettings;

use super::{Engine, LocalRedis, settings, wait_until};
use crate::local::process::{LocalError, free_port};

const CLUSTER_SLOTS: u16 = 16_384;

/// A cluster of primaries.
#[derive(Debug)]
pub struct RedisCluster {
    /// Its nodes; node `i` of `n` has the `i`-th part of the slots.
    pub nodes: Vec<LocalRedis>,
    /// The replica of each node, if it was started with them; replica `i` follows node `i`.
    replicas: Vec<LocalRedis>,
}

impl RedisCluster {
    /// Starts `nodes` primaries and waits until each sees all and every slot is served.
    pub fn start(engine: Engine, nodes: u16) -> Result<Self, LocalError> {
        Self::start_announcing(engine, &vec![None; nodes.into()])
    }

    /// The same with one node per entry, which tells clients to come to that port (a proxy's) if it has one.
    pub fn start_announcing(engine: Engine, announced: &[Option<u16>]) -> Result<Self, LocalError> {
        let mut nodes = Vec::new();
        let mut bus_ports = Vec::new();
        for port in announced {
            let bus_port = free_port()?.to_string();
            let options = options(&bus_port, *port);
            nodes.push(LocalRedis::start_with(engine, &options)?);
            bus_ports.push(bus_port);
        }
        let cluster = Self {
            nodes,
            replicas: Vec::new(),
        };
        cluster
            .join(&bus_ports)
            .map_err(|error| LocalError::NotReady {
                program: "cluster".to_owned(),
                problem: error.to_string(),
                log_tail: String::new(),
            })?;
        wait_until("cluster", "state ok", || cluster.is_whole())?;
        Ok(cluster)
    }

    /// Primaries with one replica each, which takes over by itself when its primary is gone.
    pub fn start_with_replicas(engine: Engine, primaries: u16) -> Result<Self, LocalError> {
        let mut cluster = Self::start(engine, primaries)?;
        let failed = |error: redis::RedisError| LocalError::NotReady {
            program: "replica".to_owned(),
            problem: error.to_string(),
            log_tail: String::new(),
        };
        let known = format!("cluster_known_nodes:{}\r", 2 * primaries);
        for _ in 0..primaries {
            let bus_port = free_port()?.to_string();
            let node = LocalRedis::start_with(engine, &options(&bus_port, None))?;
            let mut meet = redis::cmd("CLUSTER");
            meet.arg("MEET")
                .arg("127.0.0.1")
                .arg(node.port)
                .arg(&bus_port);
            cluster.nodes[0].command::<()>(&meet).map_err(failed)?;
            cluster.replicas.push(node);
        }
        for (primary, replica) in cluster.nodes.iter().zip(&cluster.replicas) {
            wait_until("replica", "sight of the whole cluster", || {
                let info = replica.command::<String>(redis::cmd("CLUSTER").arg("INFO"));
                info.is_ok_and(|info| info.contains(&known))
            })?;
            let id: String = primary
                .command(redis::cmd("CLUSTER").arg("MYID"))
                .map_err(failed)?;
            let mut follow = redis::cmd("CLUSTER");
            follow.arg("REPLICATE").arg(id);
            replica.command::<()>(&follow).map_err(failed)?;
        }
        for replica in &cluster.replicas {
            wait_until("replica", "link to its primary", || {
                says(replica, "REPLICATION", "master_link_status:up")
            })?;
        }
        Ok(cluster)
    }

    /// Kills the next primary as a crash does, and waits until its replica serves in its place. Primaries
    /// die in the order of `nodes`; false when each did.
    pub fn kill_next(&mut self) -> Result<bool, LocalError> {
        if self.replicas.is_empty() {
            return Ok(false);
        }
        let primary = self.nodes.len() - self.replicas.len();
        let heir = self.replicas.remove(0);
        drop(std::mem::replace(&mut self.nodes[primary], heir));
        let heir = &self.nodes[primary];
        wait_until("replica", "promotion", || {
            let info = heir.command::<String>(redis::cmd("CLUSTER").arg("INFO"));
            says(heir, "REPLICATION", "role:master")
                && info.is_ok_and(|info| info.contains("cluster_state:ok"))
        })?;
        Ok(true)
    }

    fn join(&self, bus_ports: &[String]) -> RedisResult<()> {
        let count = u16::try_from(self.nodes.len()).unwrap_or(1).max(1);
        let mut first = 0;
        for (index, node) in (1_u16..).zip(&self.nodes) {
            let end = u32::from(CLUSTER_SLOTS) * u32::from(index) / u32::from(count);
            let mut slots = redis::cmd("CLUSTER");
            slots.arg("ADDSLOTSRANGE").arg(first).arg(end - 1);
            node.command::<()>(&slots)?;
            let mut epoch = redis::cmd("CLUSTER");
            epoch.arg("SET-CONFIG-EPOCH").arg(index);
            node.command::<()>(&epoch)?;
            first = end;
        }
        for (node, bus_port) in self.nodes.iter().zip(bus_ports).skip(1) {
            let mut meet = redis::cmd("CLUSTER");
            meet.arg("MEET")
                .arg("127.0.0.1")
                .arg(node.port)
                .arg(bus_port);
            self.nodes[0].command::<()>(&meet)?;
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        let known = format!("cluster_known_nodes:{}\r", self.nodes.len());
        self.nodes.iter().all(|node| {
            let info = node.command::<String>(redis::cmd("CLUSTER").arg("INFO"));
            info.is_ok_and(|info| info.contains("cluster_state:ok") && info.contains(&known))
        })
    }

    /// How to reach it.
    #[must_use]
    pub fn settings(&self) -> RedisSettings {
        let nodes = self.nodes.iter().chain(&self.replicas);
        let ports: Vec<u16> = nodes.map(LocalRedis::port).collect();
        settings(&ports, true)
    }
}

fn options(bus_port: &str, announced: Option<u16>) -> Vec<String> {
    let mut options = vec![
        "--cluster-enabled",
        "yes",
        "--cluster-node-timeout",
        "2000",
        "--cluster-port",
        bus_port,
    ];
    let announced = announced.map(|port| port.to_string());
    if let Some(port) = &announced {
        options.extend([
            "--cluster-announce-ip",
            "127.0.0.1",
            "--cluster-announce-port",
            port,
        ]);
    }
    options.into_iter().map(str::to_owned).collect()
}

fn says(node: &LocalRedis, section: &str, what: &str) -> bool {
    let info = node.command::<String>(redis::cmd("INFO").arg(section));
    info.is_ok_and(|info| info.contains(what))
}

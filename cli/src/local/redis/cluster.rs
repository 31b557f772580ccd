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
            let mut options = vec![
                "--cluster-enabled",
                "yes",
                "--cluster-node-timeout",
                "2000",
                "--cluster-port",
            ];
            options.push(&bus_port);
            let port_text = port.map(|port| port.to_string());
            if let Some(port) = &port_text {
                options.extend([
                    "--cluster-announce-ip",
                    "127.0.0.1",
                    "--cluster-announce-port",
                    port,
                ]);
            }
            let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
            nodes.push(LocalRedis::start_with(engine, &options)?);
            bus_ports.push(bus_port);
        }
        let cluster = Self { nodes };
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
        let ports: Vec<u16> = self.nodes.iter().map(LocalRedis::port).collect();
        settings(&ports, true)
    }
}

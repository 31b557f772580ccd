//! The private Redis under test.

use shared::adapters::redis::RedisSettings;

use super::RedisUse;
use crate::{
    load::LoadError,
    local::redis::{Engine, LocalRedis, RedisCluster},
};

/// The Redis under test.
pub(in crate::load) enum Redis {
    Single(LocalRedis),
    Cluster(RedisCluster),
}

impl Redis {
    /// One server.
    pub fn single(engine: Engine) -> Result<Self, LoadError> {
        Ok(Self::Single(LocalRedis::start(engine)?))
    }

    /// So many primaries.
    pub fn cluster(engine: Engine, nodes: u16) -> Result<Self, LoadError> {
        Ok(Self::Cluster(RedisCluster::start(engine, nodes)?))
    }

    fn nodes(&self) -> &[LocalRedis] {
        match self {
            Self::Single(node) => std::slice::from_ref(node),
            Self::Cluster(cluster) => &cluster.nodes,
        }
    }

    pub fn settings(&self) -> RedisSettings {
        match self {
            Self::Single(node) => node.settings(),
            Self::Cluster(cluster) => cluster.settings(),
        }
    }

    /// The port of the only node; none of a cluster.
    pub fn single_port(&self) -> Option<u16> {
        match self {
            Self::Single(node) => Some(node.port()),
            Self::Cluster(_) => None,
        }
    }

    /// What all nodes have used.
    pub fn used(&self) -> Result<RedisUse, LoadError> {
        let mut all = RedisUse::default();
        for node in self.nodes() {
            let info: String = node.command(redis::cmd("INFO").arg("cpu"))?;
            let memory: String = node.command(redis::cmd("INFO").arg("memory"))?;
            let persistence: String = node.command(redis::cmd("INFO").arg("persistence"))?;
            let commands: String = node.command(redis::cmd("INFO").arg("commandstats"))?;
            let field = |text: &str, name: &str| -> Option<String> {
                let mut lines = text.lines();
                lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.to_owned()))
            };
            for name in ["used_cpu_sys", "used_cpu_user"] {
                let value = field(&info, name).and_then(|text| text.parse::<f64>().ok());
                all.cpu_s += value.unwrap_or(0.0);
            }
            let used = field(&memory, "used_memory").and_then(|text| text.parse::<u64>().ok());
            all.memory += used.unwrap_or(0);
            // These servers never save, so nothing sets it back.
            let changes = field(&persistence, "rdb_changes_since_last_save");
            let script = field(&commands, "cmdstat_evalsha").unwrap_or_default();
            let part = |name: &str| -> u64 {
                let mut parts = script.split(',').filter_map(|part| part.split_once('='));
                let found =
                    parts.find_map(|(key, value)| (key == name).then(|| value.parse().ok()));
                found.flatten().unwrap_or(0)
            };
            let scripts = all.scripts.get_or_insert_default();
            scripts.writes += changes.and_then(|text| text.parse().ok()).unwrap_or(0);
            scripts.calls += part("calls");
            scripts.us += part("usec");
        }
        Ok(all)
    }
}

//! What this machine was doing meanwhile: this process, Redis, and everybody else.

use std::{fs, time::Instant};

use super::{
    LoadError, Stand,
    numbers::float,
    stand::{RedisUse, Scripts},
};

/// Linux counts processor time in hundredths of a second for everybody.
const TICKS_PER_S: f64 = 100.0;

/// Processor time between two looks, in cores.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// This process: the callers and, in process mode, the functions.
    pub own: f64,
    /// Redis, all nodes and threads; none where it cannot be asked.
    pub redis: Option<f64>,
    /// Everything else: PostgreSQL, and whatever else this machine runs.
    pub others: f64,
    /// Cores of this machine.
    pub cores: f64,
    /// What Redis did; none where it cannot be asked.
    pub scripts: Option<Scripts>,
}

impl Usage {
    /// Whether next to nothing of the cores was idle.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.own + self.redis.unwrap_or(0.0) + self.others > 0.9 * self.cores
    }
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    own_s: f64,
    redis: Option<RedisUse>,
    machine_s: f64,
}

/// A look, to be compared with a later one.
#[derive(Debug)]
pub(super) struct Meter(Reading);

fn read<S: Stand>(stand: &S) -> Result<Reading, LoadError> {
    Ok(Reading {
        at: Instant::now(),
        own_s: own_cpu_s()?,
        redis: stand.redis_use()?,
        machine_s: machine_cpu_s()?,
    })
}

impl Meter {
    pub fn start<S: Stand>(stand: &S) -> Result<Self, LoadError> {
        read(stand).map(Self)
    }

    /// What was used since.
    pub fn stop<S: Stand>(self, stand: &S) -> Result<Usage, LoadError> {
        let (first, last) = (self.0, read(stand)?);
        let s = last.at.duration_since(first.at).as_secs_f64().max(1e-9);
        let own = (last.own_s - first.own_s) / s;
        let both = first.redis.zip(last.redis);
        let redis = both.map(|(first, last)| (last.cpu_s - first.cpu_s) / s);
        let scripts = both.and_then(|(first, last)| {
            let (first, last) = (first.scripts?, last.scripts?);
            Some(Scripts {
                calls: last.calls.saturating_sub(first.calls),
                us: last.us.saturating_sub(first.us),
                writes: last.writes.saturating_sub(first.writes),
            })
        });
        let machine = (last.machine_s - first.machine_s) / s;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Usage {
            own,
            redis,
            others: (machine - own - redis.unwrap_or(0.0)).max(0.0),
            cores: float(cores as u64),
            scripts,
        })
    }
}

fn file(path: &str) -> Result<String, LoadError> {
    fs::read_to_string(path).map_err(|error| LoadError::Wrong(format!("{path}: {error}")))
}

fn ticks<'a>(fields: impl Iterator<Item = &'a str>) -> f64 {
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    float(ticks) / TICKS_PER_S
}

/// User and system time of this process. Its name, in brackets, may have spaces in it.
fn own_cpu_s() -> Result<f64, LoadError> {
    let text = file("/proc/self/stat")?;
    let fields = text.rsplit(')').next().unwrap_or_default();
    Ok(ticks(fields.split_whitespace().skip(11).take(2)))
}

/// Time in which the cores were not idle.
fn machine_cpu_s() -> Result<f64, LoadError> {
    let text = file("/proc/stat")?;
    let line = text.lines().next().unwrap_or_default();
    let fields: Vec<&str> = line.split_whitespace().skip(1).take(8).collect();
    let idle = fields.iter().skip(3).take(2).copied();
    Ok(ticks(fields.iter().copied()) - ticks(idle))
}

/// Resident memory of this process, in bytes.
pub(super) fn resident_bytes() -> Result<u64, LoadError> {
    let text = file("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: Option<u64> = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    kib.map(|kib| kib * 1_024)
        .ok_or_else(|| LoadError::Wrong("/proc/self/status has no VmRSS".to_owned()))
}

/// The machine's load averages, as it states them.
pub(crate) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}

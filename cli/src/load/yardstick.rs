//! The same script without any function around it: `redis-benchmark` on the same server, or, where it is missing,
//! plain connections of our own. Neither sends a call before the last one on its connection was answered.

use std::{
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use redis::{Arg, Cmd, Value};
use shared::{
    domain::{
        BodyHash, BuyerId, CallId, IdempotencyKey, OrderId, Quantity, ShardIndex, UnixMillis,
    },
    mirror::shard_of,
    ports::{DeductCall, DeductReply, StockLedger},
};
use tokio::{process::Command, task::JoinSet, time::timeout};

use super::{
    LoadError,
    numbers::per_second,
    stand::{InProcess, OpenSale, Stand},
};

/// What `redis-benchmark` replaces by twelve digits, each time others.
const RANDOM: &str = "__rand_int__";
/// Numbers that it draws from: with so many, next to no buyer comes twice.
const DRAWN_FROM: &str = "2000000000";
const WITHIN: Duration = Duration::from_mins(5);
const FAR: UnixMillis = UnixMillis::new(4_000_000_000_000);

/// The bare script's speed.
#[derive(Debug, Clone)]
pub struct Yardstick {
    /// What called.
    pub tool: &'static str,
    /// Its connections.
    pub connections: usize,
    /// Calls a second that took a unit.
    pub winners_per_s: f64,
    /// Calls a second that found none.
    pub refusals_per_s: f64,
}

/// Measures on the stand's own server; none on a cluster.
pub(super) async fn measure(
    stand: &InProcess,
    connections: usize,
    calls: u64,
) -> Result<Option<Yardstick>, LoadError> {
    let Some(port) = stand.redis.single_port() else {
        return Ok(None);
    };
    let tool = tool();
    let open = stand.open(calls + 1).await?;
    // Teaches the ledger the terms.
    stand.take(&open, "first").await?;
    let winners_per_s = run(stand, &open, port, tool.as_ref(), connections, calls).await?;
    // A buyer who was drawn twice left a unit; whoever is left takes it before refusals are measured.
    let sold = stand.sell_out(&open).await?;
    let refusals_per_s = run(stand, &open, port, tool.as_ref(), connections, calls).await?;
    let after = stand.sell_out(&open).await?;
    if (sold, after) != (calls + 1, calls + 1) {
        let text = format!("the bare script: {sold} records, then {after}, of {calls} + 1 units");
        return Err(LoadError::Wrong(text));
    }
    stand.forget(&open).await?;
    Ok(Some(Yardstick {
        tool: tool.map_or("plain connections", |_| "redis-benchmark"),
        connections,
        winners_per_s,
        refusals_per_s,
    }))
}

fn tool() -> Option<PathBuf> {
    let hint = "apt-get install redis-tools";
    let found = crate::local::tool(
        "redis-benchmark",
        "redis/redis-benchmark",
        &["/usr/bin"],
        hint,
    );
    found.ok()
}

async fn run(
    stand: &InProcess,
    sale: &OpenSale,
    port: u16,
    tool: Option<&PathBuf>,
    connections: usize,
    calls: u64,
) -> Result<f64, LoadError> {
    match tool {
        Some(tool) => {
            let template = command(stand, sale, RANDOM).await?;
            benchmark(tool, port, connections, calls, &template).await
        }
        None => plain(stand, sale, port, connections, calls).await,
    }
}

/// The call of one buyer, as the ledger would send it.
async fn command(stand: &InProcess, sale: &OpenSale, number: &str) -> Result<Cmd, LoadError> {
    let call = bare_call(stand, sale, &format!("bare-{number}")).await?;
    let (template, order) = (
        stand.ledger().deduct_command(&call),
        call.order_id.to_string(),
    );
    // The order's last twelve digits are random too.
    let mut cmd = Cmd::new();
    for arg in template.args_iter() {
        if let Arg::Simple(bytes) = arg {
            let text = String::from_utf8_lossy(bytes);
            let head = order.get(..order.len() - RANDOM.len()).unwrap_or_default();
            cmd.arg(text.replace(&order, &format!("{head}{number}")));
        }
    }
    Ok(cmd)
}

/// What a buyer asks the script.
async fn bare_call(
    stand: &InProcess,
    sale: &OpenSale,
    buyer: &str,
) -> Result<DeductCall, LoadError> {
    let buyer_id = BuyerId::parse(buyer)?;
    let known = stand.sale(&sale.id).await?;
    Ok(DeductCall {
        shard: shard_of(&known, ShardIndex::FIRST),
        epoch: known.epoch,
        order_id: OrderId::derive(&sale.id, &buyer_id, &IdempotencyKey::parse("bare")?),
        buyer_id,
        quantity: Quantity::parse(1)?,
        body_hash: BodyHash::of(b"1"),
        call_id: CallId::from_bytes([7; 8]),
        not_after: FAR,
        rate: None,
    })
}

async fn benchmark(
    tool: &PathBuf,
    port: u16,
    connections: usize,
    calls: u64,
    template: &Cmd,
) -> Result<f64, LoadError> {
    let mut command = Command::new(tool);
    command
        .args(["-h", "127.0.0.1", "-p", &port.to_string(), "--csv"])
        .args(["-c", &connections.to_string(), "-n", &calls.to_string()])
        .args(["-r", DRAWN_FROM])
        .stdin(Stdio::null())
        .kill_on_drop(true);
    for arg in template.args_iter() {
        if let Arg::Simple(bytes) = arg {
            command.arg(String::from_utf8_lossy(bytes).into_owned());
        }
    }
    let failed = |problem: String| LoadError::Wrong(format!("redis-benchmark: {problem}"));
    let output = match timeout(WITHIN, command.output()).await {
        Ok(output) => output.map_err(|error| failed(error.to_string()))?,
        Err(_) => return Err(failed("it did not end".to_owned())),
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    rate_in(&text).ok_or_else(|| failed(text + &String::from_utf8_lossy(&output.stderr)))
}

/// The calls a second in the last line: the second of its eight fields, of which the first may contain anything.
fn rate_in(csv: &str) -> Option<f64> {
    let line = csv.lines().rev().find(|line| !line.trim().is_empty())?;
    let fields: Vec<&str> = line.trim().trim_matches('"').split("\",\"").collect();
    fields.get(fields.len().checked_sub(7)?)?.parse().ok()
}

async fn plain(
    stand: &InProcess,
    sale: &OpenSale,
    port: u16,
    connections: usize,
    calls: u64,
) -> Result<f64, LoadError> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
    // Others than in an earlier run on this sale.
    let first = sale.served() + stand.sell_count(sale).await? + 1;
    let mut links = Vec::new();
    for _ in 0..connections {
        links.push(client.get_multiplexed_async_connection().await?);
    }
    let pattern = command(stand, sale, RANDOM).await?;
    let args: Arc<Vec<String>> = Arc::new(
        pattern
            .args_iter()
            .filter_map(|arg| match arg {
                Arg::Simple(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
                _ => None,
            })
            .collect(),
    );
    let next = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let mut tasks: JoinSet<Result<(), LoadError>> = JoinSet::new();
    for mut link in links {
        let (args, next) = (Arc::clone(&args), Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= calls {
                    return Ok(());
                }
                let digits = format!("{:012}", first + number);
                let mut cmd = Cmd::new();
                for arg in args.iter() {
                    cmd.arg(arg.replace(RANDOM, &digits));
                }
                let _: Value = cmd.query_async(&mut link).await?;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(per_second(calls, began.elapsed()))
}

impl InProcess {
    /// Takes what is left by this process's own calls; returns the number of records.
    async fn sell_out(&self, sale: &OpenSale) -> Result<u64, LoadError> {
        let mut number = 0_u64;
        while self.take(sale, &format!("last-{number}")).await? {
            number += 1;
        }
        self.sell_count(sale).await
    }

    /// Takes one unit for a buyer; false when there is none.
    async fn take(&self, sale: &OpenSale, buyer: &str) -> Result<bool, LoadError> {
        match self
            .ledger()
            .deduct(&bare_call(self, sale, buyer).await?)
            .await
        {
            Ok(DeductReply::Reserved { .. } | DeductReply::Existing(_)) => Ok(true),
            Ok(DeductReply::SoldOut) => Ok(false),
            other => Err(LoadError::Wrong(format!("the bare script: {other:?}"))),
        }
    }

    async fn sell_count(&self, sale: &OpenSale) -> Result<u64, LoadError> {
        Ok(self.books(sale).await?.records)
    }
}

#[cfg(test)]
mod tests {
    use super::rate_in;

    #[test]
    fn the_rate_is_found_behind_a_name_with_anything_in_it() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
            \"evalsha a \",\" h x y\",\"83333.34\",\"0.300\",\"0.100\",\"0.311\",\"0.400\",\"0.500\",\"1.000\"\n";
        assert!(rate_in(csv).is_some_and(|rate| (rate - 83_333.34).abs() < 0.01));
        assert_eq!(rate_in(""), None);
        assert_eq!(rate_in("Could not connect"), None);
    }
}

//! The deduct script against the minimal one: the server's own time per call, in the same run, by turns.

use redis::aio::MultiplexedConnection;
use shared::adapters::redis::RedisLedger;
use shared::domain::{
    BodyHash, BuyerId, CallId, Epoch, Gate, Guard, IdempotencyKey, OrderId, Quantity, SaleId,
    ShardIndex, Terms, Units, UnixMillis, Version,
};
use shared::ports::{
    DeductCall, DeductReply, GateChange, PreheatCall, RateLimit, Shard, StockLedger,
};

use super::{
    BenchError, Minimal,
    driver::{ScriptTime, drive, median},
};
use crate::local::redis::{Engine, LocalRedis};

mod cases;
mod report;

pub use report::ScriptReport;

use cases::{CASES, Case, Stock};
use report::Row;

const EPOCH: Epoch = Epoch::new(1);
/// A server time that no run reaches.
const FAR: UnixMillis = UnixMillis::new(9_000_000_000_000);
/// Each run is cut into so many turns, so that what else the machine does weighs on both scripts alike.
const TURNS: u64 = 10;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct ScriptBench {
    /// Calls of each script in one run; at least 1,000 mean something.
    pub calls: u64,
    /// Runs of each case, of which the median counts.
    pub runs: u32,
}

impl ScriptBench {
    /// Measures every case on private servers of every engine.
    pub async fn run(self) -> Result<ScriptReport, BenchError> {
        let mut rows = Vec::new();
        for engine in [Engine::Redis, Engine::Valkey] {
            for case in CASES {
                eprintln!("{engine:?}: {}", case.name);
                rows.push(self.case(engine, case).await?);
            }
        }
        Ok(ScriptReport { rows })
    }

    async fn case(self, engine: Engine, case: &'static Case) -> Result<Row, BenchError> {
        let server = LocalRedis::start(engine)?;
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", server.port()))?;
        let connection = client.get_multiplexed_async_connection().await?;
        let (mut minimal, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..self.runs {
            let (of_minimal, of_ours) = self.once(case, &server, connection.clone()).await?;
            minimal.push(of_minimal);
            ours.push(of_ours);
        }
        let ratios = minimal.iter().zip(&ours).map(|(yard, own)| own / yard);
        Ok(Row {
            engine,
            case,
            ratio: median(ratios.collect()),
            minimal_us: median(minimal),
            ours_us: median(ours),
        })
    }

    /// One run on an empty server: both scripts by turns, then the counts.
    async fn once(
        self,
        case: &'static Case,
        server: &LocalRedis,
        mut connection: MultiplexedConnection,
    ) -> Result<(f64, f64), BenchError> {
        let (): () = redis::cmd("FLUSHALL").query_async(&mut connection).await?;
        let turn = self.calls.div_ceil(TURNS);
        let all = turn * (TURNS + 1);
        let stock = if case.stock == Stock::None { 0 } else { all };
        let minimal = Minimal::open(connection.clone(), stock).await?;
        let ours = Ours::open(server, all, case).await?;
        let (mut of_minimal, mut of_ours) = (ScriptTime::default(), ScriptTime::default());
        // The first turn only warms up.
        for number in 0..=TURNS {
            let (from, to) = (number * turn, (number + 1) * turn);
            let start = ScriptTime::read(&mut connection).await?;
            let wanted = i64::from(case.stock != Stock::None);
            let yardstick = minimal.clone();
            drive(from, to, move |buyer| {
                take(yardstick.clone(), buyer, wanted)
            })
            .await?;
            let between = ScriptTime::read(&mut connection).await?;
            let own = ours.clone();
            drive(from, to, move |buyer| buy(own.clone(), buyer)).await?;
            let end = ScriptTime::read(&mut connection).await?;
            if number > 0 {
                of_minimal.add(start, between);
                of_ours.add(between, end);
            }
        }
        let called = turn * TURNS;
        if (of_minimal.calls, of_ours.calls) != (called, called) {
            return Err(BenchError::Wrong(format!(
                "{called} calls of each script were {} and {}",
                of_minimal.calls, of_ours.calls
            )));
        }
        check_minimal(&minimal, stock).await?;
        ours.check(all).await?;
        Ok((of_minimal.per_call(), of_ours.per_call()))
    }
}

fn buyer(number: u64) -> String {
    format!("buyer-{number:012}")
}

async fn take(minimal: Minimal, number: u64, wanted: i64) -> Result<(), BenchError> {
    let reply = minimal.take(&buyer(number)).await?;
    if reply == wanted {
        Ok(())
    } else {
        Err(BenchError::Wrong(format!(
            "the minimal script answered {reply}"
        )))
    }
}

async fn check_minimal(minimal: &Minimal, taken: u64) -> Result<(), BenchError> {
    let found = minimal.counts().await?;
    if found == (0, taken) {
        Ok(())
    } else {
        Err(BenchError::Wrong(format!(
            "the minimal script left (stock, buyers) {found:?} instead of (0, {taken})"
        )))
    }
}

/// A sale of the product's own.
#[derive(Clone)]
struct Ours {
    ledger: RedisLedger,
    shard: Shard,
    case: &'static Case,
}

impl Ours {
    /// A shard with a unit for each of `buyers`, or with none left, as the case has it.
    async fn open(
        server: &LocalRedis,
        buyers: u64,
        case: &'static Case,
    ) -> Result<Self, BenchError> {
        let ours = Self {
            ledger: RedisLedger::new(server.settings()),
            shard: Shard {
                sale_id: SaleId::parse("bench").map_err(wrong)?,
                index: ShardIndex::FIRST,
            },
            case,
        };
        let total = if case.stock == Stock::None { 1 } else { buyers };
        let load = PreheatCall {
            shard: ours.shard.clone(),
            epoch: EPOCH,
            total: Units::try_from(total).map_err(wrong)?,
            gate: GateChange {
                version: Version::new(1),
                gate: Gate::Open,
                terms: Terms {
                    limit: one()?,
                    opens_at: UnixMillis::new(1),
                    closes_at: FAR,
                },
            },
            adjustments: Vec::new(),
        };
        ours.ledger.preheat(&load).await?;
        let now = ours.ledger.snapshot(&ours.shard).await?.now;
        ours.ledger
            .lift_guard(&ours.shard, EPOCH, Guard::Rebuilding, now)
            .await?;
        // The one that teaches this process the terms takes the only unit where none is to be left.
        if case.stock == Stock::None {
            ours.ledger.deduct(&ours.call(u64::MAX, false)?).await?;
        }
        if case.again {
            let before = ours.clone();
            drive(0, buyers, move |buyer| first_time(before.clone(), buyer)).await?;
        }
        Ok(ours)
    }

    fn call(&self, number: u64, rated: bool) -> Result<DeductCall, BenchError> {
        let buyer_id = BuyerId::parse(&buyer(number)).map_err(wrong)?;
        let key = IdempotencyKey::parse("bench").map_err(wrong)?;
        Ok(DeductCall {
            shard: self.shard.clone(),
            epoch: EPOCH,
            order_id: OrderId::derive(&self.shard.sale_id, &buyer_id, &key),
            buyer_id,
            quantity: one()?,
            body_hash: BodyHash::of(b"1"),
            call_id: CallId::from_bytes(number.to_be_bytes()),
            not_after: FAR,
            rate: rated.then_some(RateLimit {
                max: 1_000,
                window_ms: 1_000,
            }),
        })
    }

    async fn check(&self, buyers: u64) -> Result<(), BenchError> {
        let found = self.ledger.snapshot(&self.shard).await?;
        let records = if self.case.stock == Stock::None {
            1
        } else {
            buyers
        };
        let found = (found.stock.get(), found.records, found.outbox);
        if found == (0, records, records) {
            Ok(())
        } else {
            Err(BenchError::Wrong(format!(
                "the deduct script left (stock, records, outbox) {found:?} instead of (0, {records}, {records})"
            )))
        }
    }
}

async fn buy(ours: Ours, number: u64) -> Result<(), BenchError> {
    let call = ours.call(number, ours.case.rated)?;
    let reply = ours.ledger.deduct(&call).await?;
    let right = match ours.case.stock {
        Stock::None => reply == DeductReply::SoldOut,
        Stock::Enough if ours.case.again => matches!(reply, DeductReply::Existing(_)),
        Stock::Enough => matches!(reply, DeductReply::Reserved { .. }),
    };
    if right {
        Ok(())
    } else {
        Err(BenchError::Wrong(format!(
            "the deduct script answered {reply:?}"
        )))
    }
}

async fn first_time(ours: Ours, number: u64) -> Result<(), BenchError> {
    let call = ours.call(number, ours.case.rated)?;
    ours.ledger.deduct(&call).await?;
    Ok(())
}

fn one() -> Result<Quantity, BenchError> {
    Quantity::parse(1).map_err(wrong)
}

fn wrong(error: impl std::fmt::Display) -> BenchError {
    BenchError::Wrong(error.to_string())
}

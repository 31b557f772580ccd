//! The deduct script against the minimal one: the server's own time per call, in the same run, by turns.

use redis::{Cmd, Value};
use shared::adapters::redis::RedisLedger;
use shared::domain::{
    BodyHash, BuyerId, CallId, Epoch, Gate, Guard, IdempotencyKey, OrderId, Quantity, SaleId,
    ShardCount, ShardIndex, Terms, Units, UnixMillis, Version,
};
use shared::ports::{
    DeductCall, DeductReply, GateChange, PreheatCall, RateLimit, Shard, StockLedger,
};

use super::{
    BenchError, Minimal,
    driver::{Calls, ScriptTime, drive, median},
};
use crate::local::redis::{Engine, LocalRedis};

mod cases;
mod report;

pub use report::ScriptReport;

use cases::{CASES, Case};
use report::Row;

const EPOCH: Epoch = Epoch::new(1);
/// A server time that no run reaches.
const FAR: UnixMillis = UnixMillis::new(9_000_000_000_000);
/// Each run is cut into so many turns, so that what else the machine does weighs on both scripts alike, and a turn
/// in which the server's thread had to wait for a processor does not count: the median turn stands for the run.
const TURNS: u64 = 20;

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
        let (mut minimal, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..self.runs {
            let (of_minimal, of_ours) = self.once(case, &server).await?;
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
    ) -> Result<(f64, f64), BenchError> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", server.port()))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let (): () = redis::cmd("FLUSHALL").query_async(&mut connection).await?;
        let turn = self.calls.div_ceil(TURNS);
        let buyers = turn * (TURNS + 1);
        let stock = if case.sold_out { 0 } else { buyers };
        let yardstick = Yardstick {
            minimal: Minimal::open(&mut connection, stock).await?,
            wanted: i64::from(!case.sold_out),
        };
        let ours = Ours::open(server, buyers, case).await?;
        if case.again {
            let before = Ours {
                first: true,
                ..ours.clone()
            };
            drive(&client, &before, 0, buyers).await?;
        }
        let (mut of_minimal, mut of_ours) = (Vec::new(), Vec::new());
        // The first turn only warms up.
        for number in 0..=TURNS {
            let (from, to) = (number * turn, (number + 1) * turn);
            let start = ScriptTime::read(&mut connection).await?;
            drive(&client, &yardstick, from, to).await?;
            let between = ScriptTime::read(&mut connection).await?;
            drive(&client, &ours, from, to).await?;
            let end = ScriptTime::read(&mut connection).await?;
            if number > 0 {
                of_minimal.push(between.since(start, turn)?);
                of_ours.push(end.since(between, turn)?);
            }
        }
        let left = Minimal::counts(&mut connection).await?;
        if left != (0, stock) {
            return Err(BenchError::Wrong(format!(
                "the minimal script left (stock, buyers) {left:?} instead of (0, {stock})"
            )));
        }
        ours.check_counts(stock).await?;
        Ok((median(of_minimal), median(of_ours)))
    }
}

fn buyer(number: u64) -> String {
    format!("buyer-{number:012}")
}

/// The minimal script's calls.
#[derive(Clone)]
struct Yardstick {
    minimal: Minimal,
    wanted: i64,
}

impl Calls for Yardstick {
    fn command(&self, number: u64) -> Result<Cmd, BenchError> {
        Ok(self.minimal.command(&buyer(number)))
    }

    fn check(&self, _: u64, answer: Value) -> Result<(), BenchError> {
        if answer == Value::Int(self.wanted) {
            Ok(())
        } else {
            Err(wrong(format!("the minimal script answered {answer:?}")))
        }
    }
}

/// A sale of the product's own.
#[derive(Clone)]
struct Ours {
    ledger: RedisLedger,
    shard: Shard,
    case: &'static Case,
    /// The round before the measured one, where everybody calls twice.
    first: bool,
}

impl Ours {
    /// A shard with a unit for each of `buyers`, or with none left, as the case has it. One more buyer takes
    /// one more unit, which teaches this process the terms.
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
                of: ShardCount::ONE,
            },
            case,
            first: false,
        };
        let total = if case.sold_out { 1 } else { buyers + 1 };
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
        ours.ledger.deduct(&ours.call(u64::MAX)?).await?;
        Ok(ours)
    }

    fn call(&self, number: u64) -> Result<DeductCall, BenchError> {
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
            rate: self.case.rated.then_some(RateLimit {
                max: 1_000,
                window_ms: 1_000,
            }),
        })
    }

    /// Every unit is gone, and each of `winners` has one, besides the first buyer.
    async fn check_counts(&self, winners: u64) -> Result<(), BenchError> {
        let found = self.ledger.snapshot(&self.shard).await?;
        let found = (found.stock.get(), found.records, found.outbox);
        let wanted = (0, winners + 1, winners + 1);
        if found == wanted {
            Ok(())
        } else {
            Err(wrong(format!(
                "deduct left (stock, records, outbox) {found:?} instead of {wanted:?}"
            )))
        }
    }
}

impl Calls for Ours {
    fn command(&self, number: u64) -> Result<Cmd, BenchError> {
        Ok(self.ledger.deduct_command(&self.call(number)?))
    }

    fn check(&self, number: u64, answer: Value) -> Result<(), BenchError> {
        let reply = self.ledger.deduct_reply(&self.call(number)?, answer)?;
        let right = match &reply {
            Some(DeductReply::SoldOut) => self.case.sold_out,
            Some(DeductReply::Reserved { .. }) => {
                !self.case.sold_out && (self.first || !self.case.again)
            }
            Some(DeductReply::Existing(_)) => !self.case.sold_out && self.case.again,
            _ => false,
        };
        if right {
            Ok(())
        } else {
            Err(wrong(format!("deduct answered {reply:?}")))
        }
    }
}

fn one() -> Result<Quantity, BenchError> {
    Quantity::parse(1).map_err(wrong)
}

fn wrong(error: impl std::fmt::Display) -> BenchError {
    BenchError::Wrong(error.to_string())
}

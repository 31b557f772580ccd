//! The smoke reservation: one unit taken and given back on a throw-away sale, with the very scripts that
//! buyers will run. A script that cannot run (a lost function, a full memory, a wrong access list) is found
//! here and not by the first buyer.

use shared::domain::{
    BodyHash, BuyerId, Epoch, Gate, Guard, IdempotencyKey, OrderId, Quantity, SaleId, ShardCount,
    ShardIndex, Terms, Units, UnixMillis, Version,
};
use shared::limits::{NOT_AFTER_SLACK_MS, SMOKE_KEYS_TTL_MS};
use shared::ports::{
    DeductCall, DeductReply, GateChange, IdSource, LedgerError, OrderStore, PreheatCall,
    ReleaseReply, ReleaseRow, SaleStore, Shard, StockLedger,
};

use crate::Preheat;

/// The last second of the year 9999: the scripts take times of at most 15 digits.
const END_OF_TIME: UnixMillis = UnixMillis::new(253_402_300_799_000);

/// Why the smoke reservation failed.
#[derive(Debug, thiserror::Error)]
pub enum SmokeError {
    /// Redis did not answer.
    #[error("Redis did not answer the smoke reservation")]
    Ledger(#[from] LedgerError),
    /// It answered something else than it must.
    #[error("{step} answered {reply}")]
    Unexpected {
        /// The step.
        step: &'static str,
        /// The answer.
        reply: String,
    },
    /// A constant of this file does not parse: a bug.
    #[error("a constant does not parse")]
    Constant(#[from] shared::domain::ParseError),
}

fn unexpected(step: &'static str, reply: &impl std::fmt::Debug) -> SmokeError {
    SmokeError::Unexpected {
        step,
        reply: format!("{reply:?}"),
    }
}

impl<L: StockLedger, S: SaleStore + OrderStore, I: IdSource> Preheat<L, S, I> {
    pub(crate) async fn smoke(&self, epoch: Epoch) -> Result<(), SmokeError> {
        let call_id = self.ids.call_id();
        let shard = Shard {
            sale_id: SaleId::parse(&format!("smoke-{call_id}"))?,
            index: ShardIndex::FIRST,
            of: ShardCount::ONE,
        };
        let tried = self.reserve_and_release(&shard, epoch, call_id).await;
        // Also after a failure: nothing of it may stay.
        let retired = self
            .ledger
            .retire(&shard.sale_id, ShardCount::ONE, SMOKE_KEYS_TTL_MS)
            .await;
        tried?;
        Ok(retired?)
    }

    async fn reserve_and_release(
        &self,
        shard: &Shard,
        epoch: Epoch,
        call_id: shared::domain::CallId,
    ) -> Result<(), SmokeError> {
        let one = Quantity::parse(1)?;
        let buyer_id = BuyerId::parse("smoke")?;
        let key = IdempotencyKey::parse("smoke")?;
        let order_id = OrderId::derive(&shard.sale_id, &buyer_id, &key);
        let terms = Terms {
            limit: one,
            opens_at: UnixMillis::new(0),
            closes_at: END_OF_TIME,
        };
        let gate = GateChange {
            version: Version::new(1),
            gate: Gate::Open,
            terms,
        };
        self.ledger
            .preheat(&PreheatCall {
                shard: shard.clone(),
                epoch,
                total: one.units(),
                gate,
                adjustments: Vec::new(),
            })
            .await?;
        let now = self.ledger.ping().await?;
        self.ledger
            .lift_guard(shard, epoch, Guard::Rebuilding, now)
            .await?;
        let call = DeductCall {
            shard: shard.clone(),
            epoch,
            buyer_id: buyer_id.clone(),
            order_id,
            quantity: one,
            body_hash: BodyHash::of(b"smoke"),
            call_id,
            not_after: now.plus(NOT_AFTER_SLACK_MS),
            rate: None,
        };
        match self.ledger.deduct(&call).await? {
            DeductReply::Reserved { .. } => {}
            reply => return Err(unexpected("deduct", &reply)),
        }
        let rows = [ReleaseRow { order_id, buyer_id }];
        let replies = self.ledger.release(shard, epoch, &rows).await?;
        if replies != [ReleaseReply::Released { units: one.units() }] {
            return Err(unexpected("release", &replies));
        }
        let after = self.ledger.snapshot(shard).await?;
        if after.stock == one.units() && after.debt == Units::ZERO && after.outbox == 0 {
            Ok(())
        } else {
            Err(unexpected("snapshot", &after))
        }
    }
}

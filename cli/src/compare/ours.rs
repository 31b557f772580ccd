//! This project's ledger: the very adapter and scripts that the functions use.
//!
//! Only the ledger: the queue and PostgreSQL behind it are not on a buyer's path and not measured here. With several
//! shards, a buyer whose own is empty asks by the use case of `deduct`, which borrows from the others.

use deduct::{Buy, Deduct, Outcome, Refusal, SoldOut};
use shared::{
    adapters::redis::RedisLedger,
    domain::{
        BodyHash, BuyerId, Epoch, Gate, Guard, IdempotencyKey, OrderId, Quantity, RecordState,
        RouteInfo, SaleId, ShardCount, Terms, Units, UnixMillis, Version,
    },
    ports::{
        DeductCall, DeductReply, Existing, GateChange, IdSource, PreheatCall, ReleaseReply,
        ReleaseRow, Shard, StockLedger, SystemClock, SystemIds,
    },
    routes::{Routes, home_shard},
};

use super::{CompareError, Inventory, Reduced, inventory::Books};
use crate::bench::Sink;

/// The load's epoch.
pub const EPOCH: Epoch = Epoch::new(1);
/// The sale's id.
pub const SALE: &str = "compare";
/// A server time that no run reaches.
const FAR: UnixMillis = UnixMillis::new(9_000_000_000_000);

/// The ledger with one open sale.
pub struct Ours {
    ledger: RedisLedger,
    sale: SaleId,
    route: RouteInfo,
    one: Quantity,
    key: IdempotencyKey,
    deduct: Deduct<RedisLedger, Sink, SystemClock, SystemIds>,
}

impl Ours {
    /// A sale over so many shards.
    pub fn new(ledger: RedisLedger, shards: u64) -> Result<Self, CompareError> {
        Ok(Self {
            deduct: Deduct {
                ledger: ledger.clone(),
                queue: Sink::default(),
                clock: SystemClock,
                ids: SystemIds,
                routes: Routes::default(),
                sold_out: SoldOut::default(),
                rate: None,
            },
            ledger,
            sale: SaleId::parse(SALE)?,
            route: RouteInfo {
                epoch: EPOCH,
                shards: ShardCount::parse(shards)?,
            },
            one: Quantity::parse(1)?,
            key: IdempotencyKey::parse("only")?,
        })
    }

    fn buyer(number: u64) -> Result<BuyerId, CompareError> {
        Ok(BuyerId::parse(&format!("buyer-{number}"))?)
    }

    fn shards(&self) -> impl Iterator<Item = Shard> + '_ {
        self.route.shards.indexes().map(|index| Shard {
            sale_id: self.sale.clone(),
            index,
            of: self.route.shards,
        })
    }

    async fn borrow(&self, call: &DeductCall) -> Result<Reduced, CompareError> {
        let wish = Buy {
            sale_id: self.sale.clone(),
            buyer_id: call.buyer_id.clone(),
            order_id: call.order_id,
            quantity: call.quantity,
            body_hash: call.body_hash,
        };
        loop {
            match self.deduct.run(&wish).await {
                Outcome::Accepted { .. } => return Ok(Reduced::Won),
                Outcome::InProgress { .. } => return Ok(Reduced::Again),
                Outcome::Refused(Refusal::SoldOut { .. }) => return Ok(Reduced::SoldOut),
                // Units are on their way between two shards: that ends by itself.
                Outcome::Busy { cause: None } => tokio::task::yield_now().await,
                other => return Err(CompareError::Unexpected(format!("{other:?}"))),
            }
        }
    }

    async fn load(&self, shard: Shard, total: Units) -> Result<(), CompareError> {
        let terms = Terms {
            limit: self.one,
            opens_at: UnixMillis::new(0),
            closes_at: FAR,
        };
        let call = PreheatCall {
            shard,
            epoch: EPOCH,
            total,
            gate: GateChange {
                version: Version::new(1),
                gate: Gate::Open,
                terms,
            },
            adjustments: Vec::new(),
        };
        self.ledger.preheat(&call).await?;
        let now = self.ledger.snapshot(&call.shard).await?.now;
        self.ledger
            .lift_guard(&call.shard, EPOCH, Guard::Rebuilding, now)
            .await?;
        Ok(())
    }
}

impl Inventory for Ours {
    async fn init(&self, stock: u64) -> Result<(), CompareError> {
        let all = Units::try_from(stock)?;
        let shares = all.split_evenly(self.route.shards);
        for (shard, share) in self.shards().zip(shares) {
            self.load(shard, share).await?;
        }
        self.ledger.raise_route(&self.sale, self.route).await?;
        Ok(())
    }

    async fn reduce(&self, _lane: usize, buyer: u64) -> Result<Reduced, CompareError> {
        let buyer_id = Self::buyer(buyer)?;
        let call = DeductCall {
            shard: home_shard(&self.sale, self.route, &buyer_id),
            epoch: EPOCH,
            order_id: OrderId::derive(&self.sale, &buyer_id, &self.key),
            buyer_id,
            quantity: self.one,
            body_hash: BodyHash::of(b"1"),
            call_id: SystemIds.call_id(),
            not_after: FAR,
            rate: None,
        };
        match self.ledger.deduct(&call).await? {
            DeductReply::Reserved { .. } => Ok(Reduced::Won),
            DeductReply::Existing(Existing::InProgress { .. } | Existing::Claimed(_)) => {
                Ok(Reduced::Again)
            }
            DeductReply::SoldOut if self.route.shards != ShardCount::ONE => {
                self.borrow(&call).await
            }
            DeductReply::SoldOut => Ok(Reduced::SoldOut),
            other => Err(CompareError::Unexpected(format!("{other:?}"))),
        }
    }

    async fn give_back(&self, _lane: usize, buyer: u64) -> Result<bool, CompareError> {
        let buyer_id = Self::buyer(buyer)?;
        let shard = home_shard(&self.sale, self.route, &buyer_id);
        let row = ReleaseRow {
            order_id: OrderId::derive(&self.sale, &buyer_id, &self.key),
            buyer_id,
        };
        let replies = self.ledger.release(&shard, EPOCH, &[row]).await?;
        Ok(matches!(
            replies.as_slice(),
            [ReleaseReply::Released { .. }]
        ))
    }

    async fn get(&self) -> Result<Books, CompareError> {
        let (mut left, mut owners) = (0, 0);
        for shard in self.shards() {
            left += self
                .ledger
                .snapshot(&shard)
                .await?
                .stock
                .get()
                .cast_signed();
            let mut cursor = None;
            loop {
                let page = self.ledger.records(&shard, cursor).await?;
                for (_, record) in &page.items {
                    // Each has one unit.
                    owners += i64::from(record.state != RecordState::Released);
                }
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(Books { left, owners })
    }
}

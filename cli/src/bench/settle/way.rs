//! The ways to bring orders into SQL, and what each must leave.

use shared::adapters::postgres::PgStore;
use shared::domain::{OrderMessage, SaleId};
use shared::ports::{OrderStore, Settled};

use super::{BenchError, wrong};

/// A way to bring orders into SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `settle`'s transaction with thousands of messages.
    Batches,
    /// The same transaction for each message.
    Singly,
    /// Only the rows of the orders, thousands in one statement: no stock, no movements, no answer.
    BareInsert,
}

impl Way {
    /// Every one, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Batches, Self::Singly, Self::BareInsert];

    /// As the report names it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Batches => "settle, in batches",
            Self::Singly => "settle, one transaction per message",
            Self::BareInsert => "bare insert of the same rows",
        }
    }

    /// Messages of one transaction.
    pub(super) const fn batch(self, batch: usize) -> usize {
        match self {
            Self::Batches | Self::BareInsert => batch,
            Self::Singly => 1,
        }
    }

    /// Writes one batch; every message of it must become an order.
    pub(super) async fn write(
        self,
        store: &PgStore,
        sale: &SaleId,
        batch: &[OrderMessage],
    ) -> Result<(), BenchError> {
        match self {
            Self::Batches | Self::Singly => {
                let settled = store.settle(sale, batch).await.map_err(wrong)?;
                let odd = settled.outcomes.iter().find(|outcome| match outcome {
                    Settled::Row { order, fresh } => !fresh || !order.status.is_live(),
                    Settled::Failed(_) => true,
                });
                odd.map_or(Ok(()), |odd| Err(wrong(format!("settle answered {odd:?}"))))
            }
            Self::BareInsert => insert(store, sale, batch).await,
        }
    }

    /// Counts what is there afterwards.
    pub(super) async fn check(
        self,
        store: &PgStore,
        sale: &SaleId,
        orders: u64,
    ) -> Result<(), BenchError> {
        let found: (i64, i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM orders WHERE sale_id = $1 AND status = 'awaiting_payment'), \
               (SELECT count(*) FROM stock_movements WHERE sale_id = $1), \
               (SELECT available FROM sales WHERE id = $1)",
        )
        .bind(sale.as_str())
        .fetch_one(store.pool())
        .await
        .map_err(wrong)?;
        let orders = orders.cast_signed();
        let wanted = match self {
            Self::Batches | Self::Singly => (orders, orders, 0),
            Self::BareInsert => (orders, 0, orders),
        };
        if found == wanted {
            Ok(())
        } else {
            Err(wrong(format!(
                "{}: (orders, movements, available) are {found:?} instead of {wanted:?}",
                self.title()
            )))
        }
    }
}

async fn insert(store: &PgStore, sale: &SaleId, batch: &[OrderMessage]) -> Result<(), BenchError> {
    let ids: Vec<_> = batch.iter().map(|m| m.order_id.uuid()).collect();
    let buyers: Vec<_> = batch.iter().map(|m| m.buyer_id.to_string()).collect();
    let hashes: Vec<_> = batch.iter().map(|m| m.body_hash.to_string()).collect();
    let reserved: Vec<_> = batch
        .iter()
        .map(|m| m.reserved_at.get().cast_signed())
        .collect();
    sqlx::query(
        "INSERT INTO orders (id, sale_id, buyer_id, quantity, price_minor, currency, status, \
           reserved_at_ms, body_hash, settled_at_ms, pay_by_ms) \
         SELECT m.id, $1, m.buyer_id, 1, 9900, 'CNY', 'awaiting_payment', m.reserved_at_ms, \
           m.body_hash, m.reserved_at_ms, m.reserved_at_ms + 3600000 \
         FROM unnest($2::uuid[], $3::text[], $4::bigint[], $5::text[]) \
           AS m (id, buyer_id, reserved_at_ms, body_hash)",
    )
    .bind(sale.as_str())
    .bind(&ids)
    .bind(&buyers)
    .bind(&reserved)
    .bind(&hashes)
    .execute(store.pool())
    .await
    .map(|_| ())
    .map_err(wrong)
}

//! A buyer gives her order back before she paid.

use shared::domain::{BuyerId, Order, OrderId, OrderStatus, SaleId};
use shared::mirror::mirror_orders;
use shared::ports::{
    Clock, CloseOutcome, IdSource, OrderQueue, OrderStore, SaleStore, StockLedger,
};

use crate::{Away, Found, Orders};

/// What became of a cancellation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelOutcome {
    /// Cancelled, now or before.
    Cancelled(Box<Order>),
    /// Closed otherwise.
    Closed(Box<Order>),
    /// Paid; it stays.
    Paid,
    /// Not in SQL yet.
    NotSettledYet,
    /// Hers nowhere.
    NotFound,
}

impl<L, S, Q, C, I> Orders<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// Cancels. Done once SQL committed; what Redis hears of it is covered by reconcile.
    pub async fn cancel(
        &self,
        sale: &SaleId,
        buyer: &BuyerId,
        order: OrderId,
    ) -> Result<CancelOutcome, Away> {
        match self.store.cancel(sale, order, buyer).await? {
            CloseOutcome::Closed { order, sale } | CloseOutcome::AlreadyClosed { order, sale } => {
                mirror_orders(
                    &self.ledger,
                    &self.store,
                    &sale,
                    std::slice::from_ref(&order),
                )
                .await;
                Ok(closed(order))
            }
            CloseOutcome::Paid(_) => Ok(CancelOutcome::Paid),
            // A cancellation is always due; this build's store does not answer it.
            CloseOutcome::NotDue(_) | CloseOutcome::Frozen(_) => Err(Away::Loading),
            CloseOutcome::NotFound => match self.order(sale, buyer, order).await? {
                None => Ok(CancelOutcome::NotFound),
                // It came into SQL in between, or is on its way: the next try finds it.
                Some(Found::Row(_) | Found::Reserved(_) | Found::MayBeQueued) => {
                    Ok(CancelOutcome::NotSettledYet)
                }
            },
        }
    }
}

fn closed(order: Order) -> CancelOutcome {
    if order.status == OrderStatus::Cancelled {
        CancelOutcome::Cancelled(Box::new(order))
    } else {
        CancelOutcome::Closed(Box::new(order))
    }
}

//! Money due back: refunding a paid order, and the list of what is to be returned.

use shared::domain::{Order, OrderId, OrderStatus, PaymentId, SaleId};
use shared::limits::ADMIN_PAGE_ROWS;
use shared::mirror::mirror_orders;
use shared::ports::{
    Actor, Clock, CloseOutcome, IdSource, OrderQueue, OrderStore, Refund, SaleStore, StockLedger,
    StoreResult,
};

use crate::{Admin, AdminError};

/// What became of a refund.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefundReply {
    /// Refunded, now or before; its payment is listed as due back.
    Refunded(Box<Order>),
    /// Closed otherwise.
    Closed(Box<Order>),
    /// Nobody has paid it.
    NotPaid(Box<Order>),
    /// SQL has no such order in this sale.
    NotFound,
}

impl<L, S, Q, C, I> Admin<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// `paid → refunded`, once. Done when SQL committed; what Redis hears of it is covered by reconcile.
    pub async fn refund(
        &self,
        sale: &SaleId,
        order: OrderId,
        actor: &Actor,
    ) -> Result<RefundReply, AdminError> {
        match self.store.refund(sale, order, actor).await? {
            CloseOutcome::Closed { order, sale } | CloseOutcome::AlreadyClosed { order, sale } => {
                let rows = std::slice::from_ref(&order);
                if order.released_epoch.is_none() {
                    mirror_orders(&self.ledger, &self.store, &sale, rows).await;
                }
                Ok(match order.status {
                    OrderStatus::Refunded => RefundReply::Refunded(Box::new(order)),
                    _ => RefundReply::Closed(Box::new(order)),
                })
            }
            CloseOutcome::NotDue(order)
            | CloseOutcome::Frozen(order)
            | CloseOutcome::Paid(order) => Ok(RefundReply::NotPaid(Box::new(order))),
            CloseOutcome::NotFound => Ok(RefundReply::NotFound),
        }
    }

    /// A page of refunds, oldest first, of a sale or of all; the next page is after the last one's payment.
    pub async fn refunds(
        &self,
        sale: Option<&SaleId>,
        due_only: bool,
        after: Option<&PaymentId>,
    ) -> StoreResult<Vec<Refund>> {
        self.store
            .refunds(sale, due_only, after, ADMIN_PAGE_ROWS)
            .await
    }
}

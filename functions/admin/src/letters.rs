//! Dead letters: shown with proof, and sent on their way again.
//!
//! SQL alone decides what a letter is; Redis is shown as further proof. Nothing here gives a unit back: a
//! letter that is dropped has a row already, and one that is sent again is settled like any other. So a
//! redrive may be repeated, cut off anywhere, or race with another one.

use std::collections::BTreeMap;
use std::error::Error;

use serde::Serialize;
use shared::domain::{Order, OrderId, OrderMessage, RecordState, SaleId, SaleStatus, UnixMillis};
use shared::limits::{DEAD_LETTERS_MAX, DEAD_LETTERS_MS, SQS_BATCH_MAX};
use shared::mirror::shard_of;
use shared::ports::{
    Actor, Clock, DeadLetter, DeadLetters, IdSource, OrderQueue, OrderStore, QueueName, SaleStore,
    StockLedger,
};

use crate::verdict::{Letter, Verdict, hint, verdict};
use crate::{Admin, AdminError};

/// What a look found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// The letters, all visible again.
    pub letters: Vec<Letter>,
    /// Whether there may be more.
    pub more: bool,
}

/// What a redrive did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Redriven {
    /// Sent to the order queue, which acknowledged them.
    pub sent: u64,
    /// Dropped: their order is in SQL, or reconcile does what they ask for.
    pub dropped: u64,
    /// Left where they are, since they cannot be settled.
    pub left: Vec<Letter>,
    /// Not acknowledged by the order queue; they stay and can be sent again.
    pub failed: u64,
    /// Whether there may be more to do: call again.
    pub more: bool,
}

impl<L, S, Q, C, I> Admin<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore,
    Q: OrderQueue + DeadLetters,
    C: Clock,
    I: IdSource,
{
    /// Shows what is there, and what a redrive would do with it.
    pub async fn dead_letters(&self, queue: QueueName) -> Result<Shown, AdminError> {
        let mut hidden = Vec::new();
        let looked = self.look_at_all(queue, &mut hidden).await;
        let judged = match &looked {
            Ok(_) => self.judge(queue, &hidden).await,
            Err(_) => Ok(Vec::new()),
        };
        self.show_again(queue, &hidden).await;
        let more = looked?;
        let mut letters = judged?;
        for letter in &mut letters {
            letter.record = self.record_of(letter).await;
        }
        Ok(Shown { letters, more })
    }

    /// Sends again what is to be settled and drops what is settled; what cannot be settled stays.
    pub async fn redrive(&self, queue: QueueName, actor: &Actor) -> Result<Redriven, AdminError> {
        let (mut report, mut kept) = (Redriven::default(), Vec::new());
        let until = self.clock.now().plus(DEAD_LETTERS_MS);
        let ended = loop {
            if kept.len() >= DEAD_LETTERS_MAX || self.clock.now() >= until || report.failed > 0 {
                report.more = true;
                break Ok(());
            }
            match self
                .redrive_page(queue, actor, until, &mut report, &mut kept)
                .await
            {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        self.show_again(queue, &kept).await;
        ended.map(|()| report)
    }

    /// Treats one page, as far as the time goes; returns how many letters it had.
    async fn redrive_page(
        &self,
        queue: QueueName,
        actor: &Actor,
        until: UnixMillis,
        report: &mut Redriven,
        kept: &mut Vec<DeadLetter>,
    ) -> Result<usize, AdminError> {
        let page = self.queue.look(queue, SQS_BATCH_MAX).await?;
        let judged = match self.judge(queue, &page).await {
            Ok(judged) => judged,
            Err(error) => {
                kept.extend(page);
                return Err(error);
            }
        };
        if let Err(error) = self.note_page(&judged, actor).await {
            kept.extend(page);
            return Err(error);
        }
        let count = page.len();
        for (letter, judged) in page.into_iter().zip(judged) {
            match (judged.verdict, judged.message()) {
                _ if report.failed > 0 || self.clock.now() >= until => kept.push(letter),
                (Verdict::ToSettle, Some(message)) => match self.queue.send_order(message).await {
                    Ok(()) => {
                        report.sent += 1;
                        self.delete(queue, &letter).await;
                    }
                    Err(error) => {
                        report.failed += 1;
                        let error = &error as &dyn Error;
                        tracing::warn!(order_id = %message.order_id, error, "dead letter not sent; it stays");
                        kept.push(letter);
                    }
                },
                (Verdict::Settled | Verdict::Void | Verdict::Hint, _) => {
                    report.dropped += 1;
                    self.delete(queue, &letter).await;
                }
                (Verdict::Stuck | Verdict::Unreadable | Verdict::ToSettle, _) => {
                    report.left.push(judged);
                    kept.push(letter);
                }
            }
        }
        Ok(count)
    }

    /// The audit of what is about to be done, per sale.
    async fn note_page(&self, judged: &[Letter], actor: &Actor) -> Result<(), AdminError> {
        let mut per_sale: BTreeMap<&SaleId, (Vec<OrderId>, Vec<OrderId>)> = BTreeMap::new();
        for letter in judged {
            let (Some(sale), Some(order)) = (&letter.sale_id, letter.order_id) else {
                continue;
            };
            match letter.verdict {
                Verdict::ToSettle => per_sale.entry(sale).or_default().0.push(order),
                Verdict::Settled | Verdict::Void | Verdict::Hint => {
                    per_sale.entry(sale).or_default().1.push(order);
                }
                Verdict::Stuck | Verdict::Unreadable => {}
            }
        }
        for (sale, (send, drop)) in per_sale {
            let what = serde_json::json!({ "send": send, "drop": drop });
            self.store
                .note(sale, actor, "dead_letters.redrive", &what)
                .await?;
        }
        Ok(())
    }

    /// Looks until nothing more shows itself; true when it stopped before that.
    pub(crate) async fn look_at_all(
        &self,
        queue: QueueName,
        hidden: &mut Vec<DeadLetter>,
    ) -> Result<bool, AdminError> {
        let until = self.clock.now().plus(DEAD_LETTERS_MS);
        loop {
            if hidden.len() >= DEAD_LETTERS_MAX || self.clock.now() >= until {
                return Ok(true);
            }
            let page = self.queue.look(queue, SQS_BATCH_MAX).await?;
            if page.is_empty() {
                return Ok(false);
            }
            hidden.extend(page);
        }
    }

    pub(crate) async fn show_again(&self, queue: QueueName, letters: &[DeadLetter]) {
        if letters.is_empty() {
            return;
        }
        if let Err(error) = self.queue.put_back(queue, letters).await {
            let error = &error as &dyn Error;
            tracing::warn!(
                error,
                "dead letters not put back; they show themselves in a minute"
            );
        }
    }

    /// One that is not deleted shows itself again, and is found settled then.
    async fn delete(&self, queue: QueueName, letter: &DeadLetter) {
        if let Err(error) = self.queue.delete_letter(queue, letter).await {
            let error = &error as &dyn Error;
            tracing::warn!(
                error,
                "a treated dead letter was not deleted; it shows itself again"
            );
        }
    }

    pub(crate) async fn judge(
        &self,
        queue: QueueName,
        letters: &[DeadLetter],
    ) -> Result<Vec<Letter>, AdminError> {
        if queue == QueueName::Expiries {
            return Ok(letters.iter().map(hint).collect());
        }
        let parsed: Vec<_> = letters
            .iter()
            .map(|letter| OrderMessage::from_json(&letter.body))
            .collect();
        let ids: Vec<OrderId> = parsed.iter().flatten().map(|m| m.order_id).collect();
        let rows: BTreeMap<OrderId, Order> = match ids.as_slice() {
            [] => BTreeMap::new(),
            ids => {
                let rows = self.store.orders(ids).await?;
                rows.into_iter().map(|row| (row.id, row)).collect()
            }
        };
        let mut sales: BTreeMap<SaleId, Option<SaleStatus>> = BTreeMap::new();
        for message in parsed.iter().flatten() {
            if !sales.contains_key(&message.sale_id) {
                let sale = self.store.sale(&message.sale_id).await?;
                sales.insert(message.sale_id.clone(), sale.map(|sale| sale.status));
            }
        }
        let judged = letters
            .iter()
            .zip(parsed)
            .map(|(letter, parsed)| match parsed {
                Ok(message) => {
                    let sale = sales.get(&message.sale_id).copied().flatten();
                    let row = rows.get(&message.order_id);
                    verdict(message, row, sale)
                }
                Err(error) => Letter::unreadable(&letter.body, &error),
            });
        Ok(judged.collect())
    }

    async fn record_of(&self, letter: &Letter) -> Option<&'static str> {
        let message = letter.message()?;
        if message.sale_id.is_queued() {
            return Some("none");
        }
        let sale = self.store.sale(&message.sale_id).await.ok()??;
        let shard = shard_of(&sale, message.buyer_id.home_shard(sale.plan.shards));
        Some(match self.ledger.record(&shard, &message.buyer_id).await {
            Ok(Some(record)) if record.order_id == message.order_id => match record.state {
                RecordState::Held => "held",
                RecordState::Confirmed => "confirmed",
                RecordState::Released => "released",
            },
            Ok(_) => "none",
            Err(_) => "unknown",
        })
    }
}

//! Dead letters: shown with proof, and sent on their way again.
//!
//! SQL alone decides what a letter is; Redis is shown as further proof. Nothing here gives a unit back: a
//! letter that is dropped has a row already, and one that is sent again is settled like any other. So a
//! redrive may be repeated, cut off anywhere, or race with another one.

use std::collections::BTreeMap;
use std::error::Error;

use serde::Serialize;
use shared::domain::{
    ExpiryMessage, Order, OrderId, OrderMessage, OrderStatus, RejectReason, SaleId, SaleStatus,
};
use shared::limits::{DEAD_LETTERS_MAX, DEAD_LETTERS_MS, SQS_BATCH_MAX};
use shared::ports::{
    Clock, DeadLetter, DeadLetters, IdSource, OrderQueue, OrderStore, QueueName, SaleStore, Shard,
    StockLedger,
};

use crate::{Admin, AdminError};

/// Characters of an unreadable body that are shown.
const EXCERPT_CHARS: usize = 200;

/// What a dead letter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// SQL does not have its order: send it again.
    ToSettle,
    /// SQL has its order, whatever became of it: drop it.
    Settled,
    /// Its order was voided: drop it.
    Void,
    /// A reminder to expire an order, which reconcile does without it: drop it.
    Hint,
    /// It can be read and not be settled; why says what is wrong. It stays.
    Stuck,
    /// No message of this build. It stays.
    Unreadable,
}

/// A dead letter with its proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Letter {
    /// What it is.
    pub verdict: Verdict,
    /// Whose, where it can be read.
    pub sale_id: Option<SaleId>,
    /// The order, where it can be read.
    pub order_id: Option<OrderId>,
    /// Units, for an order.
    pub quantity: Option<u32>,
    /// What is wrong, where it stays.
    pub why: Option<String>,
    /// The order's status in SQL; none where SQL lacks it.
    pub row: Option<OrderStatus>,
    /// Why SQL rejected it.
    pub reject_reason: Option<RejectReason>,
    /// The sale's state in SQL.
    pub sale_status: Option<SaleStatus>,
    /// What Redis has: `held`, `confirmed`, `released`, `none`, or `unknown` without an answer.
    pub record: Option<&'static str>,
    #[serde(skip)]
    message: Option<OrderMessage>,
}

impl Letter {
    fn bare(verdict: Verdict, why: Option<String>) -> Self {
        Self {
            verdict,
            sale_id: None,
            order_id: None,
            quantity: None,
            why,
            row: None,
            reject_reason: None,
            sale_status: None,
            record: None,
            message: None,
        }
    }

    fn unreadable(body: &str, error: &dyn Error) -> Self {
        let excerpt: String = body.chars().take(EXCERPT_CHARS).collect();
        Self::bare(Verdict::Unreadable, Some(format!("{error}: {excerpt}")))
    }

    pub(crate) fn message(&self) -> Option<&OrderMessage> {
        self.message.as_ref()
    }
}

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
    pub async fn redrive(
        &self,
        queue: QueueName,
        actor: &shared::ports::Actor,
    ) -> Result<Redriven, AdminError> {
        let (mut report, mut kept) = (Redriven::default(), Vec::new());
        let until = self.clock.now().plus(DEAD_LETTERS_MS);
        let ended = loop {
            if kept.len() >= DEAD_LETTERS_MAX || self.clock.now() >= until || report.failed > 0 {
                report.more = true;
                break Ok(());
            }
            match self
                .redrive_page(queue, actor, &mut report, &mut kept)
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

    /// Treats one page; returns how many letters it had.
    async fn redrive_page(
        &self,
        queue: QueueName,
        actor: &shared::ports::Actor,
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
                _ if report.failed > 0 => kept.push(letter),
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
    async fn note_page(
        &self,
        judged: &[Letter],
        actor: &shared::ports::Actor,
    ) -> Result<(), AdminError> {
        let mut per_sale: BTreeMap<&SaleId, (Vec<OrderId>, Vec<OrderId>)> = BTreeMap::new();
        for letter in judged {
            let (Some(sale), Some(order)) = (&letter.sale_id, letter.order_id) else {
                continue;
            };
            match letter.verdict {
                Verdict::ToSettle => per_sale.entry(sale).or_default().0.push(order),
                Verdict::Settled | Verdict::Void => {
                    per_sale.entry(sale).or_default().1.push(order);
                }
                Verdict::Hint | Verdict::Stuck | Verdict::Unreadable => {}
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
        let sale = self.store.sale(&message.sale_id).await.ok()??;
        let shard = Shard {
            sale_id: sale.id,
            index: message.buyer_id.home_shard(sale.plan.shards),
        };
        Some(match self.ledger.record(&shard, &message.buyer_id).await {
            Ok(Some(record)) if record.order_id == message.order_id => match record.state {
                shared::domain::RecordState::Held => "held",
                shared::domain::RecordState::Confirmed => "confirmed",
                shared::domain::RecordState::Released => "released",
            },
            Ok(_) => "none",
            Err(_) => "unknown",
        })
    }
}

fn hint(letter: &DeadLetter) -> Letter {
    match ExpiryMessage::from_json(&letter.body) {
        Ok(message) => Letter {
            sale_id: Some(message.sale_id),
            order_id: Some(message.order_id),
            ..Letter::bare(Verdict::Hint, None)
        },
        Err(error) => Letter::unreadable(&letter.body, &error),
    }
}

fn verdict(message: OrderMessage, row: Option<&Order>, sale: Option<SaleStatus>) -> Letter {
    let (verdict, why) = match (row, sale) {
        (Some(row), _) if row.sale_id != message.sale_id || row.buyer_id != message.buyer_id => (
            Verdict::Stuck,
            Some("its order is another buyer's or another sale's"),
        ),
        (Some(row), _) if row.reject_reason == Some(RejectReason::Void) => (Verdict::Void, None),
        (Some(_), _) => (Verdict::Settled, None),
        (None, None) => (Verdict::Stuck, Some("there is no such sale")),
        (None, Some(SaleStatus::Draft | SaleStatus::Approved)) => {
            (Verdict::Stuck, Some("its sale has not opened"))
        }
        (None, Some(_)) => (Verdict::ToSettle, None),
    };
    Letter {
        sale_id: Some(message.sale_id.clone()),
        order_id: Some(message.order_id),
        quantity: Some(message.quantity.get()),
        row: row.map(|row| row.status),
        reject_reason: row.and_then(|row| row.reject_reason),
        sale_status: sale,
        message: Some(message),
        ..Letter::bare(verdict, why.map(str::to_owned))
    }
}

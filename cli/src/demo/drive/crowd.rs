//! The crowd's stages: the rush, the second thoughts, and the sale of what came back.

use std::{
    collections::VecDeque,
    future::Future,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::task::JoinSet;

use super::Run;
use crate::{
    client::new_key,
    demo::{
        DemoError,
        crowd::{Buyer, Intent, Shop, Ticket, Visit},
        oddities::Oddity,
        verdict::Seen,
    },
};

/// Winners whose retry is tried.
const REPLAYS: usize = 5;

impl Run<'_> {
    /// Everybody at once. Those who want to pay do so as soon as they can.
    pub(super) async fn rush(
        &self,
        oddities: &mut Vec<Oddity>,
    ) -> Result<(Vec<Ticket>, VecDeque<Buyer>, Vec<String>), DemoError> {
        let buyers = (0..self.config.buyers)
            .map(|number| Buyer::new(number, self.keys))
            .collect::<Result<Vec<_>, _>>()?;
        let work = async {
            // First, while there is stock: sold out, nobody learns that he wants too much.
            oddities.extend(self.visitors().first_in_line().await?);
            let (tickets, disappointed, odd) = self.visit_all(buyers).await?;
            let remark = format!(
                "{} orders, {} heard sold out",
                tickets.len(),
                disappointed.len()
            );
            Ok::<_, DemoError>(((tickets, disappointed, odd), remark))
        };
        let name = format!("{} buyers rush in", self.config.buyers);
        self.progress.stage(&name, work).await
    }

    /// Lets buyers buy; payers pay. Faults of paying are found by the audit at the end.
    pub(super) async fn visit_all(
        &self,
        buyers: Vec<Buyer>,
    ) -> Result<(Vec<Ticket>, VecDeque<Buyer>, Vec<String>), DemoError> {
        let mut visits = JoinSet::new();
        for buyer in buyers {
            let shop = Arc::clone(&self.shop);
            visits.spawn(async move {
                let visit = shop.buy(buyer).await?;
                let mut fault = None;
                if let Visit::Won(ticket) = &visit
                    && ticket.buyer.intent == Intent::Pay
                {
                    fault = shop.pay(ticket).await?;
                }
                Ok::<_, DemoError>((visit, fault))
            });
        }
        let (mut tickets, mut disappointed, mut odd) = (Vec::new(), VecDeque::new(), Vec::new());
        while let Some(joined) = self.next_of(&mut visits).await {
            let (visit, fault) = joined?;
            odd.extend(fault);
            match visit {
                Visit::Won(ticket) => tickets.push(ticket),
                Visit::SoldOut(buyer) => disappointed.push_back(buyer),
                Visit::Odd(what) => odd.push(what),
            }
        }
        Ok((tickets, disappointed, odd))
    }

    /// The next finished task; shows the counts while waiting.
    pub(super) async fn next_of<T: 'static>(
        &self,
        tasks: &mut JoinSet<Result<T, DemoError>>,
    ) -> Option<Result<T, DemoError>> {
        loop {
            let next = tokio::time::timeout(Duration::from_millis(250), tasks.join_next()).await;
            if let Ok(joined) = next {
                return joined.map(|joined| joined.unwrap_or_else(|error| Err(error.into())));
            }
            let counters = &self.shop.counters;
            let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            self.progress.tick(&format!(
                "{} served · {} orders · {} paid",
                read(&counters.served),
                read(&counters.won),
                read(&counters.paid)
            ));
        }
    }

    /// Retries after sell-out, cancels, and the wait until the forgotten orders are expired.
    pub(super) async fn second_thoughts(
        &self,
        tickets: &mut [Ticket],
        seen: &mut Seen,
        oddities: &mut Vec<Oddity>,
    ) -> Result<(), DemoError> {
        self.replays(tickets, "after the sell-out", seen).await?;
        if let Some(ticket) = tickets.first() {
            oddities.push(self.visitors().nosy(ticket).await?);
        }
        let of = |intent| {
            tickets
                .iter()
                .filter(move |t| t.buyer.intent == intent)
                .cloned()
        };
        let (cancels, forgotten): (Vec<_>, Vec<_>) =
            (of(Intent::Cancel).collect(), of(Intent::Forget).collect());
        let cancelling = async {
            let faults = self
                .each(cancels.clone(), |shop, ticket| async move {
                    shop.settled(&ticket).await?;
                    shop.cancel(&ticket).await
                })
                .await?;
            let remark = format!("{} orders cancelled", cancels.len() - faults.len());
            Ok::<_, DemoError>((faults, remark))
        };
        let faults = self
            .progress
            .stage("some think again and cancel", cancelling)
            .await?;
        seen.lost.extend(faults);
        if let Some(ticket) = cancels.first() {
            oddities.push(self.visitors().reviver(ticket).await?);
        }
        let window_s = u32::try_from(self.config.payment_window_s).unwrap_or(u32::MAX);
        let looks = window_s.saturating_add(self.config.patience_s);
        let expiring = async {
            let count = forgotten.len();
            let open = self
                .each(forgotten, move |shop, ticket| async move {
                    // Another end than these is found by the audit.
                    let open = ["reserved", "awaiting_payment"];
                    let ended = |status: &str| !open.contains(&status);
                    let status = shop.status_when(&ticket, looks, ended).await?;
                    Ok((!ended(&status)).then_some(status))
                })
                .await?;
            let remark = format!("{} orders ran out of time", count - open.len());
            Ok::<_, DemoError>(((), remark))
        };
        self.progress.stage("others forget to pay", expiring).await
    }

    /// Does one thing with each ticket at once and collects the faults.
    pub(super) async fn each<F>(
        &self,
        tickets: Vec<Ticket>,
        act: impl Fn(Arc<Shop>, Ticket) -> F,
    ) -> Result<Vec<String>, DemoError>
    where
        F: Future<Output = Result<Option<String>, DemoError>> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        for ticket in tickets {
            tasks.spawn(act(Arc::clone(&self.shop), ticket));
        }
        let mut faults = Vec::new();
        while let Some(joined) = self.next_of(&mut tasks).await {
            faults.extend(joined?);
        }
        Ok(faults)
    }

    pub(super) async fn replays(
        &self,
        tickets: &[Ticket],
        when: &'static str,
        seen: &mut Seen,
    ) -> Result<(), DemoError> {
        let payers = tickets.iter().filter(|t| t.buyer.intent == Intent::Pay);
        let some: Vec<_> = payers.take(REPLAYS).cloned().collect();
        let faults = self
            .each(some, move |shop, ticket| async move {
                shop.replay(&ticket, when).await
            })
            .await?;
        seen.wrong_replays.extend(faults);
        Ok(())
    }

    /// Units came back: those who heard "sold out" try again, in order, until all units are paid.
    pub(super) async fn sell_again(
        &self,
        mut waiting: VecDeque<Buyer>,
        tickets: &[Ticket],
        seen: &mut Seen,
    ) -> Result<Vec<Ticket>, DemoError> {
        let kept = tickets.iter().filter(|t| t.buyer.intent == Intent::Pay);
        let kept: u32 = kept.map(|ticket| ticket.buyer.wants).sum();
        let mut free = self.config.stock.saturating_sub(kept);
        let returning = free;
        let work = async {
            let mut sold = Vec::new();
            for round in 0..=self.config.patience_s {
                let count = usize::try_from(free)
                    .unwrap_or(usize::MAX)
                    .min(waiting.len());
                if count == 0 {
                    break;
                }
                if round > 0 {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                let round_buyers = waiting.drain(..count).map(|buyer| Buyer {
                    wants: 1,
                    key: new_key(),
                    intent: Intent::Pay,
                    ..buyer
                });
                let (won, again, odd) = self.visit_all(round_buyers.collect()).await?;
                free -= u32::try_from(won.len()).unwrap_or(free).min(free);
                sold.extend(won);
                waiting.extend(again);
                seen.wrong_refusals.extend(odd);
            }
            let remark = format!("{} of {returning} returned units found a buyer", sold.len());
            Ok::<_, DemoError>((sold, remark))
        };
        self.progress
            .stage("the returned units are sold again", work)
            .await
    }
}

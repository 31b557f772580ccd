//! Drives a whole sale through the API, as operator, buyers and payment provider, stage by stage.

use std::{
    collections::VecDeque,
    future::Future,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use shared::{
    domain::{Currency, Money, Quantity, SaleId, ShardCount, Units},
    ports::{Clock, SystemClock},
};
use tokio::task::JoinSet;

use super::{
    DemoConfig, DemoError, Report,
    books::{open_findings, read_books},
    crowd::{Buyer, Counters, Intent, Shop, Ticket, Visit},
    observer::{Observer, StockProbe},
    oddities::{Oddity, Visitors},
    progress::Progress,
    verdict::{Books, Seen, judge},
};
use crate::{
    client::{Answer, Api, SaleAction, SaleBody, new_key},
    tokens::{LocalKeys, SCOPE_OPERATE},
};

/// From the plan to the opening: the early bird must come before, and the load be done.
const OPENS_IN_MS: u64 = 6_000;
/// From the plan to the planned end, which the operator's close comes before.
const CLOSES_IN_MS: u64 = 60 * 60 * 1_000;
/// Reconcile passes until nothing is found, at most.
const RECONCILE_PASSES: u32 = 5;
/// Winners whose retry is tried.
const REPLAYS: usize = 5;

/// Where a sale is driven.
#[derive(Debug, Clone)]
pub struct Target {
    /// The API.
    pub api: Api,
    /// Signs tokens that it accepts.
    pub keys: LocalKeys,
    /// The secret of its payment provider.
    pub payment_secret: String,
}

/// Drives one sale to its close and judges it.
pub async fn drive(
    target: &Target,
    config: &DemoConfig,
    probe: impl StockProbe,
    progress: &Progress,
) -> Result<Report, DemoError> {
    let run = Run::new(target, config, progress)?;
    let mut seen = Seen {
        stock: config.stock.into(),
        ..Seen::default()
    };
    let observer = Observer::start(probe, run.shop.sale.clone());
    let mut oddities = vec![run.open_sale().await?];
    let (mut tickets, disappointed, odd) = run.rush(&mut oddities).await?;
    seen.wrong_refusals.extend(odd);
    run.second_thoughts(&mut tickets, &mut seen, &mut oddities)
        .await?;
    let returned = run.sell_again(disappointed, &tickets, &mut seen).await?;
    tickets.extend(returned);
    run.reconcile().await?;
    oddities.push(run.close(&tickets, &mut seen).await?);
    let books = run.audit(&tickets, &mut seen).await?;
    let samples = observer.samples();
    let answers = run.shop.api.tally().lines();
    let forbidden = answers
        .iter()
        .filter(|line| line.code == "?" || matches!(line.status, 0 | 500 | 502 | 504));
    seen.forbidden_answers = forbidden
        .map(|line| {
            format!(
                "{} × {} {} {}",
                line.count, line.kind, line.status, line.code
            )
        })
        .collect();
    let wrong = oddities.iter().filter(|oddity| !oddity.right());
    seen.wrong_refusals
        .extend(wrong.map(|oddity| format!("{}: {}", oddity.attempt, oddity.got)));
    Ok(Report {
        sale: run.shop.sale.clone(),
        buyers: config.buyers,
        checks: judge(&seen, &books),
        seen,
        books,
        oddities,
        answers,
        samples,
        stages: progress.stages(),
        took: progress.elapsed(),
    })
}

struct Run<'a> {
    shop: Arc<Shop>,
    keys: &'a LocalKeys,
    operator: String,
    config: &'a DemoConfig,
    progress: &'a Progress,
}

impl<'a> Run<'a> {
    fn new(
        target: &'a Target,
        config: &'a DemoConfig,
        progress: &'a Progress,
    ) -> Result<Self, DemoError> {
        config.check()?;
        let id = format!("demo-{}", &new_key()[..8]);
        let shop = Shop {
            api: target.api.with_in_flight_max(config.concurrency),
            sale: SaleId::parse(&id)?,
            unit_price: Money {
                amount_minor: 9_900,
                currency: Currency::parse("CNY")?,
            },
            payment_secret: target.payment_secret.clone(),
            counters: Counters::default(),
        };
        Ok(Self {
            shop: Arc::new(shop),
            keys: &target.keys,
            operator: target
                .keys
                .token("operator", &[SCOPE_OPERATE], super::crowd::TOKEN_TTL_S)?,
            config,
            progress,
        })
    }

    fn visitors(&self) -> Visitors<'_> {
        Visitors {
            shop: &self.shop,
            keys: self.keys,
        }
    }

    /// Plan, approve, one early bird, preheat, and the wait for the opening.
    async fn open_sale(&self) -> Result<Oddity, DemoError> {
        let shop = &self.shop;
        let now = SystemClock.now();
        let opens_at = now.plus(OPENS_IN_MS);
        let body = SaleBody {
            sku: "phone-15-pro".to_owned(),
            name: "A phone that everybody wants".to_owned(),
            stock: Units::parse("stock", self.config.stock.into())?,
            unit_price: shop.unit_price,
            limit: Quantity::parse(2)?,
            opens_at: opens_at.to_rfc3339(),
            closes_at: now.plus(CLOSES_IN_MS).to_rfc3339(),
            payment_window_s: self.config.payment_window_s,
            shards: ShardCount::ONE,
        };
        let planning = async {
            let token = &self.operator;
            done(
                "plan the sale",
                &shop.api.plan_sale(&shop.sale, &body, token).await?,
            )?;
            self.act(SaleAction::Approve).await?;
            let early = self.visitors().early().await?;
            self.act(SaleAction::Preheat).await?;
            let remark = format!(
                "{} · {} units, at most 2 each",
                shop.sale, self.config.stock
            );
            Ok::<_, DemoError>((early, remark))
        };
        let early = self
            .progress
            .stage("plan, approve and load the sale", planning)
            .await?;
        let opening = async {
            let wait_ms = opens_at.since(SystemClock.now());
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            Ok::<_, DemoError>(((), "the doors open".to_owned()))
        };
        self.progress.stage("wait for the opening", opening).await?;
        Ok(early)
    }

    async fn act(&self, action: SaleAction) -> Result<(), DemoError> {
        let (api, sale) = (&self.shop.api, &self.shop.sale);
        let answer = api
            .sale_action(sale, action, "demo", &self.operator)
            .await?;
        done(&format!("{} the sale", action.as_str()), &answer)
    }

    /// Everybody at once. Those who want to pay do so as soon as they can.
    async fn rush(
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
    async fn visit_all(
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
    async fn next_of<T: 'static>(
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
    async fn second_thoughts(
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
    async fn each<F>(
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

    async fn replays(
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
    async fn sell_again(
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

    /// Compares the stores, and repairs, until nothing is found.
    async fn reconcile(&self) -> Result<(), DemoError> {
        let work = async {
            let mut found = 0;
            for pass in 1..=RECONCILE_PASSES {
                let (api, sale) = (&self.shop.api, &self.shop.sale);
                let answer = api.reconcile(sale, true, &self.operator).await?;
                done("reconcile", &answer)?;
                found = open_findings(api, sale, &self.operator).await?;
                if found == 0 {
                    return Ok::<_, DemoError>(((), format!("no difference (pass {pass})")));
                }
            }
            Ok(((), format!("{found} findings are left")))
        };
        self.progress.stage("both stores are compared", work).await
    }

    /// Closes the sale; winners still find their orders, newcomers do not get in.
    async fn close(&self, tickets: &[Ticket], seen: &mut Seen) -> Result<Oddity, DemoError> {
        let work = async {
            self.act(SaleAction::Close).await?;
            let before = seen.wrong_replays.len();
            self.replays(tickets, "after the close", seen).await?;
            let late = self.visitors().late().await?;
            let remark = match seen.wrong_replays.len() - before {
                0 => "winners' retries still find their orders".to_owned(),
                wrong => format!("{wrong} winners' retries found no order"),
            };
            Ok::<_, DemoError>((late, remark))
        };
        self.progress
            .stage("the operator closes the sale", work)
            .await
    }

    /// Looks at every acknowledged order once more, then reads the report.
    async fn audit(&self, tickets: &[Ticket], seen: &mut Seen) -> Result<Books, DemoError> {
        let work = async {
            let faults = self
                .each(tickets.to_vec(), |shop, ticket| async move {
                    let expected = match ticket.buyer.intent {
                        Intent::Pay => "paid",
                        Intent::Cancel => "cancelled",
                        Intent::Forget => "expired",
                    };
                    let status = shop.status_when(&ticket, 1, |_| true).await?;
                    let wrong = status != expected;
                    let name = &ticket.buyer.name;
                    Ok(wrong.then(|| format!("{name}: {status} instead of {expected}")))
                })
                .await?;
            let books = read_books(&self.shop.api, &self.shop.sale, &self.operator).await?;
            Ok::<_, DemoError>((
                (faults, books),
                format!("{} orders looked up", tickets.len()),
            ))
        };
        let (faults, books) = self
            .progress
            .stage("every order is looked up", work)
            .await?;
        seen.lost.extend(faults);
        let count = |intent| tickets.iter().filter(move |t| t.buyer.intent == intent);
        let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let orders: std::collections::BTreeSet<_> = tickets.iter().map(|t| t.order).collect();
        seen.acknowledged = number(orders.len());
        seen.paid = number(count(Intent::Pay).count());
        seen.paid_units = count(Intent::Pay).map(|t| u64::from(t.buyer.wants)).sum();
        seen.cancelled = number(count(Intent::Cancel).count());
        seen.expired = number(count(Intent::Forget).count());
        Ok(books)
    }
}

/// An operator's step that must succeed for the demo to go on.
fn done(step: &str, answer: &Answer) -> Result<(), DemoError> {
    if answer.ok() {
        Ok(())
    } else {
        Err(DemoError::Step {
            step: step.to_owned(),
            answer: format!(
                "{} {}: {}",
                answer.status,
                answer.code(),
                answer.explanation()
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::fake_api::{FakeApi, Fault};

    async fn report_of(fault: Fault) -> Report {
        let fake = FakeApi::start(fault).await;
        let target = Target {
            api: Api::new(&fake.base).unwrap(),
            keys: LocalKeys::generate().unwrap(),
            payment_secret: "secret".to_owned(),
        };
        let config = DemoConfig {
            buyers: 60,
            stock: 20,
            concurrency: 8,
            payment_window_s: 2,
            patience_s: 3,
        };
        drive(&target, &config, fake, &Progress::new(true))
            .await
            .unwrap()
    }

    async fn failed_checks(fault: Fault) -> Vec<&'static str> {
        let report = report_of(fault).await;
        let failed: Vec<_> = report
            .checks
            .iter()
            .filter(|c| !c.ok)
            .map(|c| c.name)
            .collect();
        assert_eq!(report.ok(), failed.is_empty(), "{}", report.render(false));
        failed
    }

    #[tokio::test]
    async fn a_right_sale_passes_and_its_report_shows_it() {
        let report = report_of(Fault::None).await;
        let text = report.render(false);
        assert!(report.ok(), "{text}");
        assert!(!text.contains('\x1b'), "no colours unless asked for");
        for part in [
            "20 units paid",
            "410 ended",
            "400 malformed",
            "Every number is right",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(
            report.samples.iter().any(|sample| sample.stock == 20),
            "{:?}",
            report.samples
        );
        assert!(
            report.seen.cancelled > 0 && report.seen.expired > 0,
            "{text}"
        );
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_again_under_the_same_key() {
        let report = report_of(Fault::Busy).await;
        assert!(report.ok(), "{}", report.render(false));
        assert!(report.answers.iter().any(|line| line.code == "busy"));
    }

    #[tokio::test]
    async fn each_wrong_sale_fails_where_it_is_wrong() {
        let (oversell, lost, stock_first, negative) = tokio::join!(
            failed_checks(Fault::Oversell),
            failed_checks(Fault::LoseOne),
            failed_checks(Fault::StockFirst),
            failed_checks(Fault::Negative),
        );
        assert!(
            oversell.contains(&"I1  Redis: stock + live + lent - debt = total"),
            "{oversell:?}"
        );
        assert!(lost.contains(&"lost"), "{lost:?}");
        assert!(
            stock_first.contains(&"retries find the same order"),
            "{stock_first:?}"
        );
        assert!(
            negative.contains(&"wrong attempts are refused"),
            "{negative:?}"
        );
    }
}

//! The operator's stages: opening, comparing, closing, and the last look at everything.

use std::time::Duration;

use shared::{
    domain::{Admission, Quantity, ShardCount, Units},
    ports::{Clock, SystemClock},
};

use super::Run;
use crate::{
    client::{Answer, ReconcileMode, SaleAction, SaleBody},
    demo::{
        DemoError,
        books::{open_findings, read_books},
        crowd::{Intent, Ticket},
        oddities::Oddity,
        verdict::{Books, Seen},
    },
};

/// From the plan to the opening: the early bird must come before, and the load be done.
const OPENS_IN_MS: u64 = 6_000;
/// From the plan to the planned end, which the operator's close comes before.
const CLOSES_IN_MS: u64 = 60 * 60 * 1_000;
/// Reconcile passes until nothing is found, at most.
const RECONCILE_PASSES: u32 = 5;

impl Run<'_> {
    /// Plan, approve, one early bird, preheat, and the wait for the opening.
    pub(super) async fn open_sale(&self) -> Result<Oddity, DemoError> {
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
            admission: Admission::Redis,
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

    pub(super) async fn act(&self, action: SaleAction) -> Result<(), DemoError> {
        let (api, sale) = (&self.shop.api, &self.shop.sale);
        let answer = api
            .sale_action(sale, action, "demo", &self.operator)
            .await?;
        done(&format!("{} the sale", action.as_str()), &answer)
    }

    /// Compares the stores, and repairs, until nothing is found.
    pub(super) async fn reconcile(&self) -> Result<(), DemoError> {
        let work = async {
            let mut found = 0;
            for pass in 1..=RECONCILE_PASSES {
                let (api, sale) = (&self.shop.api, &self.shop.sale);
                let answer = api
                    .reconcile(sale, ReconcileMode::Apply, "", &self.operator)
                    .await?;
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
    pub(super) async fn close(
        &self,
        tickets: &[Ticket],
        seen: &mut Seen,
    ) -> Result<Oddity, DemoError> {
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
    pub(super) async fn audit(
        &self,
        tickets: &[Ticket],
        seen: &mut Seen,
    ) -> Result<Books, DemoError> {
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

//! Drives a whole sale through the API, as operator, buyers and payment provider, stage by stage.

mod crowd;
mod operator;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use shared::domain::{Currency, Money, SaleId};

use super::{
    DemoConfig, DemoError, Report,
    crowd::{Counters, Shop},
    observer::{Observer, StockProbe},
    oddities::Visitors,
    progress::Progress,
    verdict::{Seen, judge},
};
use crate::{
    client::{Api, new_key},
    tokens::{LocalKeys, SCOPE_OPERATE},
};

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
}

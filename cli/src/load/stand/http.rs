//! An API over HTTP: the functions under `cargo lambda watch`, or one that runs already.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use shared::{
    domain::{Admission, Currency, Money, Quantity, SaleId, ShardCount, Units},
    ports::{Clock, IdSource, SystemClock, SystemIds},
};

use super::{Books, Drained, KEY, OpenSale, RedisUse, Stand};
use crate::{
    client::{Answer, Api, ClientError, Patience, SaleAction, SaleBody},
    demo::LocalStores,
    load::{Buyer, Heard, LoadError},
    tokens::{LocalKeys, SCOPE_OPERATE},
};

/// How long everything may take to get into SQL.
const SETTLED_WITHIN: Duration = Duration::from_mins(10);
const LOOK_EVERY: Duration = Duration::from_millis(200);
const TOKEN_TTL_S: u64 = 24 * 3_600;

/// The API, and an operator's token for it.
pub(in crate::load) struct OverHttp {
    /// For buyers: one attempt, since every answer is counted.
    buyers: Api,
    operator: Api,
    token: String,
    shards: ShardCount,
    /// Tells this run's sales from those of others on the same API.
    run: String,
    sales: AtomicU64,
    /// The private servers behind it, if they are.
    stores: Option<LocalStores>,
}

impl OverHttp {
    pub fn new(
        url: &str,
        keys: &LocalKeys,
        shards: ShardCount,
        stores: Option<LocalStores>,
    ) -> Result<Self, LoadError> {
        let operator = Api::new(url)?;
        Ok(Self {
            buyers: operator.with_patience(Patience::NONE),
            operator,
            token: keys.token("load-operator", &[SCOPE_OPERATE], TOKEN_TTL_S)?,
            shards,
            run: SystemIds.call_id().to_string(),
            sales: AtomicU64::new(0),
            stores,
        })
    }

    async fn act(&self, sale: &SaleId, action: SaleAction) -> Result<(), LoadError> {
        let reason = "a load test";
        let answer = self.operator.sale_action(sale, action, reason, &self.token);
        done(action.as_str(), &answer.await?)
    }

    async fn report(&self, sale: &SaleId) -> Result<Value, LoadError> {
        let answer = self.operator.sale_page(sale, "report", &self.token).await?;
        done("report", &answer)?;
        Ok(answer.body)
    }
}

fn done(what: &str, answer: &Answer) -> Result<(), LoadError> {
    if answer.ok() {
        Ok(())
    } else {
        let explained = answer.explanation();
        Err(LoadError::Wrong(format!("{what}: {explained}")))
    }
}

impl Stand for OverHttp {
    fn restart(&self) -> Result<(), LoadError> {
        Ok(())
    }

    async fn open(&self, stock: u64) -> Result<OpenSale, LoadError> {
        let number = self.sales.fetch_add(1, Ordering::Relaxed);
        let id = SaleId::parse(&format!("load-{}-{number}", self.run))?;
        let now = SystemClock.now();
        let body = SaleBody {
            sku: "SKU-1".to_owned(),
            name: "A phone".to_owned(),
            stock: Units::try_from(stock)?,
            unit_price: Money {
                amount_minor: 9_900,
                currency: Currency::parse("CNY")?,
            },
            limit: Quantity::parse(1)?,
            opens_at: now.minus(1_000).to_rfc3339(),
            closes_at: now.plus(24 * 3_600_000).to_rfc3339(),
            payment_window_s: 24 * 3_600,
            shards: self.shards,
            admission: Admission::Redis,
        };
        let planned = self.operator.plan_sale(&id, &body, &self.token).await?;
        done("plan", &planned)?;
        self.act(&id, SaleAction::Approve).await?;
        self.act(&id, SaleAction::Preheat).await?;
        OpenSale::new(id, stock)
    }

    async fn buy(&self, sale: &OpenSale, buyer: &Buyer) -> Heard {
        let call = self.buyers.buy(&sale.id, Some(&buyer.token), KEY, json!(1));
        match call.await {
            Ok(answer) => match (answer.status, answer.code()) {
                (202, _) if answer.replayed => Heard::Replayed,
                (202, _) => Heard::Won,
                (409, "sold_out") => Heard::Refused,
                (status, code) => Heard::Odd(format!("{status} {code}")),
            },
            Err(ClientError::NoAnswer { source, .. }) => Heard::Odd(format!("no answer: {source}")),
            Err(other) => Heard::Odd(other.to_string()),
        }
    }

    /// Somebody else settles; this waits until it is done.
    async fn drain(&self, sale: &OpenSale) -> Result<Drained, LoadError> {
        let began = Instant::now();
        while began.elapsed() < SETTLED_WITHIN {
            let report = self.report(&sale.id).await?;
            let orders = report["orders"]["awaiting_payment"].as_u64().unwrap_or(0);
            if report["at_rest"] == true && orders >= sale.won() {
                return Ok(Drained {
                    took: began.elapsed(),
                    ..Drained::default()
                });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let text = format!("{} is not settled after {SETTLED_WITHIN:?}", sale.id);
        Err(LoadError::Wrong(text))
    }

    async fn books(&self, sale: &OpenSale) -> Result<Books, LoadError> {
        let report = self.report(&sale.id).await?;
        let shards = report["shards"].as_array().cloned().unwrap_or_default();
        let sum = |of: fn(&Value) -> u64| shards.iter().map(of).sum();
        Ok(Books {
            records: sum(|shard| shard["records"].as_u64().unwrap_or(0)),
            outbox: sum(|shard| shard["outbox"].as_u64().unwrap_or(0)),
            stock: sum(|shard| shard["stock"].as_u64().unwrap_or(0)),
            orders: report["orders"]["awaiting_payment"].as_u64().unwrap_or(0),
            available: report["available"].as_u64().unwrap_or(0),
        })
    }

    async fn forget(&self, sale: &OpenSale) -> Result<(), LoadError> {
        self.act(&sale.id, SaleAction::Close).await
    }

    fn redis_use(&self) -> Result<Option<RedisUse>, LoadError> {
        let Some(stores) = &self.stores else {
            return Ok(None);
        };
        let info: String = stores.redis().command(redis::cmd("INFO").arg("cpu"))?;
        let value = |name: &str| {
            let mut lines = info.lines();
            let line = lines.find_map(|line| line.strip_prefix(&format!("{name}:")));
            line.and_then(|text| text.parse::<f64>().ok())
                .unwrap_or(0.0)
        };
        let cpu_s = value("used_cpu_sys") + value("used_cpu_user");
        Ok(Some(RedisUse {
            cpu_s,
            ..RedisUse::default()
        }))
    }

    fn must_drain(&self) -> bool {
        false
    }

    fn waiting(&self) -> Option<u64> {
        None
    }
}

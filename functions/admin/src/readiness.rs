//! Whether a sale is ready to sell: facts, each with what was seen.

use serde::Serialize;
use shared::domain::{Guard, Sale, SaleId, SaleStatus, UnixMillis};
use shared::limits::CLOCK_SKEW_MAX_MS;
use shared::loading::gate_of;
use shared::mirror::shard_of;
use shared::ports::{
    Clock, IdSource, LedgerError, OrderQueue, OrderStore, Registered, SaleStore, StockLedger,
};
use shared::routes::read_snapshot;
use shared::startup::chain;

use crate::{Admin, AdminError};

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// Which.
    pub name: &'static str,
    /// As it should be.
    pub ok: bool,
    /// What was seen.
    pub seen: String,
}

/// All facts of a sale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// The sale.
    pub sale_id: SaleId,
    /// Every fact is as it should be.
    pub ready: bool,
    /// The facts.
    pub facts: Vec<Fact>,
}

impl<L, S, Q, C, I> Admin<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// The facts of a sale; none when there is no such sale.
    pub async fn readiness(&self, id: &SaleId) -> Result<Option<Readiness>, AdminError> {
        let Some(sale) = self.store.sale(id).await? else {
            return Ok(None);
        };
        let mut facts = vec![fact(
            "open_in_sql",
            sale.status == SaleStatus::Open,
            sale.status.as_str(),
        )];
        if sale.is_queued() {
            // Its window goes by the clocks of functions, such as this one's.
            let sql = self.store.now().await?;
            facts.push(clocks(self.clock.now(), sql));
        } else {
            facts.push(self.clocks().await?);
            facts.push(self.registry(&sale).await);
            facts.push(self.route(&sale).await);
            self.shard_facts(&sale, &mut facts).await;
        }
        facts.push(match self.queue.order_depth().await {
            Ok(depth) => fact("queue_answers", true, format!("{} messages", depth.all())),
            Err(error) => fact("queue_answers", false, error.action),
        });
        Ok(Some(Readiness {
            sale_id: sale.id,
            ready: facts.iter().all(|fact| fact.ok),
            facts,
        }))
    }

    /// Windows are judged by Redis, deadlines of payment by SQL.
    async fn clocks(&self) -> Result<Fact, AdminError> {
        let sql = self.store.now().await?;
        Ok(match self.ledger.ping().await {
            Ok(redis) => clocks(redis, sql),
            Err(error) => away("clocks_agree", &error),
        })
    }

    async fn registry(&self, sale: &Sale) -> Fact {
        match self.ledger.registered(&sale.id).await {
            Ok(Registered::Listed(entry)) => fact(
                "registry_equal",
                entry.status == sale.status,
                entry.status.as_str(),
            ),
            Ok(Registered::Unlisted) => fact("registry_equal", false, "not listed"),
            Ok(Registered::NoRegistry) => fact("registry_equal", false, "no registry"),
            Err(error) => away("registry_equal", &error),
        }
    }

    async fn route(&self, sale: &Sale) -> Fact {
        match self.ledger.read_route(&sale.id).await {
            Ok(reading) => {
                let seen = reading.route.map_or("no route".to_owned(), |route| {
                    format!("epoch {}, {} shards", route.epoch.get(), route.shards.get())
                });
                fact("route_equal", reading.route == Some(sale.route()), seen)
            }
            Err(error) => away("route_equal", &error),
        }
    }

    async fn shard_facts(&self, sale: &Sale, facts: &mut Vec<Fact>) {
        let gate = gate_of(sale);
        for index in sale.plan.shards.indexes() {
            let shard = match read_snapshot(&self.ledger, &shard_of(sale, index)).await {
                Ok(shard) => shard,
                Err(LedgerError::NotLoaded) => {
                    facts.push(fact(
                        "shard_loaded",
                        false,
                        format!("shard {} is not", index.get()),
                    ));
                    continue;
                }
                Err(error) => {
                    facts.push(away("shard_loaded", &error));
                    continue;
                }
            };
            let number = index.get();
            facts.push(fact(
                "shard_loaded",
                shard.epoch == sale.epoch,
                format!("shard {number}: epoch {}", shard.epoch.get()),
            ));
            facts.push(fact(
                "no_guard",
                shard.guard == Guard::None,
                format!("shard {number}: {:?}", shard.guard),
            ));
            let equal = shard.gate == gate.gate && shard.terms == gate.terms;
            facts.push(fact(
                "gate_equal",
                equal,
                format!(
                    "shard {number}: {:?}, version {} (SQL: {})",
                    shard.gate,
                    shard.gate_version.get(),
                    sale.version.get()
                ),
            ));
        }
    }
}

fn clocks(one: UnixMillis, other: UnixMillis) -> Fact {
    let skew = one.since(other).max(other.since(one));
    fact(
        "clocks_agree",
        skew <= CLOCK_SKEW_MAX_MS,
        format!("{skew} ms apart"),
    )
}

fn fact(name: &'static str, ok: bool, seen: impl Into<String>) -> Fact {
    Fact {
        name,
        ok,
        seen: seen.into(),
    }
}

/// The answer itself says only that; the log says why.
fn away(name: &'static str, error: &LedgerError) -> Fact {
    tracing::warn!(fact = name, error = %chain(error), "a fact of readiness could not be read");
    fact(name, false, "Redis did not answer")
}

//! The exact count at the end of a drill.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use shared::domain::{OrderId, OrderStatus, SaleStatus};
use shared::invariants::invariants;
use shared::ports::{OrderStore, SaleStore};
use tokio::time::sleep;

use super::crowd::{Crowd, lock};
use super::shop::{Shop, sale_id};

/// All must be at rest and exact after this.
const REST_MAX: Duration = Duration::from_secs(30);

/// One drill's line.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name.
    pub name: &'static str,
    /// Calls of buyers.
    pub requests: u64,
    /// Buyers told 202.
    pub won: usize,
    /// Live orders at the end.
    pub orders: usize,
    /// Live units beyond the stock.
    pub oversold: u64,
    /// Buyers told 202 whose order was refused by SQL.
    pub lost: usize,
    /// Of those and of later ones, how many this drill allows.
    pub lost_max: usize,
    /// From the fault to the first final answer of a call begun after it.
    pub selling: Duration,
    /// From the fault to the exact count.
    pub exact: Duration,
    /// Longest time for which a 202 was believed that did not hold.
    pub believed: Duration,
    /// What is off; empty when nothing is.
    pub off: Vec<String>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.off.is_empty() {
            "exact".to_owned()
        } else {
            format!("OFF: {}", self.off.join("; "))
        };
        write!(
            f,
            "{:<16} {:>8} {:>6} {:>6} {:>8} {:>4} of {:>4} {:>8.2}s {:>8.2}s {:>8.2}s  {verdict}",
            self.name,
            self.requests,
            self.won,
            self.orders,
            self.oversold,
            self.lost,
            self.lost_max,
            self.selling.as_secs_f64(),
            self.exact.as_secs_f64(),
            self.believed.as_secs_f64(),
        )
    }
}

impl Line {
    /// The heading over the lines.
    #[must_use]
    pub fn heading() -> String {
        format!(
            "{:<16} {:>8} {:>6} {:>6} {:>8} {:>12} {:>9} {:>9} {:>9}  verdict",
            "drill",
            "requests",
            "won",
            "orders",
            "oversold",
            "lost",
            "selling",
            "exact",
            "believed"
        )
    }
}

/// Waits for rest, then counts. `lost_max`: 202s that may have been refused in the end.
pub async fn judge(
    name: &'static str,
    shop: &Arc<Shop>,
    crowd: &Arc<Crowd>,
    fault: Instant,
    lost_max: usize,
) -> Line {
    let mut off = wait_for_rest(shop).await;
    // What came back after the crowd was told "sold out" must be for sale, and no more than that.
    let mut late = crowd.enter(shop, "late", 40);
    while let Some(ended) = late.join_next().await {
        ended.unwrap();
    }
    off.extend(wait_for_rest(shop).await);
    let exact = fault.elapsed();

    let won: Vec<(OrderId, Instant)> = lock(&crowd.told)
        .values()
        .filter_map(|told| Some((told.won?, told.at)))
        .collect();
    let mut lost = Vec::new();
    let now = (Instant::now(), shop.store.now().await.unwrap());
    for part in won.chunks(500) {
        let ids: Vec<OrderId> = part.iter().map(|(id, _)| *id).collect();
        let rows = shop.store.orders(&ids).await.unwrap();
        for (id, told_at) in part {
            match rows.iter().find(|row| row.id == *id) {
                // A drill that gives back cancels one.
                Some(row) if row.status.is_live() || row.status == OrderStatus::Cancelled => {}
                Some(row) if row.status == OrderStatus::Rejected => {
                    let ago = Duration::from_millis(now.1.since(row.settled_at));
                    let refused_at = now.0.checked_sub(ago).unwrap_or(*told_at);
                    lost.push(refused_at.saturating_duration_since(*told_at));
                }
                Some(row) => off.push(format!("order {id} is {:?}", row.status)),
                None => off.push(format!("order {id} does not exist")),
            }
        }
    }
    let sums = shop.store.sums(&sale_id()).await.unwrap().unwrap();
    let orders: u64 = sums.live_units;
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            off.push(what.to_owned());
        }
    };
    expect(
        lost.len() <= lost_max,
        "more 202s were refused than the bound",
    );
    expect(orders == shop.stock, "sold is not the stock");
    expect(sums.sale.available.get() == 0, "units are left");
    let impatient = crowd.lost_patience.load(Ordering::SeqCst);
    expect(impatient == 0, "a buyer never knew");
    off.truncate(6);
    Line {
        name,
        requests: crowd.requests.load(Ordering::SeqCst),
        won: won.len(),
        orders: usize::try_from(orders).unwrap_or(usize::MAX),
        oversold: orders.saturating_sub(shop.stock),
        lost: lost.len(),
        lost_max,
        selling: crowd.first_answer_after(fault).unwrap_or(exact),
        exact,
        believed: lost.into_iter().max().unwrap_or_default(),
        off,
    }
}

/// Waits until the queue is empty, every identity holds and nobody finds anything; what is left otherwise.
async fn wait_for_rest(shop: &Arc<Shop>) -> Vec<String> {
    let deadline = Instant::now() + REST_MAX;
    loop {
        let left = unrest(shop).await;
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

async fn unrest(shop: &Arc<Shop>) -> Vec<String> {
    if shop.queue.orders() > 0 {
        return vec![format!("{} order messages", shop.queue.orders())];
    }
    match shop.store.sale(&sale_id()).await {
        Ok(Some(sale)) if sale.status == SaleStatus::Open => {}
        other => {
            return vec![format!(
                "the sale: {:?}",
                other.map(|sale| sale.map(|s| s.status))
            )];
        }
    }
    let violations = match invariants(&shop.ledger, &shop.store, &sale_id()).await {
        Ok(violations) => violations,
        Err(error) => return vec![error.to_string()],
    };
    if !violations.is_empty() {
        return violations.iter().map(ToString::to_string).take(5).collect();
    }
    match shop.reconcile().plan(&sale_id(), 5).await {
        Ok(findings) => findings.iter().map(reconcile::Finding::subject).collect(),
        Err(error) => vec![error.to_string()],
    }
}

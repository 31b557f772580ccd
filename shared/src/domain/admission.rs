//! Who admits a sale's buyers: Redis, or SQL alone behind the queue.
//!
//! The sale's id says it, from the moment when the sale is created. So every function knows it without a look
//! anywhere, nothing can change it, and no outage can turn one kind into the other.

use serde::{Deserialize, Serialize};

use super::{ParseError, Quantity, RejectReason, Sale, SaleId, SaleStatus, UnixMillis};

/// What the id of every queued sale begins with, and no other's.
pub const QUEUED_PREFIX: &str = "queued-";

/// Who admits buyers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Admission {
    /// Redis, at once: a buyer hears whether she has units.
    #[default]
    Redis,
    /// SQL, when `settle` treats her request: a buyer hears that it is queued, and reads what became of it.
    Queue,
}

impl Admission {
    /// Its name in SQL and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Queue => "queue",
        }
    }

    /// The kind with this name.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        [Self::Redis, Self::Queue]
            .into_iter()
            .find(|admission| admission.as_str() == text)
            .ok_or_else(|| ParseError::got("admission", text, "redis or queue"))
    }

    /// Checks what an operator asks for against the sale's id: the two must say the same.
    pub fn check(self, id: &SaleId) -> Result<(), ParseError> {
        if id.admission() == self {
            return Ok(());
        }
        let expected = match self {
            Self::Redis => "admission \"queue\" for a sale whose id begins with queued-",
            Self::Queue => "a sale whose id begins with queued-, or admission \"redis\"",
        };
        let problem = format!("\"{}\" does not go with the id {id}", self.as_str());
        Err(ParseError::new("admission", problem, expected))
    }
}

impl SaleId {
    /// Who admits this sale's buyers.
    #[must_use]
    pub fn admission(&self) -> Admission {
        if self.as_str().starts_with(QUEUED_PREFIX) {
            Admission::Queue
        } else {
            Admission::Redis
        }
    }

    /// Whether SQL alone decides; then nothing of the sale is in Redis.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.admission() == Admission::Queue
    }
}

impl Sale {
    /// Whether SQL alone decides; then nothing of the sale is in Redis.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.id.is_queued()
    }

    /// Takes a new state at `now`. A queued sale notes since when it takes no more requests: no gate in Redis
    /// does that for it.
    pub fn enter(&mut self, status: SaleStatus, now: UnixMillis) {
        self.status = status;
        if self.is_queued() {
            self.stopped_at = match status {
                SaleStatus::Draft | SaleStatus::Approved | SaleStatus::Open => None,
                SaleStatus::Suspended
                | SaleStatus::Closed
                | SaleStatus::Settled
                | SaleStatus::Withdrawn => self.stopped_at.or(Some(now)),
            };
        }
    }

    /// Why a queued sale refuses a request whatever else there is, or none. What counts is when `deduct`
    /// received it, so that nobody loses her place to a slow queue; what it may still become is the state's now.
    #[must_use]
    pub fn refuses(&self, received_at: UnixMillis, quantity: Quantity) -> Option<RejectReason> {
        let terms = self.plan.terms;
        let stopped = self.stopped_at.is_some_and(|at| received_at >= at);
        match self.status {
            SaleStatus::Draft | SaleStatus::Approved => Some(RejectReason::NotOpen),
            SaleStatus::Settled | SaleStatus::Withdrawn => Some(RejectReason::SaleOver),
            _ if received_at < terms.opens_at => Some(RejectReason::NotOpen),
            _ if received_at >= terms.closes_at => Some(RejectReason::SaleOver),
            SaleStatus::Suspended if stopped => Some(RejectReason::Paused),
            SaleStatus::Closed if stopped => Some(RejectReason::SaleOver),
            _ if quantity > terms.limit => Some(RejectReason::OverLimit),
            SaleStatus::Open | SaleStatus::Suspended | SaleStatus::Closed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Currency, Epoch, Money, SalePlan, ShardCount, Terms, Units, Version};

    fn sale() -> Sale {
        let units = Units::parse("stock", 10).unwrap();
        Sale {
            id: SaleId::parse("queued-a").unwrap(),
            plan: SalePlan {
                sku: "sku".into(),
                name: "name".into(),
                stock: units,
                unit_price: Money {
                    amount_minor: 1,
                    currency: Currency::parse("CNY").unwrap(),
                },
                terms: Terms {
                    limit: Quantity::parse(2).unwrap(),
                    opens_at: UnixMillis::new(100),
                    closes_at: UnixMillis::new(200),
                },
                payment_window_s: 60,
                shards: ShardCount::ONE,
            },
            status: SaleStatus::Open,
            version: Version::new(1),
            epoch: Epoch::default(),
            total: units,
            available: units,
            expiry_frozen_since: None,
            stopped_at: None,
        }
    }

    #[test]
    fn the_id_alone_says_who_admits_and_a_plan_must_say_the_same() {
        for (id, admission) in [
            ("queued-a", Admission::Queue),
            ("queued", Admission::Redis),
            ("a-queued-b", Admission::Redis),
        ] {
            let id = SaleId::parse(id).unwrap();
            assert_eq!(id.admission(), admission);
            assert_eq!(admission.check(&id), Ok(()));
            let other = match admission {
                Admission::Redis => Admission::Queue,
                Admission::Queue => Admission::Redis,
            };
            assert_eq!(other.check(&id).unwrap_err().field, "admission");
        }
    }

    #[test]
    fn the_moment_of_receipt_counts_against_window_and_stops() {
        let ask = |sale: &Sale, at, units| {
            sale.refuses(UnixMillis::new(at), Quantity::parse(units).unwrap())
        };
        let mut sale = sale();
        assert_eq!(ask(&sale, 99, 1), Some(RejectReason::NotOpen));
        assert_eq!(ask(&sale, 100, 2), None);
        assert_eq!(ask(&sale, 100, 3), Some(RejectReason::OverLimit));
        assert_eq!(ask(&sale, 200, 1), Some(RejectReason::SaleOver));
        sale.enter(SaleStatus::Suspended, UnixMillis::new(150));
        assert_eq!(ask(&sale, 149, 1), None);
        assert_eq!(ask(&sale, 150, 1), Some(RejectReason::Paused));
        // Closed while it was suspended: what came meanwhile stays refused.
        sale.enter(SaleStatus::Closed, UnixMillis::new(180));
        assert_eq!(ask(&sale, 149, 1), None);
        assert_eq!(ask(&sale, 150, 1), Some(RejectReason::SaleOver));
        sale.enter(SaleStatus::Settled, UnixMillis::new(190));
        assert_eq!(ask(&sale, 149, 1), Some(RejectReason::SaleOver));
        sale.enter(SaleStatus::Open, UnixMillis::new(195));
        assert_eq!(ask(&sale, 150, 1), None);
        for status in [SaleStatus::Draft, SaleStatus::Approved] {
            sale.enter(status, UnixMillis::new(195));
            assert_eq!(ask(&sale, 150, 1), Some(RejectReason::NotOpen));
        }
    }
}

//! WATCH, MULTI, EXEC: take what was read, unless it changed meanwhile; then again.

use std::time::Duration;

use redis::{Script, aio::MultiplexedConnection};
use shared::ports::{IdSource, SystemIds};

use super::{
    CompareError, Inventory, Reduced,
    inventory::Books,
    scripted::{OWNERS, STOCK, books, connect, fill, give_back, give_back_script},
};

/// Tries before a buyer is told to come back.
const TRIES: u32 = 1_000;
/// Longest pause after a lost race, in microseconds; all at once would lose it again.
const PAUSE_MAX_US: u64 = 2_000;

/// A watch belongs to its connection, so each lane has one.
pub struct Watch {
    lanes: Vec<MultiplexedConnection>,
    give: Script,
}

impl Watch {
    /// Connects each lane.
    pub async fn connect(url: &str, lanes: usize) -> Result<Self, CompareError> {
        let mut connections = Vec::with_capacity(lanes);
        for _ in 0..lanes {
            connections.push(connect(url).await?);
        }
        Ok(Self {
            lanes: connections,
            give: give_back_script(),
        })
    }

    /// One try; none when somebody else was quicker.
    async fn once(
        connection: &mut MultiplexedConnection,
        buyer: u64,
    ) -> Result<Option<Reduced>, CompareError> {
        let (_, left, mine): (String, i64, bool) = redis::pipe()
            .cmd("WATCH")
            .arg(STOCK)
            .cmd("GET")
            .arg(STOCK)
            .cmd("SISMEMBER")
            .arg(OWNERS)
            .arg(buyer)
            .query_async(connection)
            .await?;
        if mine || left < 1 {
            redis::cmd("UNWATCH").query_async::<()>(connection).await?;
            let answer = if mine {
                Reduced::Again
            } else {
                Reduced::SoldOut
            };
            return Ok(Some(answer));
        }
        let done: Option<(i64, i64)> = redis::pipe()
            .atomic()
            .cmd("DECRBY")
            .arg(STOCK)
            .arg(1)
            .cmd("SADD")
            .arg(OWNERS)
            .arg(buyer)
            .query_async(connection)
            .await?;
        Ok(done.map(|_| Reduced::Won))
    }
}

impl Inventory for Watch {
    async fn init(&self, stock: u64) -> Result<(), CompareError> {
        fill(self.lanes[0].clone(), stock).await
    }

    async fn reduce(&self, lane: usize, buyer: u64) -> Result<Reduced, CompareError> {
        let mut connection = self.lanes[lane].clone();
        for _ in 0..TRIES {
            if let Some(answer) = Self::once(&mut connection, buyer).await? {
                return Ok(answer);
            }
            let pause = Duration::from_micros(SystemIds.jitter(PAUSE_MAX_US));
            tokio::time::sleep(pause).await;
        }
        Ok(Reduced::GaveUp)
    }

    async fn give_back(&self, lane: usize, buyer: u64) -> Result<bool, CompareError> {
        give_back(&self.give, self.lanes[lane].clone(), buyer).await
    }

    async fn get(&self) -> Result<Books, CompareError> {
        books(self.lanes[0].clone()).await
    }
}

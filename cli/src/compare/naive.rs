//! Read, then write: the stock that many callers read is the same, and each writes one less.

use redis::aio::MultiplexedConnection;

use super::{
    CompareError, Inventory, Reduced,
    inventory::Books,
    scripted::{OWNERS, STOCK, books, connect, fill},
};

/// Plain commands and nothing around them.
pub struct Naive {
    connection: MultiplexedConnection,
}

impl Naive {
    /// Connects.
    pub async fn connect(url: &str) -> Result<Self, CompareError> {
        Ok(Self {
            connection: connect(url).await?,
        })
    }

    async fn run<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, CompareError> {
        Ok(command.query_async(&mut self.connection.clone()).await?)
    }

    async fn left(&self) -> Result<i64, CompareError> {
        self.run(redis::cmd("GET").arg(STOCK)).await
    }
}

impl Inventory for Naive {
    async fn init(&self, stock: u64) -> Result<(), CompareError> {
        fill(self.connection.clone(), stock).await
    }

    async fn reduce(&self, _lane: usize, buyer: u64) -> Result<Reduced, CompareError> {
        let mine: bool = self
            .run(redis::cmd("SISMEMBER").arg(OWNERS).arg(buyer))
            .await?;
        if mine {
            return Ok(Reduced::Again);
        }
        let left = self.left().await?;
        if left < 1 {
            return Ok(Reduced::SoldOut);
        }
        self.run::<()>(redis::cmd("SET").arg(STOCK).arg(left - 1))
            .await?;
        self.run::<()>(redis::cmd("SADD").arg(OWNERS).arg(buyer))
            .await?;
        Ok(Reduced::Won)
    }

    async fn give_back(&self, _lane: usize, buyer: u64) -> Result<bool, CompareError> {
        let left = self.left().await?;
        self.run::<()>(redis::cmd("SET").arg(STOCK).arg(left + 1))
            .await?;
        self.run(redis::cmd("SREM").arg(OWNERS).arg(buyer)).await
    }

    async fn get(&self) -> Result<Books, CompareError> {
        books(self.connection.clone()).await
    }
}

//! The yardstick: the least that a script must do to sell a stock.

use redis::{AsyncCommands, RedisResult, Script, aio::MultiplexedConnection};

const STOCK: &str = "minimal:{sale}:stock";
const BUYERS: &str = "minimal:{sale}:buyers";

/// A sale by the minimal script; clones share the connection.
#[derive(Clone)]
pub struct Minimal {
    connection: MultiplexedConnection,
    script: Script,
}

impl std::fmt::Debug for Minimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Minimal").finish_non_exhaustive()
    }
}

impl Minimal {
    /// A sale of `stock` units on this server, in place of an earlier one.
    pub async fn open(mut connection: MultiplexedConnection, stock: u64) -> RedisResult<Self> {
        let (): () = redis::pipe()
            .atomic()
            .unlink(BUYERS)
            .set(STOCK, stock)
            .query_async(&mut connection)
            .await?;
        let script = Script::new(include_str!("minimal.lua"));
        script.prepare_invoke().load_async(&mut connection).await?;
        Ok(Self { connection, script })
    }

    /// One unit for a buyer: 1 taken, 0 sold out, -1 bought before.
    pub async fn take(&self, buyer: &str) -> RedisResult<i64> {
        let mut call = self.script.prepare_invoke();
        call.key(STOCK).key(BUYERS).arg(buyer).arg("1");
        call.invoke_async(&mut self.connection.clone()).await
    }

    /// Free units, and how many have bought.
    pub async fn counts(&self) -> RedisResult<(u64, u64)> {
        let mut connection = self.connection.clone();
        Ok((
            connection.get(STOCK).await?,
            connection.scard(BUYERS).await?,
        ))
    }
}

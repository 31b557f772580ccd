//! The yardstick: the least that a script must do to sell a stock.

use redis::{AsyncCommands, Cmd, RedisResult, Script, aio::MultiplexedConnection};

const STOCK: &str = "minimal:{sale}:stock";
const BUYERS: &str = "minimal:{sale}:buyers";

/// A sale by the minimal script.
#[derive(Debug, Clone)]
pub struct Minimal {
    hash: String,
}

impl Minimal {
    /// A sale of `stock` units on this server, in place of an earlier one.
    pub async fn open(connection: &mut MultiplexedConnection, stock: u64) -> RedisResult<Self> {
        let (): () = redis::pipe()
            .atomic()
            .unlink(BUYERS)
            .ignore()
            .set(STOCK, stock)
            .ignore()
            .query_async(connection)
            .await?;
        let script = Script::new(include_str!("minimal.lua"));
        let hash = script.prepare_invoke().load_async(connection).await?;
        Ok(Self { hash })
    }

    /// One unit for a buyer. The answer is 1 taken, 0 sold out, or -1 bought before.
    #[must_use]
    pub fn command(&self, buyer: &str) -> Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.hash).arg(2).arg(STOCK).arg(BUYERS);
        cmd.arg(buyer).arg("1");
        cmd
    }

    /// Free units, and how many have bought.
    pub async fn counts(connection: &mut MultiplexedConnection) -> RedisResult<(u64, u64)> {
        Ok((
            connection.get(STOCK).await?,
            connection.scard(BUYERS).await?,
        ))
    }
}

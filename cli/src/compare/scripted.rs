//! The minimal script that many articles show: check and decrement in one step, and remember the buyer.

use redis::{Script, aio::MultiplexedConnection};

use super::{CompareError, Inventory, Reduced, inventory::Books};

/// KEYS stock, owners; ARGV buyer, units. 1 won, 2 again, 0 sold out.
pub const MINIMAL: &str = include_str!("minimal.lua");

/// Takes a member out and puts a unit back, once.
const GIVE_BACK: &str = "\
if redis.call('SREM', KEYS[2], ARGV[1]) == 1 then
  redis.call('INCRBY', KEYS[1], ARGV[2])
  return 1
end
return 0";

pub(super) const STOCK: &str = "{compare}:stock";
pub(super) const OWNERS: &str = "{compare}:owners";

/// The minimal script on one connection.
pub struct Minimal {
    connection: MultiplexedConnection,
    take: Script,
    give: Script,
}

impl Minimal {
    /// Connects.
    pub async fn connect(url: &str) -> Result<Self, CompareError> {
        Ok(Self {
            connection: connect(url).await?,
            take: Script::new(MINIMAL),
            give: Script::new(GIVE_BACK),
        })
    }
}

/// A connection of its own.
pub(super) async fn connect(url: &str) -> Result<MultiplexedConnection, CompareError> {
    let client = redis::Client::open(url)?;
    Ok(client.get_multiplexed_async_connection().await?)
}

/// Fills the two keys.
pub(super) async fn fill(
    mut connection: MultiplexedConnection,
    stock: u64,
) -> Result<(), CompareError> {
    let set = redis::cmd("SET").arg(STOCK).arg(stock).to_owned();
    Ok(set.query_async(&mut connection).await?)
}

/// Gives back by script, once per buyer.
pub(super) async fn give_back(
    script: &Script,
    mut connection: MultiplexedConnection,
    buyer: u64,
) -> Result<bool, CompareError> {
    let mut call = script.key(STOCK);
    call.key(OWNERS).arg(buyer).arg(1);
    Ok(call.invoke_async::<i64>(&mut connection).await? == 1)
}

/// The script that [`give_back`] runs.
pub(super) fn give_back_script() -> Script {
    Script::new(GIVE_BACK)
}

/// Reads both keys.
pub(super) async fn books(mut connection: MultiplexedConnection) -> Result<Books, CompareError> {
    let (left, owners) = redis::pipe()
        .cmd("GET")
        .arg(STOCK)
        .cmd("SCARD")
        .arg(OWNERS)
        .query_async(&mut connection)
        .await?;
    Ok(Books { left, owners })
}

impl Inventory for Minimal {
    async fn init(&self, stock: u64) -> Result<(), CompareError> {
        fill(self.connection.clone(), stock).await
    }

    async fn reduce(&self, _lane: usize, buyer: u64) -> Result<Reduced, CompareError> {
        let mut call = self.take.key(STOCK);
        call.key(OWNERS).arg(buyer).arg(1);
        let mut connection = self.connection.clone();
        match call.invoke_async::<i64>(&mut connection).await? {
            1 => Ok(Reduced::Won),
            2 => Ok(Reduced::Again),
            0 => Ok(Reduced::SoldOut),
            other => Err(CompareError::Unexpected(format!("the script said {other}"))),
        }
    }

    async fn give_back(&self, _lane: usize, buyer: u64) -> Result<bool, CompareError> {
        give_back(&self.give, self.connection.clone(), buyer).await
    }

    async fn get(&self) -> Result<Books, CompareError> {
        books(self.connection.clone()).await
    }
}

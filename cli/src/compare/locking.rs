//! A lock in Redis, as it should be made: an owner's token, renewal while it is held, release by script.
//!
//! It is still no fence: an owner that stalls for longer than the lock lives writes beside the next one. No owner
//! stalls here.

use std::time::{Duration, Instant};

use redis::{Script, aio::MultiplexedConnection};
use shared::ports::{IdSource, SystemIds};
use tokio::task::AbortHandle;

use super::{
    CompareError, Inventory, Reduced,
    inventory::Books,
    scripted::{OWNERS, STOCK, books, connect, fill},
};

const LOCK: &str = "{compare}:lock";
const LIFE_MS: u64 = 3_000;
const RENEW_EVERY: Duration = Duration::from_millis(LIFE_MS / 3);
/// How long a buyer waits for the lock.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks, at most, in microseconds.
const PAUSE_MAX_US: u64 = 4_000;

const RELEASE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0";
const RENEW: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0";

/// Plain reads and writes under the lock.
pub struct Locked {
    lanes: Vec<MultiplexedConnection>,
    release: Script,
    renew: Script,
}

/// The lock, while it is held.
struct Held {
    token: String,
    renewal: AbortHandle,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

impl Locked {
    /// Connects each lane.
    pub async fn connect(url: &str, lanes: usize) -> Result<Self, CompareError> {
        let mut connections = Vec::with_capacity(lanes);
        for _ in 0..lanes {
            connections.push(connect(url).await?);
        }
        Ok(Self {
            lanes: connections,
            release: Script::new(RELEASE),
            renew: Script::new(RENEW),
        })
    }

    async fn acquire(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<Option<Held>, CompareError> {
        let token = SystemIds.call_id().to_string();
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let set: Option<String> = redis::cmd("SET")
                .arg(LOCK)
                .arg(&token)
                .arg("NX")
                .arg("PX")
                .arg(LIFE_MS)
                .query_async(connection)
                .await?;
            if set.is_some() {
                let renewal = self.keep(connection.clone(), token.clone());
                return Ok(Some(Held { token, renewal }));
            }
            let pause = Duration::from_micros(SystemIds.jitter(PAUSE_MAX_US));
            tokio::time::sleep(pause).await;
        }
        Ok(None)
    }

    /// Renews until it is aborted, or the lock is somebody else's.
    fn keep(&self, mut connection: MultiplexedConnection, token: String) -> AbortHandle {
        let renew = self.renew.clone();
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(RENEW_EVERY).await;
                let mut call = renew.key(LOCK);
                call.arg(&token).arg(LIFE_MS);
                if !matches!(call.invoke_async::<i64>(&mut connection).await, Ok(1)) {
                    return;
                }
            }
        });
        task.abort_handle()
    }

    async fn release(
        &self,
        connection: &mut MultiplexedConnection,
        held: Held,
    ) -> Result<(), CompareError> {
        let mut call = self.release.key(LOCK);
        call.arg(&held.token);
        match call.invoke_async::<i64>(connection).await? {
            1 => Ok(()),
            _ => Err(CompareError::Unexpected("the lock was lost".to_owned())),
        }
    }

    /// What a buyer has and what is left.
    async fn read(
        connection: &mut MultiplexedConnection,
        buyer: u64,
    ) -> Result<(i64, bool), CompareError> {
        Ok(redis::pipe()
            .cmd("GET")
            .arg(STOCK)
            .cmd("SISMEMBER")
            .arg(OWNERS)
            .arg(buyer)
            .query_async(connection)
            .await?)
    }

    async fn write(
        connection: &mut MultiplexedConnection,
        left: i64,
        change: &str,
        buyer: u64,
    ) -> Result<(), CompareError> {
        Ok(redis::pipe()
            .cmd("SET")
            .arg(STOCK)
            .arg(left)
            .ignore()
            .cmd(change)
            .arg(OWNERS)
            .arg(buyer)
            .ignore()
            .query_async(connection)
            .await?)
    }
}

impl Inventory for Locked {
    async fn init(&self, stock: u64) -> Result<(), CompareError> {
        fill(self.lanes[0].clone(), stock).await
    }

    async fn reduce(&self, lane: usize, buyer: u64) -> Result<Reduced, CompareError> {
        let mut connection = self.lanes[lane].clone();
        let Some(held) = self.acquire(&mut connection).await? else {
            return Ok(Reduced::GaveUp);
        };
        let (left, mine) = Self::read(&mut connection, buyer).await?;
        let answer = if mine {
            Reduced::Again
        } else if left < 1 {
            Reduced::SoldOut
        } else {
            Self::write(&mut connection, left - 1, "SADD", buyer).await?;
            Reduced::Won
        };
        self.release(&mut connection, held).await?;
        Ok(answer)
    }

    async fn give_back(&self, lane: usize, buyer: u64) -> Result<bool, CompareError> {
        let mut connection = self.lanes[lane].clone();
        let Some(held) = self.acquire(&mut connection).await? else {
            return Err(CompareError::Unexpected("no lock in time".to_owned()));
        };
        let (left, mine) = Self::read(&mut connection, buyer).await?;
        if mine {
            Self::write(&mut connection, left + 1, "SREM", buyer).await?;
        }
        self.release(&mut connection, held).await?;
        Ok(mine)
    }

    async fn get(&self) -> Result<Books, CompareError> {
        books(self.lanes[0].clone()).await
    }
}

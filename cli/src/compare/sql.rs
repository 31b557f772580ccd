//! PostgreSQL alone, four ways. All of them are exact; they differ in what callers wait for.

use std::{sync::Arc, time::Duration};

use shared::ports::{IdSource, SystemIds};
use sqlx::{PgPool, Postgres, Transaction, postgres::PgPoolOptions, query, query_scalar, raw_sql};

use super::{CompareError, Inventory, Reduced, inventory::Books};

/// Tries before a buyer is told to come back.
const TRIES: u32 = 1_000;
/// Longest pause after a lost race, in microseconds.
const PAUSE_MAX_US: u64 = 4_000;
/// How long a caller waits for a connection of the pool.
const ACQUIRE: Duration = Duration::from_mins(1);

const SCHEMA: &str = "
CREATE TABLE stock (
  id integer PRIMARY KEY,
  available bigint NOT NULL CHECK (available >= 0),
  version bigint NOT NULL DEFAULT 0
);
CREATE TABLE owners (buyer bigint PRIMARY KEY);
CREATE TABLE units (unit bigint PRIMARY KEY, owner bigint UNIQUE);
CREATE INDEX units_free ON units (unit) WHERE owner IS NULL;";

/// One article in one database.
pub struct Shop {
    pool: PgPool,
}

impl Shop {
    /// Connects and makes the tables.
    pub async fn connect(url: &str, connections: u32) -> Result<Self, CompareError> {
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(ACQUIRE)
            .connect(url)
            .await?;
        raw_sql(SCHEMA).execute(&pool).await?;
        Ok(Self { pool })
    }

    /// The server's version.
    pub async fn version(&self) -> Result<String, CompareError> {
        Ok(query_scalar("SHOW server_version")
            .fetch_one(&self.pool)
            .await?)
    }

    async fn fill(&self, stock: u64) -> Result<(), CompareError> {
        query("INSERT INTO stock (id, available) VALUES (1, $1)")
            .bind(stock.cast_signed())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Puts the buyer's row in; false when she has one.
    async fn own(
        transaction: &mut Transaction<'static, Postgres>,
        buyer: u64,
    ) -> Result<bool, CompareError> {
        let done = query("INSERT INTO owners (buyer) VALUES ($1) ON CONFLICT DO NOTHING")
            .bind(buyer.cast_signed())
            .execute(&mut **transaction)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    /// Takes one unit if there is one.
    async fn take(transaction: &mut Transaction<'static, Postgres>) -> Result<bool, CompareError> {
        let sql = "UPDATE stock SET available = available - 1, version = version + 1 \
                   WHERE id = 1 AND available >= 1";
        let done = query(sql).execute(&mut **transaction).await?;
        Ok(done.rows_affected() == 1)
    }

    async fn is_owner(&self, buyer: u64) -> Result<bool, CompareError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM owners WHERE buyer = $1)";
        let found = query_scalar(sql).bind(buyer.cast_signed());
        Ok(found.fetch_one(&self.pool).await?)
    }

    async fn give_back(&self, buyer: u64) -> Result<bool, CompareError> {
        let mut transaction = self.pool.begin().await?;
        let gone = query("DELETE FROM owners WHERE buyer = $1")
            .bind(buyer.cast_signed())
            .execute(&mut *transaction)
            .await?;
        let was_hers = gone.rows_affected() == 1;
        if was_hers {
            query("UPDATE stock SET available = available + 1, version = version + 1 WHERE id = 1")
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(was_hers)
    }

    async fn books(&self) -> Result<Books, CompareError> {
        let sql = "SELECT available, (SELECT count(*) FROM owners) FROM stock WHERE id = 1";
        let (left, owners) = sqlx::query_as(sql).fetch_one(&self.pool).await?;
        Ok(Books { left, owners })
    }
}

/// One conditional statement decides. The buyer's row goes first, so that the hot row is locked for the shortest time.
pub struct Conditional(pub Arc<Shop>);

impl Inventory for Conditional {
    async fn init(&self, stock: u64) -> Result<(), CompareError> {
        self.0.fill(stock).await
    }

    async fn reduce(&self, _lane: usize, buyer: u64) -> Result<Reduced, CompareError> {
        let mut transaction = self.0.pool.begin().await?;
        let answer = if !Shop::own(&mut transaction, buyer).await? {
            Reduced::Again
        } else if Shop::take(&mut transaction).await? {
            Reduced::Won
        } else {
            Reduced::SoldOut
        };
        if answer == Reduced::Won {
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
        Ok(answer)
    }

    async fn give_back(&self, _lane: usize, buyer: u64) -> Result<bool, CompareError> {
        self.0.give_back(buyer).await
    }

    async fn get(&self) -> Result<Books, CompareError> {
        self.0.books().await
    }
}

/// Reads stock and version, and takes only if the version is still that one.
pub struct Versioned(pub Arc<Shop>);

impl Versioned {
    /// One try; none when the version moved.
    async fn once(&self, buyer: u64) -> Result<Option<Reduced>, CompareError> {
        let sql = "SELECT available, version FROM stock WHERE id = 1";
        let (left, version): (i64, i64) = sqlx::query_as(sql).fetch_one(&self.0.pool).await?;
        if left < 1 {
            let mine = self.0.is_owner(buyer).await?;
            let answer = if mine {
                Reduced::Again
            } else {
                Reduced::SoldOut
            };
            return Ok(Some(answer));
        }
        let mut transaction = self.0.pool.begin().await?;
        if !Shop::own(&mut transaction, buyer).await? {
            transaction.rollback().await?;
            return Ok(Some(Reduced::Again));
        }
        let sql = "UPDATE stock SET available = available - 1, version = version + 1 \
                   WHERE id = 1 AND version = $1";
        let done = query(sql).bind(version).execute(&mut *transaction).await?;
        if done.rows_affected() == 0 {
            transaction.rollback().await?;
            return Ok(None);
        }
        transaction.commit().await?;
        Ok(Some(Reduced::Won))
    }
}

impl Inventory for Versioned {
    async fn init(&self, stock: u64) -> Result<(), CompareError> {
        self.0.fill(stock).await
    }

    async fn reduce(&self, _lane: usize, buyer: u64) -> Result<Reduced, CompareError> {
        for _ in 0..TRIES {
            if let Some(answer) = self.once(buyer).await? {
                return Ok(answer);
            }
            pause().await;
        }
        Ok(Reduced::GaveUp)
    }

    async fn give_back(&self, _lane: usize, buyer: u64) -> Result<bool, CompareError> {
        self.0.give_back(buyer).await
    }

    async fn get(&self) -> Result<Books, CompareError> {
        self.0.books().await
    }
}

/// Locks the row, reads it, writes it.
pub struct ForUpdate(pub Arc<Shop>);

impl Inventory for ForUpdate {
    async fn init(&self, stock: u64) -> Result<(), CompareError> {
        self.0.fill(stock).await
    }

    async fn reduce(&self, _lane: usize, buyer: u64) -> Result<Reduced, CompareError> {
        let mut transaction = self.0.pool.begin().await?;
        let sql = "SELECT available FROM stock WHERE id = 1 FOR UPDATE";
        let left: i64 = query_scalar(sql).fetch_one(&mut *transaction).await?;
        if left < 1 {
            transaction.rollback().await?;
            let mine = self.0.is_owner(buyer).await?;
            return Ok(if mine {
                Reduced::Again
            } else {
                Reduced::SoldOut
            });
        }
        if !Shop::own(&mut transaction, buyer).await? {
            transaction.rollback().await?;
            return Ok(Reduced::Again);
        }
        query("UPDATE stock SET available = $1 WHERE id = 1")
            .bind(left - 1)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(Reduced::Won)
    }

    async fn give_back(&self, _lane: usize, buyer: u64) -> Result<bool, CompareError> {
        self.0.give_back(buyer).await
    }

    async fn get(&self) -> Result<Books, CompareError> {
        self.0.books().await
    }
}

/// A row for each unit: callers lock different rows and do not wait for each other.
pub struct SkipLocked(pub Arc<Shop>);

impl SkipLocked {
    /// One try; none when every free unit is just being taken, perhaps in vain.
    async fn once(&self, buyer: u64) -> Result<Option<Reduced>, CompareError> {
        let sql = "UPDATE units SET owner = $1 WHERE unit = \
                     (SELECT unit FROM units WHERE owner IS NULL \
                      ORDER BY unit LIMIT 1 FOR UPDATE SKIP LOCKED)";
        let done = query(sql)
            .bind(buyer.cast_signed())
            .execute(&self.0.pool)
            .await;
        match done {
            Ok(done) if done.rows_affected() == 1 => return Ok(Some(Reduced::Won)),
            Ok(_) => {}
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
                return Ok(Some(Reduced::Again));
            }
            Err(error) => return Err(error.into()),
        }
        let sql = "SELECT EXISTS (SELECT 1 FROM units WHERE owner = $1), \
                          EXISTS (SELECT 1 FROM units WHERE owner IS NULL)";
        let (mine, free): (bool, bool) = sqlx::query_as(sql)
            .bind(buyer.cast_signed())
            .fetch_one(&self.0.pool)
            .await?;
        Ok(match (mine, free) {
            (true, _) => Some(Reduced::Again),
            (false, true) => None,
            (false, false) => Some(Reduced::SoldOut),
        })
    }
}

impl Inventory for SkipLocked {
    async fn init(&self, stock: u64) -> Result<(), CompareError> {
        query("INSERT INTO units (unit) SELECT generate_series(1, $1)")
            .bind(stock.cast_signed())
            .execute(&self.0.pool)
            .await?;
        Ok(())
    }

    async fn reduce(&self, _lane: usize, buyer: u64) -> Result<Reduced, CompareError> {
        for _ in 0..TRIES {
            if let Some(answer) = self.once(buyer).await? {
                return Ok(answer);
            }
            pause().await;
        }
        Ok(Reduced::GaveUp)
    }

    async fn give_back(&self, _lane: usize, buyer: u64) -> Result<bool, CompareError> {
        let done = query("UPDATE units SET owner = NULL WHERE owner = $1")
            .bind(buyer.cast_signed())
            .execute(&self.0.pool)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    async fn get(&self) -> Result<Books, CompareError> {
        let sql = "SELECT count(*) FILTER (WHERE owner IS NULL), count(owner) FROM units";
        let (left, owners) = sqlx::query_as(sql).fetch_one(&self.0.pool).await?;
        Ok(Books { left, owners })
    }
}

async fn pause() {
    tokio::time::sleep(Duration::from_micros(SystemIds.jitter(PAUSE_MAX_US))).await;
}

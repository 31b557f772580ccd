//! Connections: few, tested after idling, and closed rather than shared after a fault.

use std::{
    ops::{Deref, DerefMut},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sqlx::{
    Connection, PgConnection, PgPool, Postgres, pool::PoolConnection, postgres::PgPoolOptions,
};

use super::{
    PgSettings,
    errors::{Fault, store_error},
};
use crate::{
    limits::{SQL_ACQUIRE_MS, SQL_IDLE_TEST_AFTER_MS, SQL_IDLE_TEST_MS, SQL_LIFETIME_MS},
    ports::{Clock, StoreError, StoreResult, SystemClock},
};

/// Orders, sales and runs on PostgreSQL; clones share the connections.
#[derive(Debug, Clone)]
pub struct PgStore {
    pool: PgPool,
    last_use: Arc<AtomicU64>,
}

impl PgStore {
    /// Opens no connection yet. Must be called inside a Tokio runtime.
    #[must_use]
    pub fn new(settings: PgSettings) -> Self {
        let last_use = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&last_use);
        let pool = PgPoolOptions::new()
            .max_connections(settings.connections_max)
            .min_connections(0)
            .acquire_timeout(Duration::from_millis(SQL_ACQUIRE_MS))
            .idle_timeout(None)
            .max_lifetime(Duration::from_millis(SQL_LIFETIME_MS))
            // The library's own test has no time-out, so a half-open connection would hang it.
            .test_before_acquire(false)
            .before_acquire(move |connection, meta| {
                // By the wall clock: other clocks may stand still while the environment is frozen.
                let idle_ms = wall_ms().saturating_sub(seen.load(Ordering::Relaxed));
                let after = Duration::from_millis(SQL_IDLE_TEST_AFTER_MS);
                let stale = meta.idle_for > after || idle_ms > SQL_IDLE_TEST_AFTER_MS;
                Box::pin(async move {
                    if stale {
                        answers(connection).await?;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(settings.options);
        Self { pool, last_use }
    }

    /// The pool, for the migrations.
    #[must_use]
    pub const fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// A connection for one operation.
    pub(super) async fn take(&self, action: &'static str) -> StoreResult<Held> {
        let connection = self.pool.acquire().await;
        Ok(Held {
            connection: connection.map_err(|error| store_error(action, error.into()))?,
            last_use: Arc::clone(&self.last_use),
            usable: false,
        })
    }
}

fn wall_ms() -> u64 {
    SystemClock.now().get()
}

/// Whether the other end is still there. An error makes the pool drop the connection and open another.
async fn answers(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let limit = Duration::from_millis(SQL_IDLE_TEST_MS);
    match tokio::time::timeout(limit, connection.ping()).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
    }
}

/// A connection in use. It returns to the pool only through [`Self::finish`]; dropped before that, as when
/// the caller gives up, it is closed, for nobody knows what it is in the middle of.
pub(super) struct Held {
    connection: PoolConnection<Postgres>,
    last_use: Arc<AtomicU64>,
    usable: bool,
}

impl Held {
    /// Ends an operation: names its fault, and closes a connection whose state is in doubt.
    pub(super) fn finish<T>(
        mut self,
        action: &'static str,
        result: Result<T, Fault>,
    ) -> StoreResult<T> {
        let result = result.map_err(|fault| store_error(action, fault));
        // After a conflict the server has rolled back, and the connection is as good as before.
        self.usable = match &result {
            Ok(_) | Err(StoreError::Conflict { .. }) => true,
            Err(StoreError::Away { .. } | StoreError::Broken { .. }) => false,
        };
        self.last_use.store(wall_ms(), Ordering::Relaxed);
        result
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.usable {
            self.connection.close_on_drop();
        }
    }
}

impl Deref for Held {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

/// Runs an operation on a connection; once more when the database rolled it back for another's sake.
macro_rules! operation {
    ($store:expr, $action:literal, $connection:ident => $work:expr) => {{
        let mut first = true;
        loop {
            let mut held = $store.take($action).await?;
            let $connection: &mut sqlx::PgConnection = &mut held;
            let result = $work.await;
            match held.finish($action, result) {
                Err(crate::ports::StoreError::Conflict { .. }) if first => first = false,
                result => break result,
            }
        }
    }};
}
pub(super) use operation;

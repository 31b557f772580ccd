//! One struct and one loader per function.

use super::check::Reader;
use super::{
    BuyerRate, ConfigError, DatabaseConfig, PaymentConfig, RedisConfig, Stage, TokenConfig,
};

/// Defines a function's configuration and its loader. Every part is read, so that every fault is named,
/// before any is required to be there.
macro_rules! function {
    ($(#[$doc:meta])* $config:ident, $loader:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $read:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $config {
            $($(#[$field_doc])* pub $field: $type,)+
        }

        #[doc = concat!("Reads the environment of `", stringify!($loader), "`.")]
        pub fn $loader(env: &impl Fn(&str) -> Option<String>) -> Result<$config, ConfigError> {
            let mut reader = Reader::new(env);
            $(let $field = reader.$read();)+
            match ($($field,)+) {
                ($(Some($field),)+) if reader.faults.is_empty() => Ok($config { $($field,)+ }),
                _ => Err(reader.into_error()),
            }
        }
    };
}

function!(
    /// What `deduct` is told.
    DeductConfig, deduct {
        /// Where it runs.
        stage: Stage = stage,
        /// The stock.
        redis: RedisConfig = redis,
        /// Where reservations are sent.
        order_queue_url: String = order_queue,
        /// Whose tokens are believed.
        tokens: TokenConfig = tokens,
        /// The per-buyer limit.
        buyer_rate: BuyerRate = buyer_rate,
    }
);

function!(
    /// What `orders` is told.
    OrdersConfig, orders {
        /// Where it runs.
        stage: Stage = stage,
        /// The stock.
        redis: RedisConfig = redis,
        /// The orders.
        database: DatabaseConfig = database,
        /// Where reservations are sent.
        order_queue_url: String = order_queue,
        /// Where reminders are sent.
        expiry_queue_url: String = expiry_queue,
        /// Whose tokens are believed.
        tokens: TokenConfig = tokens,
        /// The payment provider.
        payment: PaymentConfig = payment,
    }
);

function!(
    /// What `admin` is told.
    AdminConfig, admin {
        /// Where it runs.
        stage: Stage = stage,
        /// The stock.
        redis: RedisConfig = redis,
        /// The sales.
        database: DatabaseConfig = database,
        /// The queue whose depth is reported.
        order_queue_url: String = order_queue,
        /// Where messages end that cannot be settled.
        order_dlq_url: Option<String> = order_dlq,
        /// Where reminders end that nobody could treat.
        expiry_dlq_url: Option<String> = expiry_dlq,
        /// Whose tokens are believed.
        tokens: TokenConfig = tokens,
    }
);

function!(
    /// What `preheat` is told.
    PreheatConfig, preheat {
        /// Where it runs.
        stage: Stage = stage,
        /// The stock.
        redis: RedisConfig = redis,
        /// The sales.
        database: DatabaseConfig = database,
        /// Whose tokens are believed.
        tokens: TokenConfig = tokens,
    }
);

function!(
    /// What `settle` is told.
    SettleConfig, settle {
        /// Where it runs.
        stage: Stage = stage,
        /// The stock.
        redis: RedisConfig = redis,
        /// The orders.
        database: DatabaseConfig = database,
        /// Where reservations come from.
        order_queue_url: String = order_queue,
        /// Where reminders are sent.
        expiry_queue_url: String = expiry_queue,
    }
);

function!(
    /// What `expire` is told.
    ExpireConfig, expire {
        /// Where it runs.
        stage: Stage = stage,
        /// The stock.
        redis: RedisConfig = redis,
        /// The orders.
        database: DatabaseConfig = database,
        /// The queue of reservations.
        order_queue_url: String = order_queue,
        /// Where reminders come from, and go again.
        expiry_queue_url: String = expiry_queue,
    }
);

function!(
    /// What `reconcile` is told.
    ReconcileConfig, reconcile {
        /// Where it runs.
        stage: Stage = stage,
        /// The stock.
        redis: RedisConfig = redis,
        /// The orders.
        database: DatabaseConfig = database,
        /// Where reservations are published again.
        order_queue_url: String = order_queue,
        /// Where reminders are sent.
        expiry_queue_url: String = expiry_queue,
        /// Where messages end that cannot be settled.
        order_dlq_url: Option<String> = order_dlq,
        /// Whose tokens are believed.
        tokens: TokenConfig = tokens,
    }
);

function!(
    /// What `migrate` is told.
    MigrateConfig, migrate {
        /// Where it runs.
        stage: Stage = stage,
        /// The database.
        database: DatabaseConfig = database,
    }
);

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

//! The ports of orders, sales and runs on PostgreSQL.
//!
//! PostgreSQL decides ownership: whatever Redis believes, the schema (`shared/migrations`) refuses to
//! oversell. Each method is one transaction in READ COMMITTED, with REPEATABLE READ where several reads
//! must agree; time limits are the server's, set when a connection opens. A call whose future is dropped
//! half-way closes its connection, so that no later call runs inside a transaction of somebody else
//! (`sqlx#4393`).
//!
//! Locks are taken in one order everywhere: payment, order, sale. Rows of orders are inserted before the
//! sale's row is locked, sorted by buyer and id; those of a queued sale after it, where none can wait.

mod adjustments;
mod closing;
mod errors;
mod loads;
mod migrations;
mod payments;
mod pool;
mod port;
mod queued;
mod reads;
mod rows;
mod runs;
mod sales;
mod settings;
mod settle;

pub use migrations::{MigrateError, migrate};
pub use pool::PgStore;
pub use settings::{PgSettings, PgSettingsError};

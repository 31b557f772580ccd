//! Every limit and time-out, with its unit in its name, and the relations between them.
//!
//! The relations are asserted at compile time below; those that involve `template.yaml` (function
//! time-outs, visibility) are asserted by the template test. No adapter relies on a library's default.

/// Longest idempotency key accepted, in bytes. Long enough for any UUID or signed nonce.
pub const IDEMPOTENCY_KEY_MAX_BYTES: usize = 255;
/// Longest buyer id kept as it is; a longer subject is stored as its SHA-256 in hex.
pub const BUYER_ID_MAX_BYTES: usize = 128;
/// Longest sale id: a DNS label, so that it is safe in keys, paths and host names.
pub const SALE_ID_MAX_BYTES: usize = 63;
/// Largest quantity that one order may name at all; a sale's own limit is lower.
pub const QUANTITY_MAX: u32 = 1_000;
/// Largest stock of one sale. Far below 2^53, the largest integer that Lua counts exactly.
pub const STOCK_MAX: u64 = 1_000_000_000;
/// Largest number of shards of one sale.
pub const SHARDS_MAX: u16 = 64;
/// Largest request body of the buy call, in bytes. Its body is one small number.
pub const BODY_MAX_BYTES: usize = 8 * 1024;
/// Largest body of a payment event or an operator's call, in bytes.
pub const OPERATOR_BODY_MAX_BYTES: usize = 64 * 1024;
/// Largest queue message accepted, in bytes.
pub const MESSAGE_MAX_BYTES: usize = 4 * 1024;

/// One attempt of a Redis command, reply included.
pub const REDIS_ATTEMPT_MS: u64 = 250;
/// Attempts of the deduct script in one call: the first, and two with the same ids after a lost reply.
pub const REDIS_ATTEMPTS: u32 = 3;
/// What a client is told to wait at least before it repeats a call that found a store away.
pub const RETRY_AFTER_BUSY_MS: u64 = 1_000;
/// A random part on top of that, so that clients do not come back all at once.
pub const RETRY_JITTER_MS: u64 = 2_000;
/// Longest bearer token that is looked at, in bytes.
pub const TOKEN_MAX_BYTES: usize = 8 * 1024;
/// Tokens that one process remembers to have verified, about 300 bytes each.
pub const TOKENS_VERIFIED_MAX: usize = 16_384;
/// Longest subject and scope, together, that it remembers.
pub const VERIFIED_CLAIMS_MAX_BYTES: usize = 512;
/// Sales whose route one process keeps; beyond it, it forgets all and learns again.
pub const ROUTES_CACHED_MAX: usize = 1_000;

/// Opening a Redis connection, TLS and authentication included.
pub const REDIS_CONNECT_MS: u64 = 500;
/// A connection that was idle for longer is checked by being replaced when its first call fails in any way.
pub const REDIS_TCP_KEEPALIVE_S: u64 = 10;
/// Sent bytes that nobody acknowledges break a Redis connection after this, instead of minutes later.
pub const REDIS_TCP_USER_TIMEOUT_MS: u64 = 2_000;
/// Times that the cluster client itself re-sends a command (redirects, mostly); `deduct` is safe to repeat.
pub const REDIS_CLUSTER_RETRIES: u32 = 3;
/// Shortest and longest wait before such a re-send. The library's own shortest is 1.28 s, which no attempt has.
pub const REDIS_CLUSTER_WAIT_MIN_MS: u64 = 20;
/// See [`REDIS_CLUSTER_WAIT_MIN_MS`].
pub const REDIS_CLUSTER_WAIT_MAX_MS: u64 = 200;
/// Times that one buy call looks for units on other shards before it says that it does not know.
pub const LOAN_ROUNDS: u32 = 5;
/// For how long a process believes that every shard of a sale is empty. With the route's age below a second, so that
/// units that come back are sold within one.
pub const SOLD_OUT_MEMORY_MS: u64 = 500;
/// All of one buy call up to its answer.
pub const DEDUCT_DEADLINE_MS: u64 = 5_500;
/// A copy of the deduct script that arrives later than the caller's deadline plus this does nothing.
pub const NOT_AFTER_SLACK_MS: u64 = 2_000;
/// The deduct function's time-out in `template.yaml`.
pub const DEDUCT_FUNCTION_TIMEOUT_MS: u64 = 10_000;
/// The orders function's time-out in `template.yaml`.
pub const ORDERS_FUNCTION_TIMEOUT_MS: u64 = 10_000;
/// The admin function's time-out in `template.yaml`.
pub const ADMIN_FUNCTION_TIMEOUT_MS: u64 = 25_000;
/// The preheat function's time-out in `template.yaml`. An operator waits for it behind the gateway.
pub const PREHEAT_FUNCTION_TIMEOUT_MS: u64 = 28_000;
/// The migrate function's time-out in `template.yaml`.
pub const MIGRATE_FUNCTION_TIMEOUT_MS: u64 = 300_000;
/// API Gateway (REST) gives up after this.
pub const GATEWAY_TIMEOUT_MS: u64 = 29_000;

/// One attempt of an SQS call.
pub const SQS_ATTEMPT_MS: u64 = 1_500;
/// One SQS call with its retries.
pub const SQS_OPERATION_MS: u64 = 4_000;
/// Attempts of one SQS call, as far as [`SQS_OPERATION_MS`] lets them start.
pub const SQS_ATTEMPTS: u32 = 3;
/// Wait before the second attempt of an SQS call (jittered by the SDK), and the longest such wait.
pub const SQS_BACKOFF_FIRST_MS: u64 = 50;
/// See [`SQS_BACKOFF_FIRST_MS`].
pub const SQS_BACKOFF_MAX_MS: u64 = 500;
/// Opening a connection to SQS.
pub const SQS_CONNECT_MS: u64 = 1_000;
/// Idle HTTP connections are dropped after this, before a NAT or a thawed environment finds them dead.
pub const SQS_POOL_IDLE_MS: u64 = 15_000;
/// Longest delay that SQS accepts for one message.
pub const SQS_DELAY_MAX_S: u64 = 900;
/// Entries in one SQS batch call.
pub const SQS_BATCH_MAX: usize = 10;
/// All bodies of one SQS batch call together. SQS takes 1 MiB since 2025; older doubles of it take this.
pub const SQS_BATCH_MAX_BYTES: usize = 256 * 1024;
/// An order that finds others being sent waits so long for company, and then leaves in one batch call with it.
pub const SQS_GATHER_MS: u64 = 5;
/// Batch calls for reminders that are under way at once.
pub const SQS_BATCHES_AT_ONCE: usize = 8;

/// A dead letter that somebody looks at is hidden from others for this long, unless it is put back before.
pub const DEAD_LETTER_HIDDEN_S: u64 = 60;
/// How long one look at a dead-letter queue waits, so that every server of the queue is asked.
pub const DEAD_LETTER_WAIT_S: u64 = 1;
/// Dead letters that one call shows or treats.
pub const DEAD_LETTERS_MAX: usize = 100;
/// One call stops looking for further dead letters after this.
pub const DEAD_LETTERS_MS: u64 = 12_000;

/// The first right to publish an order, given by the deduct script itself.
pub const CLAIM_FIRST_MS: u64 = 5_000;
/// Shortest and longest later claim; in between it is the order's age.
pub const CLAIM_LATER_MIN_MS: u64 = 30_000;
/// See [`CLAIM_LATER_MIN_MS`].
pub const CLAIM_LATER_MAX_MS: u64 = 300_000;
/// How long an order usually takes from the queue into SQL; what a client is told to wait before it asks.
pub const SETTLE_USUAL_MS: u64 = 2_000;
/// An order `reserved` for longer may be published again by whoever reads it and gets the claim.
pub const READER_REPUBLISH_AFTER_MS: u64 = 30_000;

/// The settle function's time-out in `template.yaml`; visibility is at least six times this.
pub const SETTLE_FUNCTION_TIMEOUT_MS: u64 = 30_000;
/// Settle starts no further sale of a batch with less than this left and returns its records as failed.
pub const SETTLE_RESERVE_MS: u64 = 5_000;
/// Messages that settle gets at once by default. Lambda takes up to 10,000 for a batch with a window, but no more
/// than fit 6 MB, and SQS's envelope makes each of ours about 1.2 kB.
pub const SETTLE_BATCH_MAX: u64 = 5_000;
/// Receives before a message goes to the dead-letter queue.
pub const MAX_RECEIVE_COUNT: u32 = 5;
/// The expire function's time-out in `template.yaml`.
pub const EXPIRE_FUNCTION_TIMEOUT_MS: u64 = 30_000;
/// How long the mappings of both queues wait for a batch to fill.
pub const BATCH_WINDOW_MS: u64 = 1_000;
/// Visibility time-out of the order queue.
pub const ORDER_QUEUE_VISIBILITY_MS: u64 = 6 * SETTLE_FUNCTION_TIMEOUT_MS + BATCH_WINDOW_MS;
/// Reconcile's period in `template.yaml`.
pub const RECONCILE_PERIOD_MS: u64 = 60_000;
/// Something missing in SQL is believed to be missing only when seen twice this far apart.
pub const ABSENCE_GRACE_MS: u64 = 2 * RECONCILE_PERIOD_MS;
/// The reconcile function's time-out in `template.yaml`.
pub const RECONCILE_FUNCTION_TIMEOUT_MS: u64 = 55_000;
/// Reconcile stops starting new work with less than this left; the next run resumes.
pub const RECONCILE_RESERVE_MS: u64 = 10_000;
/// The lease that lets one reconcile run at a time; renewed by its heartbeat.
pub const RECONCILE_LEASE_MS: u64 = 90_000;
/// Rows or records in one page of a walk.
pub const PAGE_ROWS: usize = 500;
/// Orders in one `confirm` or `release` script call, which bounds the script's running time.
pub const SCRIPT_BATCH_MAX: usize = 100;
/// Keys of a settled or withdrawn sale live on this long, for late readers.
pub const SETTLED_KEYS_TTL_MS: u64 = 2 * 60 * 60 * 1_000;
/// The schedule loads a sale this long before it opens.
pub const PREHEAT_AHEAD_MS: u64 = 10 * 60 * 1_000;
/// A load's throw-away sale is gone after this.
pub const SMOKE_KEYS_TTL_MS: u64 = 60_000;
/// With more messages than this in the order queue, it is slow rather than missing some.
pub const QUEUE_SLOW_MESSAGES: u64 = 1_000;
/// Then only orders older than this are published again.
pub const QUEUE_SLOW_AGE_MS: u64 = 300_000;
/// From the moment a loss was seen, a rebuild waits for every call of `deduct` that began before it.
pub const REBUILD_WAIT_MS: u64 = DEDUCT_FUNCTION_TIMEOUT_MS + 5_000;
/// After that it waits for the queue to empty, but no longer than this.
pub const REBUILD_QUEUE_WAIT_MS: u64 = 60_000;
/// A closed sale is settled after it was at rest for this long: no message can still be on its way.
pub const SETTLED_AFTER_REST_MS: u64 = ORDER_QUEUE_VISIBILITY_MS * (MAX_RECEIVE_COUNT as u64);
/// Longest age of the route that a process keeps.
pub const ROUTE_CACHE_MS: u64 = 1_000;

/// Longest age of what `GET /sales/{sale}` answers.
pub const GOODS_CACHE_MS: u64 = 1_000;
/// Longest walk over records for a report.
pub const REPORT_WALK_MS: u64 = 5_000;
/// Sales or audit entries in one page of an operator's list.
pub const ADMIN_PAGE_ROWS: usize = 100;
/// Longest reason that an operator may give, in characters.
pub const REASON_MAX_CHARS: usize = 500;
/// Clocks of Redis and SQL further apart than this are a fact to look at before a sale.
pub const CLOCK_SKEW_MAX_MS: u64 = 1_000;
/// Unpaid orders counted at most when it is noted how much may return: it matters only whether any may.
pub const UNPAID_COUNT_ORDERS: usize = 100;
/// Longest search of Redis for an order that a payment names and SQL lacks.
pub const PAYMENT_SEARCH_MS: u64 = 3_000;

/// SQL connections of one environment at most. It has one per call that it serves at once, so one on Lambda's own
/// environments and more where `AWS_LAMBDA_MAX_CONCURRENCY` says so; what a database can bear divided by this is
/// how many environments may run.
pub const SQL_CONNECTIONS_MAX: u32 = 8;
/// Waiting for a free SQL connection.
pub const SQL_ACQUIRE_MS: u64 = 3_000;
/// One SQL statement, set on the session by the server (never by cancelling from the client).
pub const SQL_STATEMENT_MS: u64 = 10_000;
/// Waiting for one SQL lock.
pub const SQL_LOCK_MS: u64 = 5_000;
/// A pooled SQL connection idle for longer is tested, under its own time-out, before it is used.
pub const SQL_IDLE_TEST_AFTER_MS: u64 = 5_000;
/// That test's own time-out.
pub const SQL_IDLE_TEST_MS: u64 = 300;
/// A session that waits for its client inside a transaction for longer is ended by the server.
pub const SQL_IDLE_IN_TRANSACTION_MS: u64 = 15_000;
/// A pooled SQL connection is replaced at this age.
pub const SQL_LIFETIME_MS: u64 = 30 * 60 * 1_000;
/// Rows of one page when a load reads every live order.
pub const SQL_LOAD_PAGE_ROWS: i64 = 5_000;

/// Oldest and newest time stamp accepted on a signed payment event, relative to now.
pub const PAYMENT_SIGNATURE_TOLERANCE_MS: u64 = 300_000;
/// Shortest and longest payment window of a sale.
pub const PAYMENT_WINDOW_MIN_S: u64 = 5;
/// See [`PAYMENT_WINDOW_MIN_S`].
pub const PAYMENT_WINDOW_MAX_S: u64 = 7 * 24 * 60 * 60;
/// Clock tolerance when a token's times are checked.
pub const TOKEN_LEEWAY_S: u64 = 30;
/// Bits of one shard's map of who has tried before (512 KiB). Two buyers on one bit share nothing but the one
/// attempt that is not counted.
pub const SEEN_BITS: u32 = 1 << 22;
/// Per-buyer request limit: attempts per window that reach the stock. Replays do not count.
pub const RATE_WINDOW_MS: u64 = 1_000;
/// See [`RATE_WINDOW_MS`].
pub const RATE_MAX_PER_WINDOW: u32 = 5;

const _: () = {
    assert!(REDIS_ATTEMPT_MS * (REDIS_ATTEMPTS as u64) < DEDUCT_DEADLINE_MS);
    assert!(
        REDIS_ATTEMPT_MS * (REDIS_ATTEMPTS as u64) + SQS_GATHER_MS + SQS_OPERATION_MS
            < DEDUCT_DEADLINE_MS
    );
    assert!(SOLD_OUT_MEMORY_MS < 1_000);
    assert!(REDIS_CLUSTER_WAIT_MAX_MS < REDIS_ATTEMPT_MS);
    assert!(DEDUCT_DEADLINE_MS < DEDUCT_FUNCTION_TIMEOUT_MS);
    assert!(DEDUCT_FUNCTION_TIMEOUT_MS < GATEWAY_TIMEOUT_MS);
    assert!(ORDERS_FUNCTION_TIMEOUT_MS < GATEWAY_TIMEOUT_MS);
    assert!(ADMIN_FUNCTION_TIMEOUT_MS < GATEWAY_TIMEOUT_MS);
    assert!(PREHEAT_FUNCTION_TIMEOUT_MS < GATEWAY_TIMEOUT_MS);
    assert!(BATCH_WINDOW_MS < SETTLE_USUAL_MS);
    assert!(SQS_ATTEMPT_MS < SQS_OPERATION_MS);
    assert!(SQS_GATHER_MS + SQS_OPERATION_MS < CLAIM_FIRST_MS);
    // So no batch needs its bytes counted.
    assert!(SQS_BATCH_MAX * MESSAGE_MAX_BYTES <= SQS_BATCH_MAX_BYTES);
    assert!(SQS_CONNECT_MS < SQS_ATTEMPT_MS);
    // A second attempt, after the longest wait, still ends in time.
    assert!(2 * SQS_ATTEMPT_MS + SQS_BACKOFF_MAX_MS < SQS_OPERATION_MS);
    assert!(CLAIM_LATER_MIN_MS > SETTLE_USUAL_MS);
    assert!(CLAIM_LATER_MIN_MS < CLAIM_LATER_MAX_MS);
    assert!(ORDER_QUEUE_VISIBILITY_MS >= 6 * SETTLE_FUNCTION_TIMEOUT_MS);
    assert!(ABSENCE_GRACE_MS > SETTLE_FUNCTION_TIMEOUT_MS + RECONCILE_PERIOD_MS);
    assert!(RECONCILE_LEASE_MS > RECONCILE_FUNCTION_TIMEOUT_MS);
    assert!(RECONCILE_FUNCTION_TIMEOUT_MS < RECONCILE_PERIOD_MS);
    assert!(SETTLED_KEYS_TTL_MS >= 2 * 60 * 60 * 1_000);
    assert!(SQL_LOCK_MS < SQL_STATEMENT_MS);
    assert!(SQL_IDLE_TEST_MS < SQL_ACQUIRE_MS);
    assert!(SQL_STATEMENT_MS < SETTLE_FUNCTION_TIMEOUT_MS);
    assert!(STOCK_MAX < 1 << 53);
    assert!(DEAD_LETTER_WAIT_S * 1_000 < SQS_ATTEMPT_MS);
    // What a call hides stays hidden while it works, and is shown again by itself when it dies.
    assert!(ADMIN_FUNCTION_TIMEOUT_MS < DEAD_LETTER_HIDDEN_S * 1_000);
    // A page begun at the last moment (a look, the sends, the deletions) still ends in time.
    assert!(DEAD_LETTERS_MS + 3 * SQS_OPERATION_MS < ADMIN_FUNCTION_TIMEOUT_MS);
};

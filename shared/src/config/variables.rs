//! Which function reads which variables, for the readers in this folder and for the test that compares them
//! with `template.yaml`.

/// One variable of a function's environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Whether the function refuses to start without it. An empty value counts as none.
    pub required: bool,
}

const fn required(name: &'static str) -> Variable {
    Variable {
        name,
        required: true,
    }
}

const fn optional(name: &'static str) -> Variable {
    Variable {
        name,
        required: false,
    }
}

pub(super) const STAGE: &str = "FLASHSALE_STAGE";
/// Where Redis is, or [`NO_REDIS`].
pub const REDIS_URL: &str = "FLASHSALE_REDIS_URL";
/// The authority behind its certificate.
pub const REDIS_CA_FILE: &str = "FLASHSALE_REDIS_CA_FILE";
/// The value of [`REDIS_URL`] in a stage without Redis: said, so that no omission is taken for it.
pub const NO_REDIS: &str = "none";
pub(super) const DATABASE_URL: &str = "FLASHSALE_DATABASE_URL";
pub(super) const DATABASE_CA_FILE: &str = "FLASHSALE_DATABASE_CA_FILE";
pub(super) const ORDER_QUEUE_URL: &str = "FLASHSALE_ORDER_QUEUE_URL";
pub(super) const EXPIRY_QUEUE_URL: &str = "FLASHSALE_EXPIRY_QUEUE_URL";
pub(super) const ORDER_DLQ_URL: &str = "FLASHSALE_ORDER_DLQ_URL";
pub(super) const EXPIRY_DLQ_URL: &str = "FLASHSALE_EXPIRY_DLQ_URL";
pub(super) const TOKEN_JWKS: &str = "FLASHSALE_TOKEN_JWKS";
pub(super) const TOKEN_ISSUER: &str = "FLASHSALE_TOKEN_ISSUER";
pub(super) const TOKEN_AUDIENCE: &str = "FLASHSALE_TOKEN_AUDIENCE";
pub(super) const PAYMENT_SECRET: &str = "FLASHSALE_PAYMENT_SECRET";
pub(super) const BUYER_RATE: &str = "FLASHSALE_BUYER_RATE";

const DEDUCT: &[Variable] = &[
    required(STAGE),
    required(REDIS_URL),
    optional(REDIS_CA_FILE),
    required(ORDER_QUEUE_URL),
    required(TOKEN_JWKS),
    required(TOKEN_ISSUER),
    required(TOKEN_AUDIENCE),
    optional(BUYER_RATE),
];
const ORDERS: &[Variable] = &[
    required(STAGE),
    required(REDIS_URL),
    optional(REDIS_CA_FILE),
    required(DATABASE_URL),
    optional(DATABASE_CA_FILE),
    required(ORDER_QUEUE_URL),
    required(EXPIRY_QUEUE_URL),
    required(TOKEN_JWKS),
    required(TOKEN_ISSUER),
    required(TOKEN_AUDIENCE),
    required(PAYMENT_SECRET),
];
const ADMIN: &[Variable] = &[
    required(STAGE),
    required(REDIS_URL),
    optional(REDIS_CA_FILE),
    required(DATABASE_URL),
    optional(DATABASE_CA_FILE),
    required(ORDER_QUEUE_URL),
    optional(ORDER_DLQ_URL),
    optional(EXPIRY_DLQ_URL),
    required(TOKEN_JWKS),
    required(TOKEN_ISSUER),
    required(TOKEN_AUDIENCE),
];
const PREHEAT: &[Variable] = &[
    required(STAGE),
    required(REDIS_URL),
    optional(REDIS_CA_FILE),
    required(DATABASE_URL),
    optional(DATABASE_CA_FILE),
    required(TOKEN_JWKS),
    required(TOKEN_ISSUER),
    required(TOKEN_AUDIENCE),
];
const SETTLE: &[Variable] = &[
    required(STAGE),
    required(REDIS_URL),
    optional(REDIS_CA_FILE),
    required(DATABASE_URL),
    optional(DATABASE_CA_FILE),
    required(ORDER_QUEUE_URL),
    required(EXPIRY_QUEUE_URL),
];
const RECONCILE: &[Variable] = &[
    required(STAGE),
    required(REDIS_URL),
    optional(REDIS_CA_FILE),
    required(DATABASE_URL),
    optional(DATABASE_CA_FILE),
    required(ORDER_QUEUE_URL),
    required(EXPIRY_QUEUE_URL),
    optional(ORDER_DLQ_URL),
    required(TOKEN_JWKS),
    required(TOKEN_ISSUER),
    required(TOKEN_AUDIENCE),
];
const MIGRATE: &[Variable] = &[
    required(STAGE),
    required(DATABASE_URL),
    optional(DATABASE_CA_FILE),
];

/// Every function that reads an environment, by its folder's name.
pub const FUNCTIONS: [&str; 8] = [
    "deduct",
    "orders",
    "admin",
    "preheat",
    "settle",
    "expire",
    "reconcile",
    "migrate",
];

/// The variables of a function, in the order in which they are read; empty for an unknown function.
#[must_use]
pub fn variables(function: &str) -> &'static [Variable] {
    match function {
        "deduct" => DEDUCT,
        "orders" => ORDERS,
        "admin" => ADMIN,
        "preheat" => PREHEAT,
        "settle" | "expire" => SETTLE,
        "reconcile" => RECONCILE,
        "migrate" => MIGRATE,
        _ => &[],
    }
}

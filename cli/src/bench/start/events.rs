//! The stores behind a started function, and its first event.

use serde_json::{Value, json};
use shared::{
    adapters::{
        postgres::{PgSettings, PgStore, migrate},
        redis::RedisLedger,
    },
    domain::{RouteInfo, SaleId, ShardCount},
    ports::{RouteReply, StockLedger},
};

use super::{super::BenchError, Function};
use crate::{
    compare::{
        Inventory,
        ours::{EPOCH, Ours, SALE},
    },
    demo::LocalStores,
    local::aws::REGION,
    tokens::{LOCAL_AUDIENCE, LOCAL_ISSUER, SCOPE_BUY, SCOPE_OPERATE},
};

/// More than any number of starts.
const STOCK: u64 = 100_000;
const TOKEN_TTL_S: u64 = 3_600;

/// Redis with one open sale, an empty PostgreSQL, and keys.
pub(super) struct Stores {
    stores: LocalStores,
}

impl Stores {
    pub(super) async fn start() -> Result<Self, BenchError> {
        let wrong = |error: &dyn std::fmt::Display| BenchError::Wrong(error.to_string());
        let stores = LocalStores::start().await.map_err(|error| wrong(&error))?;
        let settings =
            PgSettings::parse(&stores.database_url, None, 1).map_err(|error| wrong(&error))?;
        migrate(PgStore::new(settings).pool())
            .await
            .map_err(|error| wrong(&error))?;
        let ledger = RedisLedger::new(stores.redis().settings());
        let sale = Ours::new(ledger.clone(), 1).map_err(|error| wrong(&error))?;
        sale.init(STOCK).await.map_err(|error| wrong(&error))?;
        let id = SaleId::parse(SALE).map_err(|error| wrong(&error))?;
        let route = RouteInfo {
            shards: ShardCount::ONE,
            epoch: EPOCH,
        };
        match ledger.raise_route(&id, route).await? {
            RouteReply::Raised => Ok(Self { stores }),
            other => Err(BenchError::Wrong(format!("the route: {other:?}"))),
        }
    }

    /// The variables of every function; each reads its own.
    pub(super) fn environment(&self) -> Vec<(&'static str, String)> {
        let queue = |name: &str| format!("https://sqs.{REGION}.amazonaws.com/000000000000/{name}");
        let stores = &self.stores;
        vec![
            ("FLASHSALE_STAGE", "local".to_owned()),
            (
                "FLASHSALE_REDIS_URL",
                format!("redis://127.0.0.1:{}", stores.redis().port()),
            ),
            ("FLASHSALE_DATABASE_URL", stores.database_url.clone()),
            ("FLASHSALE_ORDER_QUEUE_URL", queue("orders")),
            ("FLASHSALE_EXPIRY_QUEUE_URL", queue("expiries")),
            ("FLASHSALE_ORDER_DLQ_URL", queue("dead-orders")),
            (
                "FLASHSALE_TOKEN_JWKS",
                stores.keys.jwks_json().unwrap_or_default(),
            ),
            ("FLASHSALE_TOKEN_ISSUER", LOCAL_ISSUER.to_owned()),
            ("FLASHSALE_TOKEN_AUDIENCE", LOCAL_AUDIENCE.to_owned()),
            ("FLASHSALE_PAYMENT_SECRET", stores.payment_secret.clone()),
        ]
    }

    /// The first event of the start with this number.
    pub(super) fn event(&self, function: Function, number: u32) -> Result<Value, BenchError> {
        let token = |subject: &str, scope| {
            let token = self.stores.keys.token(subject, &[scope], TOKEN_TTL_S);
            token.map_err(|error| BenchError::Wrong(error.to_string()))
        };
        Ok(match function {
            Function::Deduct => {
                let buyer = token(&format!("start-{number}"), SCOPE_BUY)?;
                let path = format!("/sales/{SALE}/orders");
                rest("POST", &path, Some(&buyer), Some(r#"{"quantity":1}"#))
            }
            Function::Orders => rest("GET", "/sales/unknown", None, None),
            Function::Admin => {
                let operator = token("operator", SCOPE_OPERATE)?;
                rest("GET", "/admin/sales", Some(&operator), None)
            }
            Function::Settle | Function::Expire => json!({ "Records": [] }),
            Function::Preheat | Function::Reconcile => json!({ "source": "aws.scheduler" }),
        })
    }
}

/// What the answer to each first event must be: nothing is timed that does not work.
pub(super) fn check(function: Function, answer: &Value) -> Result<(), BenchError> {
    let right = match function {
        Function::Deduct => answer["statusCode"] == 202,
        Function::Orders => answer["statusCode"] == 404,
        Function::Admin => answer["statusCode"] == 200,
        Function::Settle | Function::Expire => answer["batchItemFailures"] == json!([]),
        Function::Preheat | Function::Reconcile => answer.is_object() || answer.is_null(),
    };
    if right {
        return Ok(());
    }
    let name = function.name();
    Err(BenchError::Wrong(format!(
        "{name} answered its first event with {answer}"
    )))
}

/// A call as the REST API hands it on.
fn rest(method: &str, path: &str, token: Option<&str>, body: Option<&str>) -> Value {
    let mut headers = json!({ "Host": "localhost", "Idempotency-Key": "first" });
    if let Some(token) = token {
        headers["Authorization"] = json!(format!("Bearer {token}"));
    }
    if body.is_some() {
        headers["Content-Type"] = json!("application/json");
    }
    json!({
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": method,
        "headers": headers,
        "multiValueHeaders": {},
        "queryStringParameters": null,
        "multiValueQueryStringParameters": null,
        "pathParameters": null,
        "stageVariables": null,
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "start",
            "httpMethod": method,
            "identity": { "sourceIp": "127.0.0.1" },
            "path": path,
            "protocol": "HTTP/1.1",
            "requestId": "first",
            "resourceId": "r",
            "resourcePath": "/{proxy+}",
            "stage": "local",
        },
        "body": body,
        "isBase64Encoded": false,
    })
}

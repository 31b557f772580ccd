//! The functions in this process, on private servers.

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use deduct::{Buy, Deduct, Handler, Outcome, Refusal, SoldOut};
use lambda_http::{
    Body,
    http::{HeaderName, HeaderValue, Method, header},
};
use preheat::{Preheat, PreheatOutcome};
use settle::Settle;
use shared::{
    adapters::{
        postgres::{PgSettings, PgStore, migrate},
        redis::{RedisLedger, RedisSettings},
    },
    config::TokenConfig,
    domain::{
        BodyHash, Currency, IdempotencyKey, Money, OrderId, Quantity, Sale, SaleId, SalePlan,
        SaleTransition, ShardCount, Terms, Units, UnixMillis,
    },
    mirror::shard_of,
    ports::{Actor, Clock, OrderStore, SaleStore, StockLedger, SystemClock, SystemIds},
    routes::Routes,
    web::{Request, Response, TokenVerifier},
};
use tokio::task::JoinSet;

use super::{
    BODY, Books, Drained, KEY, OpenSale, RedisUse, Stand,
    queue::{LoadQueue, Taken},
    redis::Redis,
};
use crate::{
    load::{Auth, Buyer, Heard, LoadConfig, LoadError, QueueKind},
    local::postgres::{LocalPostgres, PostgresOptions},
    tokens::LocalKeys,
};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Far beyond any run.
const FAR: UnixMillis = UnixMillis::new(4_000_000_000_000);
const PAYMENT_WINDOW_S: u64 = 24 * 3_600;

type BuyFunction = Handler<RedisLedger, LoadQueue, SystemClock, SystemIds>;
type SettleFunction = Settle<RedisLedger, PgStore, LoadQueue, SystemClock>;

/// What stays the same for every sale.
#[derive(Debug, Clone, Copy)]
pub(in crate::load) struct Shape {
    pub shards: ShardCount,
    /// Messages of one invocation of settle.
    pub batch: usize,
    /// Invocations of settle at once.
    pub consumers: usize,
    pub auth: Auth,
}

/// The functions and what they run on.
pub(in crate::load) struct InProcess {
    /// Replaced by [`Stand::restart`].
    buy: RwLock<Arc<BuyFunction>>,
    keys: LocalKeys,
    settle: Arc<SettleFunction>,
    preheat: Preheat<RedisLedger, PgStore, SystemIds>,
    queue: LoadQueue,
    key: IdempotencyKey,
    one: Quantity,
    shape: Shape,
    pub redis: Arc<Redis>,
    postgres: Arc<LocalPostgres>,
    sales: Arc<AtomicU64>,
}

impl InProcess {
    /// Starts the servers, and wires the functions as their `main` does.
    pub async fn start(
        config: &LoadConfig,
        shape: Shape,
        keys: &LocalKeys,
    ) -> Result<Self, LoadError> {
        let redis = Arc::new(if config.cluster {
            Redis::cluster(config.engine, shape.shards.get())?
        } else {
            Redis::single(config.engine)?
        });
        let postgres = Arc::new(LocalPostgres::start(PostgresOptions {
            durable: true,
            ..PostgresOptions::default()
        })?);
        let database = postgres.fresh_database().await?;
        // One for each consumer, and for whoever opens and counts sales meanwhile.
        let connections = u32::try_from(shape.consumers)
            .unwrap_or(u32::MAX)
            .saturating_add(2);
        let settings = PgSettings::parse(&postgres.url(&database), None, connections);
        let store = PgStore::new(settings.map_err(wrong)?);
        migrate(store.pool()).await.map_err(wrong)?;
        let queue = match config.queue {
            QueueKind::Fast => LoadQueue::fast(),
            QueueKind::Sqs => LoadQueue::sqs().await?,
        };
        Ok(Self {
            buy: new_process(redis.settings(), queue.clone(), keys)?.into(),
            keys: keys.clone(),
            // Other environments, so other connections.
            settle: Arc::new(Settle {
                ledger: RedisLedger::new(redis.settings()),
                store: store.clone(),
                queue: queue.clone(),
                clock: SystemClock,
            }),
            preheat: Preheat {
                ledger: RedisLedger::new(redis.settings()),
                store,
                ids: SystemIds,
            },
            queue,
            key: IdempotencyKey::parse(KEY)?,
            one: Quantity::parse(1)?,
            shape,
            redis,
            postgres,
            sales: Arc::default(),
        })
    }

    /// A new process with the same servers, whose calls are or are not what the gateway sends.
    pub fn again(&self, auth: Auth) -> Result<Self, LoadError> {
        let keys = self.keys.clone();
        Ok(Self {
            buy: new_process(self.redis.settings(), self.queue.clone(), &keys)?.into(),
            keys,
            settle: Arc::clone(&self.settle),
            preheat: self.preheat.clone(),
            queue: self.queue.clone(),
            key: self.key.clone(),
            one: self.one,
            shape: Shape { auth, ..self.shape },
            redis: Arc::clone(&self.redis),
            postgres: Arc::clone(&self.postgres),
            sales: Arc::clone(&self.sales),
        })
    }

    fn plan(&self, stock: u64) -> Result<SalePlan, LoadError> {
        Ok(SalePlan {
            sku: "SKU-1".to_owned(),
            name: "A phone".to_owned(),
            stock: Units::try_from(stock)?,
            unit_price: Money {
                amount_minor: 9_900,
                currency: Currency::parse("CNY")?,
            },
            terms: Terms {
                limit: self.one,
                opens_at: UnixMillis::new(1),
                closes_at: FAR,
            },
            payment_window_s: PAYMENT_WINDOW_S,
            shards: self.shape.shards,
        })
    }

    /// The sale as SQL has it.
    pub async fn sale(&self, id: &SaleId) -> Result<Sale, LoadError> {
        let sale = self.settle.store.sale(id).await.map_err(wrong)?;
        sale.ok_or_else(|| LoadError::Wrong(format!("{id} is gone")))
    }

    /// A ledger of none of the functions under test.
    pub fn ledger(&self) -> &RedisLedger {
        &self.settle.ledger
    }

    fn buy_function(&self) -> Arc<BuyFunction> {
        Arc::clone(&self.buy.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn wish(&self, sale: &OpenSale, buyer: &Buyer) -> Buy {
        Buy {
            sale_id: sale.id.clone(),
            buyer_id: buyer.id.clone(),
            order_id: OrderId::derive(&sale.id, &buyer.id, &self.key),
            quantity: self.one,
            body_hash: BodyHash::of(BODY.as_bytes()),
        }
    }
}

/// `deduct`, wired as its `main` does.
fn new_process(
    redis: RedisSettings,
    queue: LoadQueue,
    keys: &LocalKeys,
) -> Result<Arc<BuyFunction>, LoadError> {
    let tokens = TokenConfig {
        jwks: keys.jwks_json()?,
        issuer: keys.issuer().to_owned(),
        audience: keys.audience().to_owned(),
    };
    Ok(Arc::new(Handler {
        deduct: Deduct {
            ledger: RedisLedger::new(redis),
            queue,
            clock: SystemClock,
            ids: SystemIds,
            routes: Routes::default(),
            sold_out: SoldOut::default(),
            rate: None,
        },
        tokens: TokenVerifier::new(&tokens).map_err(wrong)?,
    }))
}

/// What a buyer sends, as `lambda_http` hands it over.
fn request(sale: &OpenSale, buyer: &Buyer) -> Request {
    let mut request = Request::new(Body::Text(BODY.to_owned()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = sale.uri.clone();
    let headers = request.headers_mut();
    headers.insert(header::AUTHORIZATION, buyer.authorization.clone());
    headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_static(KEY));
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    request
}

fn wrong(error: impl std::error::Error) -> LoadError {
    LoadError::Wrong(crate::client::with_causes(&error))
}

impl Stand for InProcess {
    fn restart(&self) -> Result<(), LoadError> {
        let new = new_process(self.redis.settings(), self.queue.clone(), &self.keys)?;
        *self.buy.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    async fn open(&self, stock: u64) -> Result<OpenSale, LoadError> {
        let number = self.sales.fetch_add(1, Ordering::Relaxed);
        let id = SaleId::parse(&format!("load-{number}"))?;
        let actor = Actor {
            id: "system:load".to_owned(),
            reason: String::new(),
            request_id: String::new(),
        };
        let store = &self.settle.store;
        let plan = self.plan(stock)?;
        store.put_plan(&id, &plan, &actor).await.map_err(wrong)?;
        store
            .transition(&id, SaleTransition::Approve, &actor)
            .await
            .map_err(wrong)?;
        match self.preheat.run(&id, &actor).await.map_err(wrong)? {
            PreheatOutcome::Opened(_) => OpenSale::new(id, stock),
            other => Err(LoadError::Wrong(format!("preheat answered {other:?}"))),
        }
    }

    async fn buy(&self, sale: &OpenSale, buyer: &Buyer) -> Heard {
        let function = self.buy_function();
        match self.shape.auth {
            Auth::On => heard(&function.handle(request(sale, buyer)).await),
            Auth::Off => match function.deduct.run(&self.wish(sale, buyer)).await {
                Outcome::Accepted {
                    replayed: false, ..
                } => Heard::Won,
                Outcome::Accepted { .. } => Heard::Replayed,
                Outcome::Refused(Refusal::SoldOut { .. }) => Heard::Refused,
                other => Heard::Odd(format!("{other:?}")),
            },
        }
    }

    async fn drain(&self, _: &OpenSale) -> Result<Drained, LoadError> {
        let began = Instant::now();
        let mut tasks: JoinSet<Result<(u64, u64), LoadError>> = JoinSet::new();
        for _ in 0..self.shape.consumers {
            let (queue, settle) = (self.queue.clone(), Arc::clone(&self.settle));
            let most = self.shape.batch;
            tasks.spawn(async move {
                let (mut messages, mut batches) = (0, 0);
                loop {
                    let taken = queue.take(most).await?;
                    if taken.deliveries.is_empty() {
                        return Ok((messages, batches));
                    }
                    settle_one(&settle, &taken).await?;
                    queue.done(&taken).await?;
                    messages += taken.deliveries.len() as u64;
                    batches += 1;
                }
            });
        }
        let (mut messages, mut batches) = (0, 0);
        while let Some(ended) = tasks.join_next().await {
            let (more, in_batches) = ended??;
            messages += more;
            batches += in_batches;
        }
        Ok(Drained {
            messages: Some(messages),
            batches,
            took: began.elapsed(),
        })
    }

    async fn books(&self, sale: &OpenSale) -> Result<Books, LoadError> {
        let sums = self.settle.store.sums(&sale.id).await.map_err(wrong)?;
        let sums = sums.ok_or_else(|| LoadError::Wrong(format!("{} is gone", sale.id)))?;
        let mut books = Books {
            records: 0,
            outbox: 0,
            stock: 0,
            orders: sums.orders.get("awaiting_payment").copied().unwrap_or(0),
            available: sums.sale.available.get(),
        };
        for index in sums.sale.plan.shards.indexes() {
            let shard = shard_of(&sums.sale, index);
            let seen = self.settle.ledger.snapshot(&shard).await.map_err(wrong)?;
            books.records += seen.records;
            books.outbox += seen.outbox;
            books.stock += seen.stock.get();
        }
        Ok(books)
    }

    async fn forget(&self, sale: &OpenSale) -> Result<(), LoadError> {
        // As for a settled sale, but soon.
        let shards = self.shape.shards;
        let retired = self.settle.ledger.retire(&sale.id, shards, 1).await;
        retired.map_err(wrong)
    }

    fn redis_use(&self) -> Result<Option<RedisUse>, LoadError> {
        self.redis.used().map(Some)
    }

    fn must_drain(&self) -> bool {
        true
    }

    fn waiting(&self) -> Option<u64> {
        self.queue.waiting()
    }
}

/// One invocation of settle.
async fn settle_one(settle: &SettleFunction, taken: &Taken) -> Result<(), LoadError> {
    let deadline = SystemClock
        .now()
        .plus(shared::limits::SETTLE_FUNCTION_TIMEOUT_MS);
    let failed = settle.run(&taken.deliveries, deadline).await;
    match failed.len() {
        0 => Ok(()),
        count => Err(LoadError::Wrong(format!("settle failed {count} messages"))),
    }
}

/// Reads an answer without parsing what need not be.
fn heard(response: &Response) -> Heard {
    let status = response.status().as_u16();
    let text = match response.body() {
        Body::Text(text) => text.as_str(),
        _ => "",
    };
    match status {
        202 if response.headers().contains_key("idempotent-replayed") => Heard::Replayed,
        202 => Heard::Won,
        409 if text.contains(r#""code":"sold_out""#) => Heard::Refused,
        _ => {
            let body: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
            Heard::Odd(format!("{status} {}", body["code"].as_str().unwrap_or("?")))
        }
    }
}

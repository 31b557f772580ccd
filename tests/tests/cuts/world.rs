//! The real servers, and the hands of the parent, to which nothing happens.

use aws_sdk_sqs::Client;
use flashsale::local::{
    aws::{Ministack, REGION},
    postgres::{LocalPostgres, PostgresOptions},
    redis::{Engine, LocalRedis},
};
use settle::Settle;
use shared::{
    adapters::postgres::{PgSettings, PgStore, migrate},
    batch::Delivery,
    domain::SaleId,
    ports::{Clock, SystemClock},
};
use tests::cuts::{Hands, StoreAddresses};

/// Deliveries of one receive.
const RECEIVE_MAX: i32 = 10;
const CONNECTIONS_MAX: u32 = 200;

pub struct World {
    pub redis: LocalRedis,
    pub client: Client,
    pub addresses: StoreAddresses,
    pub hands: Hands,
    _postgres: LocalPostgres,
    _ministack: Ministack,
}

impl World {
    pub async fn start() -> Self {
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        let redis = LocalRedis::start(Engine::Valkey).unwrap();
        let postgres = LocalPostgres::start(PostgresOptions {
            connections_max: CONNECTIONS_MAX,
            ..PostgresOptions::default()
        })
        .unwrap();
        let ministack = Ministack::start().unwrap();
        let database = postgres.url(&postgres.fresh_database().await.unwrap());
        let store = PgStore::new(PgSettings::parse(&database, None, 1).unwrap());
        migrate(store.pool()).await.unwrap();
        let client = client(&ministack);
        let addresses = StoreAddresses {
            redis: format!("redis://127.0.0.1:{}", redis.port()),
            database,
            sqs: ministack.endpoint(),
            orders: queue(&client, "orders").await,
            expiries: queue(&client, "expiries").await,
        };
        Self {
            redis,
            hands: Hands::connect(&addresses, "", None),
            client,
            addresses,
            _postgres: postgres,
            _ministack: ministack,
        }
    }

    /// A queue of its own.
    pub async fn queue(&self, name: &str) -> String {
        queue(&self.client, name).await
    }

    /// Everything on the order queue is settled, and deleted when it was.
    pub async fn drain(&self) {
        let mut empty = 0;
        while empty < 2 {
            let received = self
                .client
                .receive_message()
                .queue_url(&self.addresses.orders)
                .max_number_of_messages(RECEIVE_MAX)
                .send()
                .await
                .unwrap();
            let messages = received.messages.unwrap_or_default();
            if messages.is_empty() {
                empty += 1;
                continue;
            }
            let bodies: Vec<String> = messages
                .iter()
                .map(|message| message.body.clone().unwrap())
                .collect();
            assert_eq!(self.settle(&bodies).await, Vec::<String>::new());
            for message in messages {
                self.client
                    .delete_message()
                    .queue_url(&self.addresses.orders)
                    .receipt_handle(message.receipt_handle.unwrap())
                    .send()
                    .await
                    .unwrap();
            }
        }
    }

    /// Settles these messages; those that failed.
    pub async fn settle(&self, bodies: &[String]) -> Vec<String> {
        let deliveries: Vec<Delivery> = bodies
            .iter()
            .enumerate()
            .map(|(number, body)| Delivery {
                id: number.to_string(),
                body: body.clone(),
            })
            .collect();
        let settle = Settle {
            ledger: self.hands.ledger.clone(),
            store: self.hands.store.clone(),
            queue: self.hands.queue.clone(),
            clock: SystemClock,
        };
        settle
            .run(&deliveries, SystemClock.now().plus(60_000))
            .await
    }

    /// Deletes every key of a sale's first shard, as if its node had been lost.
    pub fn lose_shard(&self, sale: &SaleId) {
        let pattern = format!("fs:{{{sale}:0.*}}:*");
        let keys: Vec<String> = self.redis.command(redis::cmd("KEYS").arg(pattern)).unwrap();
        assert!(!keys.is_empty());
        let gone: u64 = self.redis.command(redis::cmd("DEL").arg(&keys)).unwrap();
        assert_eq!(gone, keys.len() as u64);
    }
}

fn client(ministack: &Ministack) -> Client {
    use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(REGION))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .endpoint_url(ministack.endpoint())
        .build();
    Client::from_conf(config)
}

async fn queue(client: &Client, name: &str) -> String {
    let made = client.create_queue().queue_name(name).send().await.unwrap();
    made.queue_url.unwrap()
}

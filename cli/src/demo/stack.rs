//! Everything that a sale needs, private and on this machine: Redis, PostgreSQL, and a local AWS with the real
//! template on it.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use serde_json::json;
use shared::adapters::redis::RedisLedger;

use super::{DemoError, LedgerProbe, Progress, Target};
use crate::{
    client::Api,
    local::{
        LocalError,
        aws::{DeploySettings, LocalAws},
        postgres::{LocalPostgres, PostgresOptions},
        redis::{Engine, LocalRedis},
    },
    tokens::{LocalKeys, random_secret},
};

/// Connections that the functions' environments may open together.
const DATABASE_CONNECTIONS_MAX: u32 = 200;

/// The stores, before anything runs on them.
#[derive(Debug)]
pub struct LocalStores {
    redis: LocalRedis,
    postgres: LocalPostgres,
    /// The database's address.
    pub database_url: String,
    /// Signs tokens.
    pub keys: LocalKeys,
    /// The payment provider's secret.
    pub payment_secret: String,
}

impl LocalStores {
    /// Starts both at once.
    pub async fn start() -> Result<Self, DemoError> {
        let redis = tokio::task::spawn_blocking(|| LocalRedis::start(Engine::Redis));
        let postgres = tokio::task::spawn_blocking(|| {
            LocalPostgres::start(PostgresOptions {
                connections_max: DATABASE_CONNECTIONS_MAX,
                ..PostgresOptions::default()
            })
        });
        let (redis, postgres) = tokio::try_join!(redis, postgres)?;
        let (redis, postgres) = (redis?, postgres?);
        let database = postgres.fresh_database().await?;
        Ok(Self {
            database_url: postgres.url(&database),
            redis,
            postgres,
            keys: LocalKeys::generate()?,
            payment_secret: random_secret()?,
        })
    }

    /// Reads the stock in this Redis.
    #[must_use]
    pub fn probe(&self) -> LedgerProbe<RedisLedger> {
        LedgerProbe(Arc::new(RedisLedger::new(self.redis.settings())))
    }

    /// Writes the signing key beside Redis's own files, where it is removed with them, so that further
    /// tokens can be made while all this runs.
    pub fn save_key(&self) -> Result<PathBuf, DemoError> {
        let path = self.redis.server().dir().join("signing-key.pem");
        self.keys.save(&path)?;
        Ok(path)
    }

    /// The private Redis.
    #[must_use]
    pub const fn redis(&self) -> &LocalRedis {
        &self.redis
    }

    /// The private PostgreSQL.
    #[must_use]
    pub const fn postgres(&self) -> &LocalPostgres {
        &self.postgres
    }

    /// What a deployment on these stores is told.
    pub fn settings(
        &self,
        parameters: BTreeMap<String, String>,
    ) -> Result<DeploySettings, DemoError> {
        Ok(DeploySettings {
            redis_url: format!("redis://127.0.0.1:{}", self.redis.port()),
            database_url: self.database_url.clone(),
            token_jwks: self.keys.jwks_json()?,
            token_issuer: self.keys.issuer().to_owned(),
            token_audience: self.keys.audience().to_owned(),
            payment_secret: self.payment_secret.clone(),
            parameters,
        })
    }
}

/// A deployed system. Dropping it ends every server that it started.
#[derive(Debug)]
pub struct LocalStack {
    // First, so that the functions end before their stores.
    aws: LocalAws,
    stores: LocalStores,
}

impl LocalStack {
    /// Starts the stores, builds and deploys the template with `parameters`, and migrates the database.
    pub async fn start(
        parameters: BTreeMap<String, String>,
        progress: &Arc<Progress>,
    ) -> Result<Self, DemoError> {
        let starting = async {
            let stores = LocalStores::start().await?;
            Ok::<_, DemoError>((stores, "Redis and PostgreSQL, private".to_owned()))
        };
        let stores = progress.stage("start the stores", starting).await?;
        let settings = stores.settings(parameters)?;
        let deploying = async {
            let told = Arc::clone(progress);
            let deploy = move || LocalAws::deploy(&settings, &mut |line| told.tick(line));
            let aws = tokio::task::spawn_blocking(deploy).await??;
            let remark = format!("{} is up", aws.api_url());
            Ok::<_, DemoError>((aws, remark))
        };
        let aws = progress
            .stage("build and deploy template.yaml", deploying)
            .await?;
        let migrating = async {
            let answer = aws.invoke("migrate", &json!({})).await?;
            if answer.is_ok() {
                Ok(((), format!("{}", answer.payload)))
            } else {
                Err(DemoError::Local(LocalError::NotReady {
                    program: "migrate".to_owned(),
                    problem: answer.payload.to_string(),
                    log_tail: String::new(),
                }))
            }
        };
        progress.stage("migrate the database", migrating).await?;
        Ok(Self { aws, stores })
    }

    /// Where to drive a sale.
    pub fn target(&self) -> Result<Target, DemoError> {
        Ok(Target {
            api: Api::new(self.aws.api_url())?,
            keys: self.stores.keys.clone(),
            payment_secret: self.stores.payment_secret.clone(),
        })
    }

    /// The local AWS.
    #[must_use]
    pub const fn aws(&self) -> &LocalAws {
        &self.aws
    }

    /// The stores.
    #[must_use]
    pub const fn stores(&self) -> &LocalStores {
        &self.stores
    }
}

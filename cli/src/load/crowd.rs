//! The buyers, made before anything is measured: signing their tokens is the identity provider's work.

use lambda_http::http::HeaderValue;
use shared::domain::{BuyerId, ShardCount};

use super::LoadError;
use crate::tokens::{LocalKeys, SCOPE_BUY};

/// One buyer, with what she sends.
#[derive(Debug, Clone)]
pub struct Buyer {
    /// Who she is.
    pub id: BuyerId,
    /// Her token.
    pub token: String,
    /// The same as a header.
    pub(super) authorization: HeaderValue,
}

/// All of them. The buyer of each place has the shard of that place modulo the shards, so that the first so many
/// of them can buy exactly as many units.
#[derive(Debug)]
pub struct Crowd(Vec<Buyer>);

impl Crowd {
    /// Makes `count` buyers whose tokens are valid for `ttl_s` seconds.
    pub fn sign(
        keys: &LocalKeys,
        count: usize,
        shards: ShardCount,
        ttl_s: u64,
    ) -> Result<Self, LoadError> {
        let mut waiting: Vec<Vec<BuyerId>> = vec![Vec::new(); shards.indexes().count()];
        let mut buyers = Vec::with_capacity(count);
        let mut number = 0_u64;
        while buyers.len() < count {
            let lane = buyers.len() % waiting.len();
            let id = loop {
                if let Some(id) = waiting[lane].pop() {
                    break id;
                }
                let id = BuyerId::parse(&format!("buyer-{number:09}"))?;
                number += 1;
                waiting[usize::from(id.home_shard(shards).get())].push(id);
            };
            let token = keys.token(id.as_str(), &[SCOPE_BUY], ttl_s)?;
            let authorization = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|error| LoadError::Wrong(error.to_string()))?;
            buyers.push(Buyer {
                id,
                token,
                authorization,
            });
        }
        Ok(Self(buyers))
    }

    /// The buyer of a place, counted around.
    #[must_use]
    pub fn get(&self, place: usize) -> &Buyer {
        &self.0[place % self.0.len()]
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nobody.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

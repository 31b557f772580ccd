//! Tokens whose signature this process has checked already.
//!
//! Checking a signature is most of what a call costs the function, and in a rush most calls come from buyers who
//! came before. A token is found by the SHA-256 of all of it, so a changed one is never found; what is found has
//! everything checked that time can change. Issuer and audience cannot: they are the verifier's own, as its keys
//! are, and this memory ends with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::token::Claims;
use crate::limits::{TOKEN_LEEWAY_S, TOKENS_VERIFIED_MAX, VERIFIED_CLAIMS_MAX_BYTES};

type Generation = HashMap<[u8; 32], Arc<Claims>>;

/// At most [`TOKENS_VERIFIED_MAX`] tokens; those that were not seen for longest go first, half of them at a time.
#[derive(Default)]
pub(super) struct Verified(Mutex<(Generation, Generation)>);

/// The name of a token here.
#[derive(Clone, Copy)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(super) fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }
}

impl Verified {
    /// The claims of a token that was verified before, unless it has expired since.
    pub(super) fn find(&self, token: Fingerprint, now_s: u64) -> Option<Arc<Claims>> {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (young, old) = &mut *generations;
        let claims = if let Some(claims) = young.get(&token.0) {
            Arc::clone(claims)
        } else {
            let claims = old.remove(&token.0)?;
            insert(&mut generations, token, &claims);
            claims
        };
        claims.lasts_at(now_s).then_some(claims)
    }

    /// Keeps the claims of a token that has just been verified. Long ones, and those whose end is no whole second,
    /// are verified each time instead.
    pub(super) fn keep(&self, token: Fingerprint, claims: &Arc<Claims>) {
        let bytes = claims.sub.len() + claims.scope.len();
        if bytes <= VERIFIED_CLAIMS_MAX_BYTES && claims.exp.is_u64() {
            let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            insert(&mut generations, token, claims);
        }
    }
}

fn insert((young, old): &mut (Generation, Generation), token: Fingerprint, claims: &Arc<Claims>) {
    if young.len() >= TOKENS_VERIFIED_MAX / 2 {
        *old = std::mem::take(young);
    }
    young.insert(token.0, Arc::clone(claims));
}

impl Claims {
    /// As the first check did, with its leeway. A token that was valid once does not become "not yet valid".
    fn lasts_at(&self, now_s: u64) -> bool {
        let exp = self.exp.as_u64().unwrap_or(0);
        exp.saturating_add(TOKEN_LEEWAY_S) >= now_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(exp: serde_json::Value) -> Arc<Claims> {
        Arc::new(Claims {
            sub: "ann".to_owned(),
            scope: "sale:buy".to_owned(),
            exp,
        })
    }

    #[test]
    fn a_kept_token_is_found_until_it_expires_and_a_changed_one_never() {
        let memory = Verified::default();
        memory.keep(Fingerprint::of("a.b.c"), &claims(1_000.into()));
        let last = 1_000 + TOKEN_LEEWAY_S;
        assert!(memory.find(Fingerprint::of("a.b.c"), last).is_some());
        assert!(memory.find(Fingerprint::of("a.b.c"), last + 1).is_none());
        for changed in ["a.b.d", "a.c.c", "a.b.c ", "a.b", ""] {
            assert!(memory.find(Fingerprint::of(changed), 0).is_none());
        }
    }

    #[test]
    fn what_could_be_judged_otherwise_later_or_is_long_is_not_kept() {
        let memory = Verified::default();
        let mut long = (*claims(1_000.into())).clone();
        long.sub = "x".repeat(VERIFIED_CLAIMS_MAX_BYTES);
        for claims in [claims(999.5.into()), claims("999".into()), Arc::new(long)] {
            memory.keep(Fingerprint::of("t"), &claims);
            assert!(memory.find(Fingerprint::of("t"), 0).is_none());
        }
    }

    #[test]
    fn the_bound_holds_and_those_who_come_again_stay() {
        let memory = Verified::default();
        let claims = claims(u64::MAX.into());
        let often = Fingerprint::of("often");
        memory.keep(often, &claims);
        for number in 0..3 * TOKENS_VERIFIED_MAX {
            memory.keep(Fingerprint::of(&number.to_string()), &claims);
            assert!(memory.find(often, 0).is_some());
        }
        let (young, old) = &*memory.0.lock().unwrap();
        assert!(young.len() + old.len() <= TOKENS_VERIFIED_MAX);
        assert!(young.len() + old.len() > TOKENS_VERIFIED_MAX / 2);
        assert!(!young.contains_key(&Fingerprint::of("0").0));
    }
}

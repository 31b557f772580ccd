//! Keys for runs on one machine: a signing key made at run time, the tokens of buyers and operators that it
//! signs, and the signatures of a pretended payment provider.
//!
//! A deployment takes its public keys from a real identity provider (`FLASHSALE_TOKEN_JWKS`); nothing here is
//! ever part of one.

use std::{fs, io::Write, os::unix::fs::OpenOptionsExt, path::Path};

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    hmac, rsa,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair},
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use clap::ValueEnum;
use jsonwebtoken::{
    Algorithm, EncodingKey, Header,
    jwk::{Jwk, JwkSet, KeyOperations, PublicKeyUse},
};
use serde::Serialize;
use shared::{
    domain::UnixMillis,
    ports::{Clock, SystemClock},
};

/// The issuer of local tokens.
pub const LOCAL_ISSUER: &str = "https://issuer.flashsale.localhost";
/// The audience of local tokens.
pub const LOCAL_AUDIENCE: &str = "flashsale";
/// What a buyer's token must carry.
pub const SCOPE_BUY: &str = "sale:buy";
/// What an operator's token must carry.
pub const SCOPE_OPERATE: &str = "sale:operate";
/// The header that carries a payment event's signature.
pub const SIGNATURE_HEADER: &str = "Flashsale-Signature";

const KEY_ID: &str = "local-1";
const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// Why a key cannot be made, read or used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The cryptographic library refused.
    #[error("{0}")]
    Crypto(&'static str),
    /// A token or key set could not be made.
    #[error("sign a token")]
    Token(#[from] jsonwebtoken::errors::Error),
    /// The key set could not be written as JSON.
    #[error("write the key set as JSON")]
    Json(#[from] serde_json::Error),
    /// The file is not there or not a key.
    #[error("the key file {path}: {problem}")]
    File {
        /// Which file.
        path: String,
        /// What was wrong, and what would be right.
        problem: String,
    },
}

/// How tokens are signed: each way that functions accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeyKind {
    /// P-256.
    Es256,
    /// RSA, 2048 bits.
    Rs256,
    /// Ed25519.
    #[value(name = "eddsa")]
    EdDsa,
}

impl KeyKind {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Es256, Self::Rs256, Self::EdDsa];

    const fn algorithm(self) -> Algorithm {
        match self {
            Self::Es256 => Algorithm::ES256,
            Self::Rs256 => Algorithm::RS256,
            Self::EdDsa => Algorithm::EdDSA,
        }
    }

    /// As a token's `alg` names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// A key pair that signs local tokens.
#[derive(Clone)]
pub struct LocalKeys {
    kind: KeyKind,
    pkcs8: Vec<u8>,
    signing: EncodingKey,
    issuer: String,
    audience: String,
}

impl std::fmt::Debug for LocalKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The private part stays out of every log.
        f.debug_struct("LocalKeys")
            .field("issuer", &self.issuer)
            .field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: &'a str,
    scope: String,
    iat: u64,
    nbf: u64,
    exp: u64,
}

impl LocalKeys {
    /// Makes a new P-256 key pair.
    pub fn generate() -> Result<Self, KeyError> {
        Self::generate_kind(KeyKind::Es256)
    }

    /// Makes a new key pair of this kind.
    pub fn generate_kind(kind: KeyKind) -> Result<Self, KeyError> {
        let failed = |_| KeyError::Crypto("make a key pair");
        let pkcs8 = match kind {
            KeyKind::Es256 => EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)
                .and_then(|pair| pair.to_pkcs8v1())
                .map_err(failed)?
                .as_ref()
                .to_vec(),
            KeyKind::Rs256 => {
                let pair = rsa::KeyPair::generate(rsa::KeySize::Rsa2048).map_err(failed)?;
                AsDer::<Pkcs8V1Der<'_>>::as_der(&pair)
                    .map_err(failed)?
                    .as_ref()
                    .to_vec()
            }
            KeyKind::EdDsa => Ed25519KeyPair::generate()
                .and_then(|pair| pair.to_pkcs8v1())
                .map_err(failed)?
                .as_ref()
                .to_vec(),
        };
        Self::from_pkcs8(kind, pkcs8)
    }

    fn from_pkcs8(kind: KeyKind, pkcs8: Vec<u8>) -> Result<Self, KeyError> {
        Ok(Self {
            kind,
            signing: match kind {
                KeyKind::Es256 => EncodingKey::from_ec_der(&pkcs8),
                // Of the binary form it takes the inner part only.
                KeyKind::Rs256 => EncodingKey::from_rsa_pem(pem(&pkcs8).as_bytes())?,
                KeyKind::EdDsa => EncodingKey::from_ed_der(&pkcs8),
            },
            pkcs8,
            issuer: LOCAL_ISSUER.to_owned(),
            audience: LOCAL_AUDIENCE.to_owned(),
        })
    }

    /// Reads the P-256 key pair that [`Self::save`] wrote.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let file_error = |problem: String| KeyError::File {
            path: path.display().to_string(),
            problem,
        };
        let text = fs::read_to_string(path).map_err(|error| file_error(error.to_string()))?;
        let expected = || file_error("it is not a P-256 key in PKCS #8 PEM".to_owned());
        let body: String = text
            .trim()
            .strip_prefix(PEM_BEGIN)
            .and_then(|rest| rest.strip_suffix(PEM_END))
            .ok_or_else(expected)?
            .split_whitespace()
            .collect();
        let pkcs8 = BASE64.decode(body).map_err(|_| expected())?;
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8)
            .map_err(|_| expected())?;
        Self::from_pkcs8(KeyKind::Es256, pkcs8)
    }

    /// Writes the key pair as PEM that only its owner can read. Refuses to overwrite a file.
    pub fn save(&self, path: &Path) -> Result<(), KeyError> {
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .and_then(|mut file| file.write_all(pem(&self.pkcs8).as_bytes()))
            .map_err(|error| KeyError::File {
                path: path.display().to_string(),
                problem: error.to_string(),
            })
    }

    /// The public key as a JWK set: the value of `FLASHSALE_TOKEN_JWKS`.
    pub fn jwks_json(&self) -> Result<String, KeyError> {
        let mut jwk = Jwk::from_encoding_key(&self.signing, self.kind.algorithm())?;
        jwk.common.key_id = Some(KEY_ID.to_owned());
        jwk.common.public_key_use = Some(PublicKeyUse::Signature);
        jwk.common.key_operations = Some(vec![KeyOperations::Verify]);
        Ok(serde_json::to_string(&JwkSet { keys: vec![jwk] })?)
    }

    /// The value of `FLASHSALE_TOKEN_ISSUER`.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The value of `FLASHSALE_TOKEN_AUDIENCE`.
    #[must_use]
    pub fn audience(&self) -> &str {
        &self.audience
    }

    /// A token for `subject` with these scopes, valid from now for `ttl_s` seconds.
    pub fn token(&self, subject: &str, scopes: &[&str], ttl_s: u64) -> Result<String, KeyError> {
        let now_s = SystemClock.now().get() / 1_000;
        let claims = Claims {
            iss: &self.issuer,
            aud: &self.audience,
            sub: subject,
            scope: scopes.join(" "),
            iat: now_s,
            nbf: now_s,
            exp: now_s + ttl_s,
        };
        let mut header = Header::new(self.kind.algorithm());
        header.kid = Some(KEY_ID.to_owned());
        Ok(jsonwebtoken::encode(&header, &claims, &self.signing)?)
    }
}

/// A key in PKCS #8 as PEM, in lines of 64 characters.
fn pem(pkcs8: &[u8]) -> String {
    let encoded = BASE64.encode(pkcs8);
    let lines = encoded.as_bytes().chunks(64).map(String::from_utf8_lossy);
    let body: Vec<_> = lines.collect();
    format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", body.join("\n"))
}

/// The `Flashsale-Signature` of a payment event: `t=<unix seconds>,v1=<hex>`, where the second part is the
/// HMAC-SHA256 of `t`, a dot and the body as sent.
#[must_use]
pub fn payment_signature(secret: &str, at: UnixMillis, body: &str) -> String {
    let t = at.get() / 1_000;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signature = hex::encode(hmac::sign(&key, format!("{t}.{body}").as_bytes()));
    format!("t={t},v1={signature}")
}

/// A new secret of 32 random bytes in hex, for the pretended payment provider.
pub fn random_secret() -> Result<String, KeyError> {
    let mut bytes = [0; 32];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| KeyError::Crypto("get random bytes"))?;
    Ok(hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{DecodingKey, Validation, decode};
    use serde_json::Value;

    use super::*;

    fn check(
        keys: &LocalKeys,
        token: &str,
        audience: &str,
    ) -> Result<Value, jsonwebtoken::errors::Error> {
        let set: JwkSet = serde_json::from_str(&keys.jwks_json().unwrap()).unwrap();
        let key = DecodingKey::from_jwk(set.find(KEY_ID).unwrap()).unwrap();
        let mut validation = Validation::new(Algorithm::ES256);
        validation.set_audience(&[audience]);
        validation.set_issuer(&[LOCAL_ISSUER]);
        decode::<Value>(token, &key, &validation).map(|data| data.claims)
    }

    #[test]
    fn a_token_verifies_with_its_own_key_set_and_with_no_other() {
        let keys = LocalKeys::generate().unwrap();
        let token = keys
            .token("alice", &[SCOPE_BUY, SCOPE_OPERATE], 60)
            .unwrap();
        let claims = check(&keys, &token, LOCAL_AUDIENCE).unwrap();
        assert_eq!(claims["sub"], "alice");
        assert_eq!(claims["scope"], "sale:buy sale:operate");
        assert!(check(&keys, &token, "elsewhere").is_err());
        assert!(check(&LocalKeys::generate().unwrap(), &token, LOCAL_AUDIENCE).is_err());
    }

    #[test]
    fn functions_accept_every_kind_of_key() {
        for kind in KeyKind::ALL {
            let keys = LocalKeys::generate_kind(kind).unwrap();
            let set: JwkSet = serde_json::from_str(&keys.jwks_json().unwrap()).unwrap();
            let key = DecodingKey::from_jwk(set.find(KEY_ID).unwrap()).unwrap();
            let mut validation = Validation::new(kind.algorithm());
            validation.set_audience(&[LOCAL_AUDIENCE]);
            let token = keys.token("carol", &[SCOPE_BUY], 60).unwrap();
            let claims = decode::<Value>(&token, &key, &validation).unwrap().claims;
            assert_eq!(claims["sub"], "carol", "{kind:?}");
        }
    }

    #[test]
    fn a_saved_key_signs_for_the_same_key_set_and_is_never_overwritten() {
        let path = std::env::temp_dir().join(format!("flashsale-key-{}", random_secret().unwrap()));
        let keys = LocalKeys::generate().unwrap();
        keys.save(&path).unwrap();
        assert!(keys.save(&path).is_err());
        let loaded = LocalKeys::load(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(loaded.jwks_json().unwrap(), keys.jwks_json().unwrap());
        let token = loaded.token("bob", &[SCOPE_BUY], 60).unwrap();
        assert!(check(&keys, &token, LOCAL_AUDIENCE).is_ok());
        let error = LocalKeys::load(Path::new("/nonexistent/key")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/key"), "{error}");
    }

    #[test]
    fn the_payment_signature_is_the_hmac_of_time_and_body() {
        // openssl: printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret
        let expected =
            "t=1700000000,v1=49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686";
        let at = UnixMillis::new(1_700_000_000_999);
        assert_eq!(payment_signature("secret", at, r#"{"a":1}"#), expected);
    }
}

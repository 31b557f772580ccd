//! Tokens: who calls, and what they may do.
//!
//! JWTs are checked here, in the function, against configured public keys, so that the same check runs on one
//! machine and deployed. Each key is parsed once and bound to one algorithm; a token cannot choose another. The
//! signature of a token that comes again is not checked again, everything else about it is.

use std::sync::Arc;

use jsonwebtoken::jwk::{Jwk, JwkSet, KeyAlgorithm};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;

use super::verified::{Fingerprint, Verified};
use super::{Call, Problem, ProblemCode};
use crate::config::{ConfigError, Fault, TokenConfig};
use crate::domain::BuyerId;
use crate::limits::{TOKEN_LEEWAY_S, TOKEN_MAX_BYTES};
use crate::ports::{Clock, SystemClock};

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Buying, and one's own orders.
    Buy,
    /// The operator's calls.
    Operate,
}

impl Scope {
    /// Its name in the token's `scope`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buy => "sale:buy",
            Self::Operate => "sale:operate",
        }
    }
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The token's subject.
    pub subject: String,
    /// The buyer that the subject is.
    pub buyer_id: BuyerId,
}

/// Checks tokens against configured keys.
pub struct TokenVerifier {
    keys: Vec<Key>,
    verified: Verified,
}

struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    decoding: DecodingKey,
    validation: Validation,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Claims {
    pub(super) sub: String,
    #[serde(default)]
    pub(super) scope: String,
    /// A number; the verification sees to it.
    #[serde(default)]
    pub(super) exp: serde_json::Value,
}

impl TokenVerifier {
    /// A verifier for these keys, this issuer and this audience.
    pub fn new(config: &TokenConfig) -> Result<Self, ConfigError> {
        let fault = |problem: String| ConfigError {
            faults: vec![Fault {
                variable: "FLASHSALE_TOKEN_JWKS",
                problem,
                expected: "a JSON Web Key Set of public keys for ES256, RS256 or EdDSA",
            }],
        };
        let set: JwkSet = serde_json::from_str(&config.jwks)
            .map_err(|error| fault(format!("it cannot be read ({error})")))?;
        let keys = set
            .keys
            .iter()
            .enumerate()
            .map(|(index, jwk)| {
                Key::new(jwk, config).map_err(|problem| fault(format!("key {index}: {problem}")))
            })
            .collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(fault("it has no key".into()));
        }
        Ok(Self {
            keys,
            verified: Verified::default(),
        })
    }

    /// The caller of a call that needs `scope`: `unauthenticated` without a valid token, `forbidden` without
    /// the scope.
    pub fn caller(&self, call: &Call<'_>, scope: Scope) -> Result<Caller, Problem> {
        let header = call.header("authorization")?.ok_or_else(|| {
            refused(
                "Send the header Authorization: Bearer TOKEN.",
                "请在请求头中提供 Authorization: Bearer TOKEN。",
                "Bearer",
            )
        })?;
        let token = match header.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
            _ => {
                return Err(refused(
                    "Authorization: expected Bearer TOKEN.",
                    "Authorization 应为 Bearer TOKEN。",
                    "Bearer",
                ));
            }
        };
        let claims = self.claims(token)?;
        let Some(buyer_id) = BuyerId::from_subject(&claims.sub) else {
            return Err(invalid("its subject is empty", "主体为空"));
        };
        if !claims.scope.split(' ').any(|word| word == scope.as_str()) {
            let needed = scope.as_str();
            return Err(Problem::new(ProblemCode::Forbidden)
                .detail(
                    format!("The token lacks the scope {needed}."),
                    format!("令牌缺少权限 {needed}。"),
                )
                .header(
                    "www-authenticate",
                    format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\""),
                ));
        }
        Ok(Caller {
            subject: claims.sub.clone(),
            buyer_id,
        })
    }

    fn claims(&self, token: &str) -> Result<Arc<Claims>, Problem> {
        if token.len() > TOKEN_MAX_BYTES {
            return Err(invalid("it is too long", "过长"));
        }
        let fingerprint = Fingerprint::of(token);
        // The wall clock, as the verification itself reads it.
        let now_s = SystemClock.now().get() / 1_000;
        if let Some(claims) = self.verified.find(fingerprint, now_s) {
            return Ok(claims);
        }
        let claims = Arc::new(self.verify(token)?);
        self.verified.keep(fingerprint, &claims);
        Ok(claims)
    }

    fn verify(&self, token: &str) -> Result<Claims, Problem> {
        use jsonwebtoken::errors::ErrorKind;
        let Ok(header) = decode_header(token) else {
            return Err(invalid("it is no JWT", "不是 JWT"));
        };
        let mut reason = ("no configured key fits it", "没有匹配的密钥");
        for key in self.keys.iter().filter(|key| key.fits(&header)) {
            match decode::<Claims>(token, &key.decoding, &key.validation) {
                Ok(data) => return Ok(data.claims),
                Err(error) => {
                    reason = match error.kind() {
                        ErrorKind::ExpiredSignature => ("it has expired", "已过期"),
                        ErrorKind::ImmatureSignature => ("it is not valid yet", "尚未生效"),
                        ErrorKind::InvalidAudience => ("it is for another audience", "受众不符"),
                        ErrorKind::InvalidIssuer => ("it is from another issuer", "签发者不符"),
                        ErrorKind::MissingRequiredClaim(_) => {
                            ("it lacks exp, aud, iss or sub", "缺少 exp、aud、iss 或 sub")
                        }
                        ErrorKind::InvalidSignature => ("its signature is wrong", "签名错误"),
                        _ => ("it cannot be read", "无法读取"),
                    };
                }
            }
        }
        Err(invalid(reason.0, reason.1))
    }
}

impl Key {
    fn new(jwk: &Jwk, config: &TokenConfig) -> Result<Self, String> {
        let algorithm = match jwk.common.key_algorithm {
            Some(KeyAlgorithm::ES256) => Algorithm::ES256,
            Some(KeyAlgorithm::RS256) => Algorithm::RS256,
            Some(KeyAlgorithm::EdDSA) => Algorithm::EdDSA,
            _ => return Err("its alg is none of ES256, RS256, EdDSA".into()),
        };
        let decoding = DecodingKey::from_jwk(jwk).map_err(|error| error.to_string())?;
        if decoding.family() != algorithm.family() {
            return Err("its kty does not fit its alg".into());
        }
        let mut validation = Validation::new(algorithm);
        validation.leeway = TOKEN_LEEWAY_S;
        validation.validate_nbf = true;
        validation.set_issuer(&[&config.issuer]);
        validation.set_audience(&[&config.audience]);
        validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
        Ok(Self {
            id: jwk.common.key_id.clone(),
            algorithm,
            decoding,
            validation,
        })
    }

    fn fits(&self, header: &jsonwebtoken::Header) -> bool {
        let same_id = header.kid.is_none() || header.kid == self.id;
        same_id && header.alg == self.algorithm
    }
}

fn refused(en: &str, zh: &str, challenge: &str) -> Problem {
    Problem::new(ProblemCode::Unauthenticated)
        .detail(en, zh)
        .header("www-authenticate", challenge)
}

fn invalid(en: &str, zh: &str) -> Problem {
    refused(
        &format!("The token is not accepted: {en}."),
        &format!("令牌无效:{zh}。"),
        "Bearer error=\"invalid_token\"",
    )
}

//! Reads variables and collects what is wrong with them.

use std::path::PathBuf;

use super::{
    BuyerRate, ConfigError, DatabaseConfig, Fault, PaymentConfig, RedisConfig, Secret, Stage,
    TokenConfig,
    variables::{
        BUYER_RATE, DATABASE_CA_FILE, DATABASE_URL, EXPIRY_DLQ_URL, EXPIRY_QUEUE_URL, NO_REDIS,
        ORDER_DLQ_URL, ORDER_QUEUE_URL, PAYMENT_SECRET, REDIS_CA_FILE, REDIS_URL, STAGE,
        TOKEN_AUDIENCE, TOKEN_ISSUER, TOKEN_JWKS,
    },
};
use crate::limits::RATE_MAX_PER_WINDOW;

/// Shortest secret accepted outside `local`, in bytes: what HMAC-SHA256 can use in full.
const SECRET_MIN_BYTES: usize = 32;
/// Shortest password of a store accepted outside `local`, in bytes.
const PASSWORD_MIN_BYTES: usize = 12;
/// Largest per-buyer limit.
const RATE_MAX: u32 = 1_000;

const REDIS_EXPECTED: &str = "rediss://[user:password@]host[:port][?cluster=true] (in cluster mode several, separated by commas), or redis:// for this machine with FLASHSALE_STAGE=local, or none for queued sales only";
const DATABASE_EXPECTED: &str = "postgres://user:password@host[:port]/name";
const QUEUE_EXPECTED: &str = "the queue's URL, https:// (http:// with FLASHSALE_STAGE=local)";
const JWKS_EXPECTED: &str = "a JSON Web Key Set of public keys, each with kty and alg ES256, RS256 or EdDSA, such as {\"keys\":[…]}";

/// Reads one environment.
pub(super) struct Reader<'a, E> {
    env: &'a E,
    stage: Option<Stage>,
    pub(super) faults: Vec<Fault>,
}

impl<'a, E: Fn(&str) -> Option<String>> Reader<'a, E> {
    pub(super) fn new(env: &'a E) -> Self {
        Self {
            env,
            stage: None,
            faults: Vec::new(),
        }
    }

    pub(super) fn into_error(self) -> ConfigError {
        ConfigError {
            faults: self.faults,
        }
    }

    /// Only a stage that says so is local; an unreadable one gets the strict rules.
    fn is_local(&self) -> bool {
        self.stage == Some(Stage::Local)
    }

    fn fault<T>(
        &mut self,
        variable: &'static str,
        problem: impl Into<String>,
        expected: &'static str,
    ) -> Option<T> {
        self.faults.push(Fault {
            variable,
            problem: problem.into(),
            expected,
        });
        None
    }

    fn optional(&self, variable: &'static str) -> Option<String> {
        (self.env)(variable)
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    }

    fn required(&mut self, variable: &'static str, expected: &'static str) -> Option<String> {
        self.optional(variable)
            .or_else(|| self.fault(variable, "it is missing or empty", expected))
    }

    pub(super) fn stage(&mut self) -> Option<Stage> {
        const EXPECTED: &str = "local, dev or prod";
        let text = self.required(STAGE, EXPECTED)?;
        self.stage = [Stage::Local, Stage::Dev, Stage::Prod]
            .into_iter()
            .find(|stage| stage.as_str() == text);
        match self.stage {
            Some(stage) => Some(stage),
            None => self.fault(STAGE, format!("got {}", excerpt(&text)), EXPECTED),
        }
    }

    pub(super) fn redis(&mut self) -> Option<RedisConfig> {
        let ca_file = self.ca_file(REDIS_CA_FILE);
        let url = self.required(REDIS_URL, REDIS_EXPECTED)?;
        if url == NO_REDIS {
            return Some(RedisConfig { url: None, ca_file });
        }
        if let Err(problem) = redis_url(&url, self.is_local()) {
            return self.fault(REDIS_URL, problem, REDIS_EXPECTED);
        }
        Some(RedisConfig {
            url: Some(Secret::new(url)),
            ca_file,
        })
    }

    pub(super) fn database(&mut self) -> Option<DatabaseConfig> {
        let ca_file = self.ca_file(DATABASE_CA_FILE);
        let url = self.required(DATABASE_URL, DATABASE_EXPECTED)?;
        if let Err(problem) = database_url(&url, self.is_local()) {
            return self.fault(DATABASE_URL, problem, DATABASE_EXPECTED);
        }
        Some(DatabaseConfig {
            url: Secret::new(url),
            ca_file,
        })
    }

    fn ca_file(&mut self, variable: &'static str) -> Option<PathBuf> {
        let path = PathBuf::from(self.optional(variable)?);
        if path.is_file() {
            Some(path)
        } else {
            let problem = format!("{} is not a file here", path.display());
            self.fault(variable, problem, "the path of a PEM file, or nothing")
        }
    }

    pub(super) fn order_queue(&mut self) -> Option<String> {
        let url = self.required(ORDER_QUEUE_URL, QUEUE_EXPECTED)?;
        self.queue(ORDER_QUEUE_URL, url)
    }

    pub(super) fn expiry_queue(&mut self) -> Option<String> {
        let url = self.required(EXPIRY_QUEUE_URL, QUEUE_EXPECTED)?;
        self.queue(EXPIRY_QUEUE_URL, url)
    }

    #[expect(
        clippy::option_option,
        reason = "outer: readable; inner: there; the loader asks every part the same question"
    )]
    pub(super) fn order_dlq(&mut self) -> Option<Option<String>> {
        match self.optional(ORDER_DLQ_URL) {
            None => Some(None),
            Some(url) => self.queue(ORDER_DLQ_URL, url).map(Some),
        }
    }

    #[expect(clippy::option_option, reason = "as above")]
    pub(super) fn expiry_dlq(&mut self) -> Option<Option<String>> {
        match self.optional(EXPIRY_DLQ_URL) {
            None => Some(None),
            Some(url) => self.queue(EXPIRY_DLQ_URL, url).map(Some),
        }
    }

    fn queue(&mut self, variable: &'static str, url: String) -> Option<String> {
        let rest = match url.split_once("://") {
            Some(("https", rest)) => rest,
            Some(("http", rest)) if self.is_local() => rest,
            _ => return self.fault(variable, format!("got {}", excerpt(&url)), QUEUE_EXPECTED),
        };
        match rest.split_once('/') {
            Some((host, name)) if !host.is_empty() && !name.is_empty() => Some(url),
            _ => self.fault(variable, format!("got {}", excerpt(&url)), QUEUE_EXPECTED),
        }
    }

    pub(super) fn tokens(&mut self) -> Option<TokenConfig> {
        let jwks = self.required(TOKEN_JWKS, JWKS_EXPECTED);
        let jwks = jwks.and_then(|text| match jwks_text(&text) {
            Ok(()) => Some(text),
            Err(problem) => self.fault(TOKEN_JWKS, problem, JWKS_EXPECTED),
        });
        let issuer = self.required(TOKEN_ISSUER, "the issuer of tokens (their iss)");
        let audience = self.required(TOKEN_AUDIENCE, "the audience of tokens (their aud)");
        Some(TokenConfig {
            jwks: jwks?,
            issuer: issuer?,
            audience: audience?,
        })
    }

    pub(super) fn payment(&mut self) -> Option<PaymentConfig> {
        const EXPECTED: &str =
            "the payment provider's secret: at least 32 random bytes, no placeholder";
        let text = self.required(PAYMENT_SECRET, EXPECTED)?;
        if !self.is_local()
            && let Some(problem) = weakness(&text, SECRET_MIN_BYTES)
        {
            return self.fault(PAYMENT_SECRET, problem, EXPECTED);
        }
        Some(PaymentConfig {
            secret: Secret::new(text),
        })
    }

    pub(super) fn buyer_rate(&mut self) -> Option<BuyerRate> {
        const EXPECTED: &str =
            "attempts per second of one buyer, a whole number from 1 to 1000; 0 for no limit";
        let Some(text) = self.optional(BUYER_RATE) else {
            return Some(BuyerRate(RATE_MAX_PER_WINDOW));
        };
        match text.parse() {
            Ok(rate) if rate <= RATE_MAX => Some(BuyerRate(rate)),
            _ => self.fault(BUYER_RATE, format!("got {}", excerpt(&text)), EXPECTED),
        }
    }
}

/// At most 40 characters of a value that is no secret.
fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().count() > 40 {
        format!("\"{short}…\"")
    } else {
        format!("\"{short}\"")
    }
}

/// Why a secret must not be used, or none.
fn weakness(secret: &str, min_bytes: usize) -> Option<String> {
    const PLACEHOLDERS: [&str; 12] = [
        "changeme",
        "change-me",
        "change_me",
        "replace",
        "placeholder",
        "example",
        "password",
        "postgres",
        "default",
        "your-",
        "todo",
        "{{resolve:",
    ];
    let lower = secret.to_ascii_lowercase();
    if let Some(word) = PLACEHOLDERS.iter().find(|word| lower.contains(**word)) {
        return Some(format!("it looks like a placeholder (it contains {word})"));
    }
    if secret.len() < min_bytes {
        return Some(format!(
            "it has {} bytes, fewer than {min_bytes}",
            secret.len()
        ));
    }
    let mut letters: Vec<char> = secret.chars().collect();
    letters.sort_unstable();
    letters.dedup();
    (letters.len() < 6).then(|| format!("it has only {} different characters", letters.len()))
}

fn redis_url(text: &str, local: bool) -> Result<(), String> {
    for url in text.split(',').map(str::trim) {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or("a part of it has no scheme such as rediss://")?;
        if !matches!(scheme, "redis" | "rediss") {
            return Err(format!("its scheme is {}", excerpt(scheme)));
        }
        let plain = scheme == "redis";
        if plain && !local {
            return Err("it is a plain connection (redis://) outside local".into());
        }
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let (user_info, address) = authority.rsplit_once('@').unwrap_or(("", authority));
        let host = host_of(address)?;
        if plain && !is_loopback(host) {
            return Err(format!(
                "it is a plain connection (redis://) to {}, which is not this machine",
                excerpt(host)
            ));
        }
        if let (false, Some((_, password))) = (local, user_info.split_once(':'))
            && let Some(problem) = weakness(password, PASSWORD_MIN_BYTES)
        {
            return Err(format!("its password: {problem}"));
        }
    }
    Ok(())
}

fn database_url(url: &str, local: bool) -> Result<(), String> {
    let rest = match url.split_once("://") {
        Some(("postgres" | "postgresql", rest)) => rest,
        Some((scheme, _)) => return Err(format!("its scheme is {}", excerpt(scheme))),
        None => return Err("it has no scheme such as postgres://".into()),
    };
    let (before_query, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, name) = before_query.split_once('/').unwrap_or((before_query, ""));
    if name.is_empty() {
        return Err("it names no database".into());
    }
    let (user_info, address) = authority.rsplit_once('@').unwrap_or(("", authority));
    host_of(address)?;
    if local {
        return Ok(());
    }
    let password = user_info.split_once(':').map_or("", |(_, text)| text);
    if password.is_empty() {
        return Err("it has no password".into());
    }
    if let Some(problem) = weakness(password, PASSWORD_MIN_BYTES) {
        return Err(format!("its password: {problem}"));
    }
    for weak in ["sslmode=disable", "sslmode=allow", "sslmode=prefer"] {
        if query.split('&').any(|pair| pair == weak) {
            return Err(format!(
                "it allows a plain connection ({weak}) outside local"
            ));
        }
    }
    Ok(())
}

/// The host of `host[:port]` or `[v6][:port]`.
fn host_of(address: &str) -> Result<&str, String> {
    let (host, port) = if let Some(rest) = address.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or("an IPv6 host has no ]")?;
        (host, port.strip_prefix(':'))
    } else {
        match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        }
    };
    if host.is_empty() {
        return Err("it names no host".into());
    }
    match port.map(str::parse::<u16>) {
        Some(Err(_) | Ok(0)) => Err("its port is not a number from 1 to 65535".into()),
        Some(Ok(_)) | None => Ok(host),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

fn jwks_text(text: &str) -> Result<(), String> {
    let set: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("it is not JSON ({error})"))?;
    let keys = set
        .get("keys")
        .and_then(serde_json::Value::as_array)
        .ok_or("it has no array keys")?;
    if keys.is_empty() {
        return Err("it has no key, so no token could be valid".into());
    }
    for (index, key) in keys.iter().enumerate() {
        let field = |name: &str| key.get(name).and_then(serde_json::Value::as_str);
        for private in ["d", "p", "q", "k"] {
            if key.get(private).is_some() {
                return Err(format!(
                    "key {index} is not a public key (it has {private})"
                ));
            }
        }
        match (field("kty"), field("alg"), field("crv")) {
            (Some("EC"), Some("ES256"), Some("P-256"))
            | (Some("RSA"), Some("RS256"), _)
            | (Some("OKP"), Some("EdDSA"), Some("Ed25519")) => {}
            (kty, alg, crv) => {
                let [kty, alg, crv] = [kty, alg, crv].map(|word| word.unwrap_or("none"));
                return Err(format!(
                    "key {index} has kty {}, alg {}, crv {}",
                    excerpt(kty),
                    excerpt(alg),
                    excerpt(crv)
                ));
            }
        }
    }
    Ok(())
}

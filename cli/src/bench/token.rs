//! What checking a token costs the function, by the kind of its key: of buyers who come for the first time, and of
//! buyers who come again.

use std::{
    fmt::{Display, Formatter},
    fs,
    time::Duration,
};

use lambda_http::{
    Body,
    http::{HeaderValue, header},
};
use shared::{
    config::TokenConfig,
    limits::TOKENS_VERIFIED_MAX,
    web::{Call, Request, Scope, TokenVerifier},
};

use super::BenchError;
use crate::tokens::{KeyKind, LocalKeys, SCOPE_BUY};

/// Tokens of one run: so many that one process can remember them all.
const TOKENS: usize = TOKENS_VERIFIED_MAX / 8;
const TOKEN_TTL_S: u64 = 3_600;
/// Linux brings a running thread's time up to date at its ticks, so a measurement takes many of those.
const AGAIN_TIMES: u32 = 64;

/// How often each kind is measured; the fastest run counts, since whatever else the machine does only adds.
#[derive(Debug, Clone, Copy)]
pub struct TokenBench {
    /// Runs of each.
    pub runs: u32,
}

/// Processor time of one check.
#[derive(Debug, Clone, Copy)]
struct Cost {
    kind: KeyKind,
    bytes: usize,
    first: Duration,
    again: Duration,
}

/// What was measured; displayed as Markdown.
#[derive(Debug, Clone)]
pub struct TokenReport(Vec<Cost>);

impl TokenBench {
    /// Measures in this thread, by its own processor time.
    pub fn run(self) -> Result<TokenReport, BenchError> {
        let costs = KeyKind::ALL.into_iter().map(|kind| self.cost(kind));
        costs.collect::<Result<_, _>>().map(TokenReport)
    }

    fn cost(self, kind: KeyKind) -> Result<Cost, BenchError> {
        let wrong = |error: &dyn Display| BenchError::Wrong(error.to_string());
        let keys = LocalKeys::generate_kind(kind).map_err(|error| wrong(&error))?;
        let config = TokenConfig {
            jwks: keys.jwks_json().map_err(|error| wrong(&error))?,
            issuer: keys.issuer().to_owned(),
            audience: keys.audience().to_owned(),
        };
        let mut cost = Cost {
            kind,
            bytes: 0,
            first: Duration::MAX,
            again: Duration::MAX,
        };
        let mut requests = Vec::with_capacity(TOKENS);
        for number in 0..TOKENS {
            let token = keys.token(&format!("buyer-{number:09}"), &[SCOPE_BUY], TOKEN_TTL_S);
            let token = token.map_err(|error| wrong(&error))?;
            cost.bytes = token.len();
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut request = Request::new(Body::Empty);
            let headers = request.headers_mut();
            headers.insert(header::AUTHORIZATION, value.map_err(|error| wrong(&error))?);
            requests.push(request);
        }
        for _ in 0..self.runs {
            let verifier = TokenVerifier::new(&config).map_err(|error| wrong(&error))?;
            for (best, times) in [(&mut cost.first, 1), (&mut cost.again, AGAIN_TIMES)] {
                *best = (*best).min(mean(&verifier, &requests, times)?);
            }
        }
        Ok(cost)
    }
}

/// The mean over all tokens, each checked so many times.
fn mean(
    verifier: &TokenVerifier,
    requests: &[Request],
    times: u32,
) -> Result<Duration, BenchError> {
    let began = thread_time()?;
    for _ in 0..times {
        for request in requests {
            if let Err(problem) = verifier.caller(&Call::new(request), Scope::Buy) {
                return Err(BenchError::Wrong(format!("a token: {problem:?}")));
            }
        }
    }
    let calls = u32::try_from(requests.len()).unwrap_or(u32::MAX);
    Ok(thread_time()?.saturating_sub(began) / calls / times)
}

/// Processor time of this thread; Linux counts it in nanoseconds.
fn thread_time() -> Result<Duration, BenchError> {
    let path = "/proc/thread-self/schedstat";
    let unread = |problem: String| BenchError::Wrong(format!("{path}: {problem}"));
    let text = fs::read_to_string(path).map_err(|error| unread(error.to_string()))?;
    let ns = text
        .split_whitespace()
        .next()
        .and_then(|ns| ns.parse().ok());
    ns.map(Duration::from_nanos).ok_or_else(|| unread(text))
}

impl Display for TokenReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        writeln!(
            out,
            "| key | token, bytes | first check, µs | again, µs | first checks per second and core |"
        )?;
        writeln!(out, "|---|---:|---:|---:|---:|")?;
        for cost in &self.0 {
            let (first, again) = (cost.first.as_secs_f64(), cost.again.as_secs_f64());
            writeln!(
                out,
                "| {} | {} | {:.1} | {:.1} | {:.0} |",
                cost.kind.name(),
                cost.bytes,
                first * 1e6,
                again * 1e6,
                1.0 / first.max(1e-9),
            )?;
        }
        writeln!(
            out,
            "\nProcessor time of the function's whole check of a token, the best of several runs with {TOKENS} tokens \
             each. A process remembers {TOKENS_VERIFIED_MAX} tokens whose signature it has checked."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_measured() {
        let text = TokenBench { runs: 1 }.run().unwrap().to_string();
        for kind in KeyKind::ALL {
            assert!(text.contains(&format!("| {} |", kind.name())), "{text}");
        }
    }
}

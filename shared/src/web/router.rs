//! From method and path to what is asked for.

use super::{Call, Problem, ProblemCode};

/// One call that a function serves. In `path`, `{}` stands for one segment that is passed on.
#[derive(Debug, Clone, Copy)]
pub struct Pattern<A> {
    /// The method, in capitals.
    pub method: &'static str,
    /// The path, from its first slash.
    pub path: &'static str,
    /// What it asks for.
    pub action: A,
}

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matched<A> {
    /// The pattern's action.
    pub action: A,
    /// The segments that `{}` stood for, decoded, unchecked.
    pub params: Vec<String>,
}

/// Finds the pattern of a call: with its path as it came, else without the stage in front, since HTTP APIs
/// and `lambda_http` disagree about it (`aws-lambda-rust-runtime#919`, `#450`).
pub fn find<A: Copy>(patterns: &[Pattern<A>], call: &Call<'_>) -> Result<Matched<A>, Problem> {
    let segments = call.segments()?;
    let without_stage = match segments.split_first() {
        Some((first, rest)) if call.stage() == Some(first) => Some(rest),
        _ => None,
    };
    let mut allowed: Vec<&'static str> = Vec::new();
    for candidate in [Some(segments.as_slice()), without_stage]
        .into_iter()
        .flatten()
    {
        for pattern in patterns {
            let Some(params) = params_of(pattern.path, candidate) else {
                continue;
            };
            if pattern.method == call.method().as_str() {
                return Ok(Matched {
                    action: pattern.action,
                    params,
                });
            }
            allowed.push(pattern.method);
        }
    }
    if allowed.is_empty() {
        return Err(ProblemCode::NotFound.into());
    }
    allowed.sort_unstable();
    allowed.dedup();
    Err(Problem::new(ProblemCode::MethodNotAllowed).header("allow", allowed.join(", ")))
}

fn params_of(path: &str, segments: &[String]) -> Option<Vec<String>> {
    let mut params = Vec::new();
    let mut words = path.split('/').skip(1);
    let mut segments = segments.iter();
    loop {
        match (words.next(), segments.next()) {
            (None, None) => return Some(params),
            (Some("{}"), Some(segment)) => params.push(segment.clone()),
            (Some(word), Some(segment)) if word == segment => {}
            _ => return None,
        }
    }
}

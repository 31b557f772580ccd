//! Many calls at once, and the server's own time for them.

use redis::{Client, Cmd, RedisResult, Value, aio::MultiplexedConnection};
use tokio::task::JoinSet;

use super::BenchError;

/// Connections, each with a pipeline under way: the server is never idle, as under load.
const CONNECTIONS: u64 = 4;
/// Calls in one pipeline.
const PIPELINE: u64 = 100;

/// One script's calls.
pub(super) trait Calls: Clone + Send + Sync + 'static {
    /// The command of one call.
    fn command(&self, number: u64) -> Result<Cmd, BenchError>;
    /// Whether its answer is what it must be.
    fn check(&self, number: u64, answer: Value) -> Result<(), BenchError>;
}

/// Makes the calls numbered `from..to`; the first that fails ends all.
pub(super) async fn drive(
    client: &Client,
    calls: &impl Calls,
    from: u64,
    to: u64,
) -> Result<(), BenchError> {
    let mut tasks: JoinSet<Result<(), BenchError>> = JoinSet::new();
    for task in 0..CONNECTIONS {
        let calls = calls.clone();
        let mut connection = client.get_multiplexed_async_connection().await?;
        tasks.spawn(async move {
            let mut first = from + task * PIPELINE;
            while first < to {
                let last = to.min(first + PIPELINE);
                let mut pipe = redis::pipe();
                for number in first..last {
                    pipe.add_command(calls.command(number)?);
                }
                let answers: Vec<Value> = pipe.query_async(&mut connection).await?;
                for (number, answer) in (first..last).zip(answers) {
                    calls.check(number, answer)?;
                }
                first += CONNECTIONS * PIPELINE;
            }
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| BenchError::Wrong(error.to_string()))??;
    }
    Ok(())
}

/// Calls of `EVALSHA` and the server's time for them, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ScriptTime {
    pub calls: u64,
    pub usec: u64,
}

impl ScriptTime {
    /// What the server has counted since it started.
    pub async fn read(connection: &mut MultiplexedConnection) -> RedisResult<Self> {
        let info: String = redis::cmd("INFO")
            .arg("commandstats")
            .query_async(connection)
            .await?;
        Ok(Self::parse(&info))
    }

    fn parse(info: &str) -> Self {
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("cmdstat_evalsha:"));
        let field = |name: &str| {
            let mut fields = line?.split(',');
            fields.find_map(|field| field.strip_prefix(name)?.parse().ok())
        };
        Self {
            calls: field("calls=").unwrap_or(0),
            usec: field("usec=").unwrap_or(0),
        }
    }

    /// The time per call since `start`, when there were exactly `calls`.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a bench are far below 2^52"
    )]
    pub fn since(self, start: Self, calls: u64) -> Result<f64, BenchError> {
        let made = self.calls - start.calls;
        if made == calls && calls > 0 {
            Ok((self.usec - start.usec) as f64 / calls as f64)
        } else {
            Err(BenchError::Wrong(format!(
                "{calls} calls were {made} scripts"
            )))
        }
    }
}

/// The middle value; the lower one of two.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len().saturating_sub(1) / 2;
    values.get(middle).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_time_of_scripts_alone() {
        let info = "# Commandstats\r\n\
            cmdstat_get:calls=9,usec=9,usec_per_call=1.00,rejected_calls=0,failed_calls=0\r\n\
            cmdstat_evalsha:calls=4,usec=10,usec_per_call=2.50,rejected_calls=0,failed_calls=0\r\n";
        let seen = ScriptTime::parse(info);
        assert_eq!((seen.calls, seen.usec), (4, 10));
        assert_eq!(ScriptTime::parse(""), ScriptTime::default());
    }

    #[test]
    fn the_median_ignores_an_outlier() {
        assert!((median(vec![9.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
    }
}

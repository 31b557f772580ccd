//! `flashsale load`

use std::{fs, path::Path, path::PathBuf, sync::Arc, time::Duration};

use clap::{Args, ValueEnum};

use super::{CommandError, interrupted};
use crate::{
    demo::Progress,
    load::{Auth, LoadConfig, QueueKind, Via, load},
    local::redis::Engine,
    tokens::KeyKind,
};

#[derive(Debug, Args)]
pub(super) struct LoadArgs {
    /// Where the functions run
    #[arg(long, value_enum, default_value_t = ViaArg::Process)]
    via: ViaArg,
    /// Call this API instead of private servers
    #[arg(long, value_name = "URL", requires = "key", conflicts_with = "via")]
    api: Option<String>,
    /// With --api: the file of the key that signs its tokens (see `flashsale token`)
    #[arg(
        long,
        value_name = "FILE",
        requires = "api",
        env = "FLASHSALE_KEY_FILE"
    )]
    key: Option<PathBuf>,
    /// The Redis: its server's name
    #[arg(long, value_enum, default_value_t = Engine::Valkey)]
    engine: Engine,
    /// Three primaries, and three shards in each sale
    #[arg(long)]
    cluster: bool,
    /// The queue, in process
    #[arg(long, value_enum, default_value_t = QueueKind::Fast)]
    queue: QueueKind,
    /// Whether calls have tokens, in process
    #[arg(long, value_enum, default_value_t = Auth::On)]
    auth: Auth,
    /// How tokens are signed, in process
    #[arg(long, value_enum, default_value_t = KeyKind::Es256)]
    keys: KeyKind,
    /// Calls at once, from 1 to 10000; may be repeated, rising
    #[arg(long, value_name = "NUMBER", value_parser = lanes)]
    lanes: Vec<usize>,
    /// How long each measurement is meant to take, such as 2s
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    step: Duration,
    /// Units of one sale at most; twice as many buyers are made
    #[arg(long, value_name = "NUMBER", default_value_t = LoadConfig::default().units_max,
          value_parser = clap::value_parser!(u64).range(60..=1_000_000))]
    units: u64,
    /// How long calls come at 1.5 times the peak, such as 30m
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = time)]
    soak: Duration,
    /// Write the report as Markdown here instead of to standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the report as a page with pictures here
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ViaArg {
    /// The handler in this process
    Process,
    /// cargo lambda watch, over HTTP
    Watch,
}

fn lanes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(lanes @ 1..=10_000) => Ok(lanes),
        _ => Err("expected a number from 1 to 10000".to_owned()),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time from 1s to 24h, such as 90s, 30m or 2h".to_owned();
    let units = [("s", 1), ("m", 60), ("h", 3_600)];
    let found = units
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let seconds = found.and_then(|(number, unit)| number.parse::<u64>().ok()?.checked_mul(unit));
    match seconds {
        Some(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
        _ => Err(expected()),
    }
}

impl LoadArgs {
    fn config(&self) -> LoadConfig {
        let default = LoadConfig::default();
        let via = match (&self.api, &self.key, self.via) {
            (Some(url), Some(key), _) => Via::Api {
                url: url.clone(),
                key: key.clone(),
            },
            (_, _, ViaArg::Process) => Via::Process,
            (_, _, ViaArg::Watch) => Via::Watch,
        };
        LoadConfig {
            via,
            engine: self.engine,
            cluster: self.cluster,
            queue: self.queue,
            auth: self.auth,
            keys: self.keys,
            lanes: if self.lanes.is_empty() {
                default.lanes
            } else {
                self.lanes.clone()
            },
            step: self.step,
            units_max: self.units,
            soak: self.soak,
            ..default
        }
    }
}

fn write(option: &str, file: &Path, text: &str) -> Result<(), CommandError> {
    fs::write(file, text)
        .map_err(|error| CommandError::Usage(format!("{option} {}: {error}", file.display())))
}

pub(super) async fn run(args: LoadArgs) -> Result<(), CommandError> {
    let config = args.config();
    let progress = Arc::new(Progress::new(false));
    let report = tokio::select! {
        report = load(&config, &progress) => report?,
        stopped = interrupted() => return Err(stopped),
    };
    let words: Vec<String> = std::env::args().skip(1).collect();
    let command = format!("flashsale {}", words.join(" "));
    match &args.output {
        None => print!("{}", report.markdown(&command)),
        Some(file) => write("--output", file, &report.markdown(&command))?,
    }
    if let Some(file) = &args.html {
        write("--html", file, &report.html(&command))?;
    }
    let wrong = report.wrong();
    for line in &wrong {
        eprintln!("wrong: {line}");
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(CommandError::Off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(time("30m"), Ok(Duration::from_mins(30)));
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        for bad in ["", "30", "0s", "25h", "1d", "-1s", "ms", "秒"] {
            assert!(time(bad).unwrap_err().contains("30m"), "{bad}");
        }
    }
}

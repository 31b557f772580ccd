//! The command line: what can be typed, and what each command does with it.
//!
//! Exit codes: 0 done; 1 the numbers are off, or the API refused; 2 a wrong argument; 3 a server or tool that
//! is needed is not there.

mod bench;
mod compare;
mod demo;
mod dev;
mod load;
mod local;
mod migrate;
mod order;
mod output;
mod reconcile;
mod repair;
mod sale;
mod token;
mod values;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use shared::adapters::postgres::{MigrateError, PgSettingsError};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    bench::BenchError,
    client::{Api, ClientError, Patience, with_causes},
    compare::CompareError,
    demo::DemoError,
    load::LoadError,
    local::{LocalError, dev::DevError},
    tokens::KeyError,
};

const AFTER_HELP: &str = "\
Exit codes:
  0  done, and every number is right
  1  the numbers are off, or the API refused
  2  a wrong argument
  3  a server or tool that is needed is not there

Examples:
  flashsale demo
  flashsale sale plan singles-day --sku PH-15 --name 'A phone' --stock 100 --price 9900 \\
      --opens-at +10m --closes-at +70m
  flashsale sale approve singles-day
  flashsale sale preheat singles-day
  flashsale reconcile plan singles-day";

/// Runs flash sales: plans and opens them, watches and repairs them, and shows one from end to end.
#[derive(Debug, Parser)]
#[command(name = "flashsale", version, after_help = AFTER_HELP, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Where the API is and who calls it.
#[derive(Debug, Clone, Args)]
pub struct ApiArgs {
    /// The API's address, stage included, such as <https://abc.execute-api.eu-west-1.amazonaws.com/prod>
    #[arg(long, value_name = "URL", env = "FLASHSALE_API")]
    api: String,
    /// A token; an operator's has the scope sale:operate, a buyer's sale:buy (see `flashsale token`)
    #[arg(
        long,
        value_name = "JWT",
        env = "FLASHSALE_TOKEN",
        hide_env_values = true
    )]
    token: String,
    /// Print the API's answer as JSON instead of a table
    #[arg(long)]
    json: bool,
}

impl ApiArgs {
    fn connect(&self) -> Result<Api, ClientError> {
        Ok(Api::new(&self.api)?.with_patience(Patience::PERSON))
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plan, open, stop, adjust and close sales
    #[command(subcommand)]
    Sale(sale::SaleCommand),
    /// Look at orders
    #[command(subcommand)]
    Order(order::OrderCommand),
    /// Compare Redis with the database, and repair what differs
    Reconcile(reconcile::ReconcileArgs),
    /// Look at dead letters, and send them again
    #[command(subcommand)]
    Dlq(repair::DlqCommand),
    /// Make sure that an order which the database does not have never settles
    Void(repair::OrderActionArgs),
    /// Money due back to buyers
    #[command(subcommand)]
    Refund(repair::RefundCommand),
    /// Make signing keys and tokens for local runs
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Show a whole sale from end to end on private servers, and check its numbers
    Demo(demo::DemoArgs),
    /// Compare ways to guard a stock on private servers: speed, and whether the counts are right
    Compare(compare::CompareArgs),
    /// Drive distinct buyers against deduct, up to the knee and above it: throughput, latency, memory, and every count
    Load(Box<load::LoadArgs>),
    /// Deploy the real template on a local AWS with private servers, and keep it until Ctrl-C
    DeployLocal(local::DeployArgs),
    /// Serve the functions under cargo lambda watch with private servers, rebuilt when a file changes
    Dev,
    /// Measure
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Bring a database to this version's schema; safe to repeat
    Migrate(migrate::MigrateArgs),
}

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    /// An argument that only its use shows to be wrong.
    #[error("{0}")]
    Usage(String),
    /// The API said no.
    #[error("{0}")]
    Refused(String),
    /// The numbers are off; the report says which.
    #[error("the numbers are off, see the report above")]
    Off,
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Demo(#[from] DemoError),
    #[error("--database-url")]
    Database(#[from] PgSettingsError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error(transparent)]
    Bench(#[from] BenchError),
    #[error(transparent)]
    Dev(#[from] DevError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("{0}")]
    Interrupted(&'static str),
}

impl CommandError {
    const fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(_) | Self::Off | Self::Interrupted(_) => 1,
            Self::Compare(error) => match error {
                CompareError::Local(_) => 3,
                CompareError::Redis(_)
                | CompareError::Sql(_)
                | CompareError::Ledger(_)
                | CompareError::Value(_)
                | CompareError::Unexpected(_)
                | CompareError::Task(_) => 1,
            },
            Self::Demo(error) => match error {
                DemoError::Config(_) | DemoError::Value(_) => 2,
                DemoError::Client(_)
                | DemoError::Invoke(_)
                | DemoError::Local(
                    LocalError::Missing { .. }
                    | LocalError::NotReady { .. }
                    | LocalError::Io { .. },
                ) => 3,
                DemoError::Key(_) | DemoError::Step { .. } | DemoError::Task(_) => 1,
            },
            Self::Usage(_)
            | Self::Key(_)
            | Self::Database(_)
            | Self::Client(ClientError::Address { .. }) => 2,
            Self::Bench(error) => match error {
                BenchError::Wrong(_) => 1,
                BenchError::Local(_) | BenchError::Redis(_) | BenchError::Ledger(_) => 3,
            },
            Self::Load(error) => match error {
                LoadError::Local(_) | LoadError::Demo(_) | LoadError::Dev(_) => 3,
                LoadError::Key(_) | LoadError::Value(_) => 2,
                LoadError::Client(_)
                | LoadError::Redis(_)
                | LoadError::Task(_)
                | LoadError::Wrong(_) => 1,
            },
            Self::Dev(_)
            | Self::Migrate(_)
            | Self::Client(ClientError::Setup(_) | ClientError::NoAnswer { .. }) => 3,
        }
    }
}

/// Runs a parsed command line and says how it went.
pub async fn run(cli: Cli) -> ExitCode {
    let outcome = match cli.command {
        Command::Sale(command) => sale::run(command).await,
        Command::Order(command) => order::run(command).await,
        Command::Reconcile(args) => reconcile::run(args).await,
        Command::Dlq(command) => repair::dlq(command).await,
        Command::Void(args) => repair::void(args).await,
        Command::Refund(command) => repair::refund(command).await,
        Command::Token(command) => token::run(&command),
        Command::Demo(args) => demo::run(args).await,
        Command::Compare(args) => compare::run(args).await,
        Command::Load(args) => Box::pin(load::run(*args)).await,
        Command::DeployLocal(args) => local::deploy(args).await,
        Command::Dev => dev::run().await,
        Command::Bench(command) => bench::run(command).await,
        Command::Migrate(args) => migrate::run(args).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", with_causes(&error));
            ExitCode::from(error.exit_code())
        }
    }
}

/// Ends when the person or the system wants to stop; everything that was started is dropped with the rest.
async fn interrupted() -> CommandError {
    let stopped = CommandError::Interrupted("stopped; the private servers are being ended");
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! {
            _ = tokio::signal::ctrl_c() => stopped,
            _ = terminate.recv() => stopped,
        },
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, error::ErrorKind};

    use super::*;

    fn refused(line: &str) -> String {
        let words = line.split(' ');
        let error = Cli::try_parse_from(words).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        error.to_string()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_wrong_argument_is_told_what_is_right() {
        let api = "--api http://localhost --token t";
        for (line, part) in [
            (format!("flashsale sale approve {{a}} {api}"), "a-z 0-9 -"),
            (
                format!("flashsale sale adjust s --delta 0 --id x {api}"),
                "not 0",
            ),
            (
                format!("flashsale sale adjust s --delta 1 --id a:b {api}"),
                "A-Z a-z 0-9",
            ),
            (format!("flashsale order show s nonsense {api}"), "a UUID"),
            (format!("flashsale reconcile mend s {api}"), "rebuild"),
            (
                format!("flashsale void s nonsense --reason x {api}"),
                "a UUID",
            ),
            (format!("flashsale dlq show --queue all {api}"), "expiries"),
            ("flashsale demo --buyers many".to_owned(), "--buyers"),
            (
                format!(
                    "flashsale sale plan s --sku a --name b --stock 1 --price 1 --opens-at soon --closes-at +1h {api}"
                ),
                "RFC 3339",
            ),
            (
                format!(
                    "flashsale sale plan s --sku a --name b --stock 1 --price 1 --opens-at now --closes-at +1h --admission sql {api}"
                ),
                "redis or queue",
            ),
        ] {
            let text = refused(&line);
            assert!(text.contains(part), "{line}: {text}");
        }
    }

    /// A command line's words; single quotes keep words together.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quoted) = (vec![String::new()], false);
        for character in line.chars() {
            match (character, words.last_mut()) {
                ('\'', _) => quoted = !quoted,
                (' ', Some(last)) if !quoted => {
                    if !last.is_empty() {
                        words.push(String::new());
                    }
                }
                (other, Some(last)) => last.push(other),
                (_, None) => {}
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn every_command_in_the_operators_handbook_can_be_typed() {
        let text = include_str!("../../../docs/operations.md").replace("\\\n", " ");
        let spans = text
            .split('`')
            .filter(|span| span.starts_with("flashsale "));
        let lines = text.lines().filter(|line| line.starts_with("flashsale "));
        let mut count = 0;
        for line in spans.chain(lines) {
            let command = line.split(" #").next().unwrap_or(line).trim();
            let line = format!("{command} --api http://localhost --token t");
            let parsed = Cli::try_parse_from(words(&line));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            count += 1;
        }
        assert!(count >= 20, "{count}");
    }

    #[test]
    fn help_is_no_error_and_names_the_exit_codes() {
        let error = Cli::try_parse_from(["flashsale", "--help"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DisplayHelp);
        assert!(error.to_string().contains("Exit codes:"));
    }
}

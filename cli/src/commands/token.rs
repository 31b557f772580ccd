//! `flashsale token …`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::CommandError;
use crate::tokens::{LocalKeys, SCOPE_BUY, SCOPE_OPERATE};

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Make a signing key in a new file
    NewKey(KeyArgs),
    /// Print the public key set, the value of `FLASHSALE_TOKEN_JWKS`
    Jwks(KeyArgs),
    /// Print a token signed with a key
    Sign(SignArgs),
}

#[derive(Debug, Args)]
pub(super) struct KeyArgs {
    /// The file of the key
    #[arg(long, value_name = "FILE", env = "FLASHSALE_KEY_FILE")]
    key: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct SignArgs {
    #[command(flatten)]
    key: KeyArgs,
    /// Whose token: the buyer's or operator's subject
    #[arg(long, value_name = "NAME")]
    subject: String,
    /// What it allows
    #[arg(long, value_enum, default_values_t = [Scope::Buy])]
    scope: Vec<Scope>,
    /// Seconds for which it is valid
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    ttl: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Scope {
    /// Buying, and one's own orders (sale:buy)
    Buy,
    /// The operator's calls (sale:operate)
    Operate,
}

pub(super) fn run(command: &TokenCommand) -> Result<(), CommandError> {
    match command {
        TokenCommand::NewKey(args) => {
            LocalKeys::generate()?.save(&args.key)?;
            println!(
                "{} is a new signing key; keep it private",
                args.key.display()
            );
        }
        TokenCommand::Jwks(args) => println!("{}", LocalKeys::load(&args.key)?.jwks_json()?),
        TokenCommand::Sign(args) => {
            if args.subject.is_empty() {
                let text = "--subject: it is empty; expected the name of a buyer or operator";
                return Err(CommandError::Usage(text.to_owned()));
            }
            let scope = |scope: &Scope| match scope {
                Scope::Buy => SCOPE_BUY,
                Scope::Operate => SCOPE_OPERATE,
            };
            let scopes: Vec<_> = args.scope.iter().map(scope).collect();
            let keys = LocalKeys::load(&args.key.key)?;
            println!("{}", keys.token(&args.subject, &scopes, args.ttl)?);
        }
    }
    Ok(())
}

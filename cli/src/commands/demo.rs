//! `flashsale demo`

use std::{
    io::{IsTerminal, stdout},
    path::PathBuf,
};

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::CommandError;
use crate::{
    client::Api,
    demo::{DemoConfig, DemoError, Progress, PublicProbe, Report, Target, drive},
    tokens::LocalKeys,
};

#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Buyers who come
    #[arg(long, default_value_t = DemoConfig::default().buyers)]
    buyers: u32,
    /// Units on sale; at most half the buyers
    #[arg(long, default_value_t = DemoConfig::default().stock)]
    stock: u32,
    /// Calls on the wire at once
    #[arg(long, default_value_t = DemoConfig::default().concurrency)]
    concurrency: usize,
    /// Seconds that a buyer has to pay
    #[arg(long, value_name = "SECONDS", default_value_t = DemoConfig::default().payment_window_s,
          value_parser = clap::value_parser!(u64).range(5..=600))]
    payment_window: u64,
    /// Drive the sale through this API
    #[arg(
        long,
        value_name = "URL",
        requires = "key",
        requires = "payment_secret"
    )]
    api: String,
    /// The file of the key that signs its tokens (see `flashsale token`)
    #[arg(
        long,
        value_name = "FILE",
        env = "FLASHSALE_KEY_FILE",
        requires = "api"
    )]
    key: PathBuf,
    /// The secret that it shares with the payment provider
    #[arg(
        long,
        value_name = "SECRET",
        env = "FLASHSALE_PAYMENT_SECRET",
        hide_env_values = true
    )]
    payment_secret: String,
}

pub(super) async fn run(args: DemoArgs) -> Result<(), CommandError> {
    let report = tokio::select! {
        report = show(args) => report?,
        stopped = interrupted() => return Err(stopped),
    };
    let color = stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    print!("{}", report.render(color));
    if report.ok() {
        Ok(())
    } else {
        Err(CommandError::Off)
    }
}

async fn show(args: DemoArgs) -> Result<Report, DemoError> {
    let config = DemoConfig {
        buyers: args.buyers,
        stock: args.stock,
        concurrency: args.concurrency,
        payment_window_s: args.payment_window,
    };
    config.check()?;
    let progress = Progress::new(false);
    let target = Target {
        api: Api::new(&args.api)?,
        keys: LocalKeys::load(&args.key)?,
        payment_secret: args.payment_secret,
    };
    let probe = PublicProbe(target.api.clone());
    drive(&target, &config, probe, &progress).await
}

/// Ends when the person or the system wants to stop; everything that was started is dropped with the rest.
async fn interrupted() -> CommandError {
    let stopped = CommandError::Interrupted("stopped; every private server was ended");
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! {
            _ = tokio::signal::ctrl_c() => stopped,
            _ = terminate.recv() => stopped,
        },
        Err(_) => std::future::pending().await,
    }
}

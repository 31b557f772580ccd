//! `flashsale demo`

use std::{
    collections::BTreeMap,
    io::{IsTerminal, stdout},
    path::PathBuf,
    sync::Arc,
};

use clap::Args;

use super::{CommandError, interrupted};
use crate::{
    client::Api,
    demo::{DemoConfig, DemoError, LocalStack, Progress, Report, ReportProbe, Target, drive},
    tokens::{LocalKeys, SCOPE_OPERATE},
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
    /// Drive the sale through this API instead of private servers
    #[arg(
        long,
        value_name = "URL",
        requires = "key",
        requires = "payment_secret"
    )]
    api: Option<String>,
    /// With --api: the file of the key that signs its tokens (see `flashsale token`)
    #[arg(long, value_name = "FILE", requires = "api")]
    key: Option<PathBuf>,
    /// With --api: the secret that it shares with the payment provider
    #[arg(long, value_name = "SECRET", requires = "api")]
    payment_secret: Option<String>,
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
        ..DemoConfig::default()
    };
    config.check()?;
    let progress = Arc::new(Progress::new(false));
    let (Some(api), Some(key), Some(payment_secret)) = (args.api, args.key, args.payment_secret)
    else {
        let stack = LocalStack::start(BTreeMap::new(), &progress).await?;
        let probe = stack.stores().probe();
        return drive(&stack.target()?, &config, probe, &progress).await;
    };
    let target = Target {
        api: Api::new(&api)?,
        keys: LocalKeys::load(&key)?,
        payment_secret,
    };
    let probe = ReportProbe {
        api: target.api.clone(),
        operator: target.keys.token("operator", &[SCOPE_OPERATE], 3_600)?,
    };
    drive(&target, &config, probe, &progress).await
}

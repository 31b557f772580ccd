//! `flashsale dev`: the functions under `cargo lambda watch`, on private servers.

use std::{collections::BTreeMap, sync::Arc};

use super::{CommandError, interrupted, local::guide};
use crate::{
    demo::{DemoError, LocalStores, Progress},
    local::dev::Dev,
};

pub(super) async fn run() -> Result<(), CommandError> {
    let keep = async {
        let progress = Arc::new(Progress::new(false));
        let starting = async {
            let stores = LocalStores::start().await?;
            Ok::<_, DemoError>((stores, "Redis and PostgreSQL, private".to_owned()))
        };
        let stores = progress.stage("start the stores", starting).await?;
        let settings = stores.settings(BTreeMap::new())?;
        let told = Arc::clone(&progress);
        let serving = async {
            let mut tell = |line: &str| told.tick(line);
            let dev = Dev::start(&settings, false, &mut tell).await?;
            let remark = format!("{} is up", dev.api_url());
            Ok::<_, CommandError>((dev, remark))
        };
        let mut dev = progress
            .stage("build and serve the functions", serving)
            .await?;
        println!("{}", guide(&dev.api_url(), &stores)?);
        dev.run(&mut |line| println!("{line}")).await?;
        Ok::<_, CommandError>(())
    };
    tokio::select! {
        ended = keep => ended,
        _ = interrupted() => Ok(()),
    }
}

//! `flashsale deploy-local`: the real template on this machine, kept until it is stopped; and what to paste then.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use clap::Args;

use super::{CommandError, interrupted};
use crate::{
    demo::{DemoError, LocalStack, LocalStores, Progress},
    tokens::{SCOPE_BUY, SCOPE_OPERATE},
};

/// How long a printed token is valid.
const TOKEN_TTL_S: u64 = 12 * 3_600;

#[derive(Debug, Args)]
pub(super) struct DeployArgs {
    /// A parameter of the template, such as `BuyRateLimit=50`; may be repeated
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, String)>,
}

fn parameter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, such as BuyRateLimit=50".to_owned()),
    }
}

pub(super) async fn deploy(args: DeployArgs) -> Result<(), CommandError> {
    let keep = async {
        let progress = Arc::new(Progress::new(false));
        let parameters: BTreeMap<_, _> = args.parameters.into_iter().collect();
        let stack = LocalStack::start(parameters, &progress).await?;
        println!("{}", guide(stack.aws().api_url(), stack.stores())?);
        std::future::pending::<Result<(), DemoError>>().await
    };
    tokio::select! {
        failed = keep => Ok(failed?),
        _ = interrupted() => Ok(()),
    }
}

/// What to paste: a sale from its plan to an order, with tokens.
pub(super) fn guide(api: &str, stores: &LocalStores) -> Result<String, DemoError> {
    let operator = stores
        .keys
        .token("operator", &[SCOPE_OPERATE], TOKEN_TTL_S)?;
    let buyer = stores.keys.token("alice", &[SCOPE_BUY], TOKEN_TTL_S)?;
    let mut text = format!(
        "\nThe API is at {api}\nPaste this first:\n\n\
         export FLASHSALE_API={api}\n\
         export FLASHSALE_TOKEN={operator}\n\
         export BUYER={buyer}\n\
         export FLASHSALE_KEY_FILE={}\n\
         export FLASHSALE_PAYMENT_SECRET={}\n\n\
         Then plan, approve and open a sale, and buy:\n\n",
        stores.save_key()?.display(),
        stores.payment_secret
    );
    let body = r#"{"sku":"ph-15","name":"A phone","stock":100,"unit_price":{"amount_minor":9900,"currency":"CNY"},"limit":2,"opens_at":"2020-01-01T00:00:00Z","closes_at":"2100-01-01T00:00:00Z","payment_window_s":900,"shards":1}"#;
    let json = "-H 'Content-Type: application/json'";
    for line in [
        format!(
            "curl -sX PUT $FLASHSALE_API/admin/sales/first -H \"Authorization: Bearer $FLASHSALE_TOKEN\" {json} -d '{body}'"
        ),
        "curl -sX POST $FLASHSALE_API/admin/sales/first/approve -H \"Authorization: Bearer $FLASHSALE_TOKEN\"".to_owned(),
        "curl -sX POST $FLASHSALE_API/admin/sales/first/preheat -H \"Authorization: Bearer $FLASHSALE_TOKEN\"".to_owned(),
        "curl -s $FLASHSALE_API/sales/first".to_owned(),
        format!(
            "curl -isX POST $FLASHSALE_API/sales/first/orders -H \"Authorization: Bearer $BUYER\" -H 'Idempotency-Key: my-first-order' {json} -d '{{\"quantity\":1}}'"
        ),
        "curl -s $FLASHSALE_API/sales/first/orders/mine -H \"Authorization: Bearer $BUYER\"".to_owned(),
        "curl -s $FLASHSALE_API/admin/sales/first/report -H \"Authorization: Bearer $FLASHSALE_TOKEN\"".to_owned(),
    ] {
        // Writing to a string does not fail.
        writeln!(text, "{line}; echo").ok();
    }
    text.push_str("\nThe command takes the same variables: flashsale sale report first. More buyers:\nflashsale token sign --subject bob. Ctrl-C ends all of it.\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::parameter;

    #[test]
    fn a_parameter_has_a_name() {
        let right = ("A".to_owned(), "b=c".to_owned());
        assert_eq!(parameter("A=b=c"), Ok(right));
        assert!(parameter("=x").is_err());
        assert!(parameter("x").unwrap_err().contains("NAME=VALUE"));
    }
}

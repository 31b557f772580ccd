//! What `sam deploy` made of the parameters.

use flashsale::demo::LocalStack;
use serde_json::Value;

/// A key set is full of quotes and braces; it must reach every function that checks tokens unchanged, and each
/// function must have only the secrets that it needs.
pub async fn what_the_functions_are_told_survives_the_deployment(stack: &LocalStack) {
    let stores = stack.stores();
    let keys = stores.keys.jwks_json().unwrap();
    for function in ["deduct", "orders", "admin", "preheat", "reconcile"] {
        let told = variables(stack, function).await;
        assert_eq!(told["FLASHSALE_TOKEN_JWKS"], keys, "{function}");
        assert_eq!(
            told["FLASHSALE_TOKEN_ISSUER"],
            stores.keys.issuer(),
            "{function}"
        );
    }
    for function in ["settle", "expire", "migrate"] {
        let told = variables(stack, function).await;
        assert_eq!(
            told["FLASHSALE_DATABASE_URL"], stores.database_url,
            "{function}"
        );
    }
    let deduct = variables(stack, "deduct").await;
    assert_eq!(deduct.get("FLASHSALE_DATABASE_URL"), None);
    assert_eq!(deduct.get("FLASHSALE_PAYMENT_SECRET"), None);
}

async fn variables(stack: &LocalStack, function: &str) -> Value {
    let aws = stack.aws();
    let url = format!(
        "{}/2015-03-31/functions/{}/configuration",
        aws.ministack().endpoint(),
        aws.deployment().function_name(function)
    );
    let answer = reqwest::get(url).await.unwrap().text().await.unwrap();
    let configuration: Value = serde_json::from_str(&answer).unwrap();
    configuration["Environment"]["Variables"].clone()
}

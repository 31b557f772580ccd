//! `template.yaml` against the code: time-outs, queues, variables, permissions, the shape of the gateway's
//! answers. What a local AWS does not check, or does differently, is checked here.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "template/dependencies.rs"]
mod dependencies;
#[path = "template/functions.rs"]
mod functions;
#[path = "template/gateway.rs"]
mod gateway;
#[path = "template/queues.rs"]
mod queues;
#[path = "template/yaml.rs"]
mod yaml;

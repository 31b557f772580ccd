//! `flashsale sale …`

use clap::{Args, Subcommand};
use shared::domain::{
    AdjustmentId, Admission, Currency, Money, Quantity, SaleId, ShardCount, SignedUnits, Units,
    UnixMillis,
};

use super::{ApiArgs, CommandError, output, values};
use crate::client::{SaleAction, SaleBody};

#[derive(Debug, Subcommand)]
pub(super) enum SaleCommand {
    /// Create a draft, or change one
    Plan(Box<PlanArgs>),
    /// Check a draft and let it be loaded (draft → approved)
    Approve(ActionArgs),
    /// Load an approved sale into Redis and open it (approved → open)
    Preheat(ActionArgs),
    /// Stop selling at once; orders are still settled and paid (open → suspended)
    Suspend(ActionArgs),
    /// Sell again (suspended → open)
    Resume(ActionArgs),
    /// End a sale for good (open or suspended → closed)
    Close(ActionArgs),
    /// Give up a sale that was never opened (draft or approved → withdrawn)
    Withdraw(ActionArgs),
    /// Say that the database was restored and payments may be missing: nothing of the sale expires from now on
    PaymentsMissing(ActionArgs),
    /// Say that the payment provider sent its payments again: orders expire as ever
    PaymentsReplayed(ActionArgs),
    /// Add stock to a running sale, or take free stock out of it
    Adjust(AdjustArgs),
    /// Show what was sold, and whether the books balance
    Report(OneArgs),
    /// Show who changed what, when and why
    Audit(OneArgs),
    /// Show whether a sale could open now, and what is missing
    Readiness(OneArgs),
    /// Show one sale
    Show(OneArgs),
    /// Show all sales
    List(ListArgs),
}

#[derive(Debug, Args)]
pub(super) struct OneArgs {
    /// The sale's id: a-z, 0-9 and -, at most 63 characters
    #[arg(value_parser = values::sale_id)]
    sale: SaleId,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Args)]
pub(super) struct ActionArgs {
    #[command(flatten)]
    one: OneArgs,
    /// Why; kept in the audit
    #[arg(long, default_value = "")]
    reason: String,
}

#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    one: OneArgs,
    /// The shop's article number
    #[arg(long)]
    sku: String,
    /// The article's name, as buyers read it
    #[arg(long)]
    name: String,
    /// Units to sell
    #[arg(long, value_parser = values::units)]
    stock: Units,
    /// Price of one unit in the currency's minor unit: 9900 is 99.00
    #[arg(long, value_name = "MINOR_UNITS")]
    price: u64,
    /// ISO 4217 code
    #[arg(long, default_value = "CNY", value_parser = values::currency)]
    currency: Currency,
    /// Units that one buyer may have
    #[arg(long, default_value = "1", value_parser = values::quantity)]
    limit: Quantity,
    /// First moment: RFC 3339 such as 2026-11-30T20:00:00Z, or from now such as now, +90s, +10m, +2h
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    opens_at: UnixMillis,
    /// First moment at which it no longer sells; same forms
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    closes_at: UnixMillis,
    /// Seconds that a buyer has to pay, from the moment that the order is in the database
    #[arg(long, value_name = "SECONDS", default_value_t = 900,
          value_parser = clap::value_parser!(u64).range(5..=604_800))]
    payment_window: u64,
    /// Slices of the stock in Redis; more than one spreads a very hot sale over a cluster
    #[arg(long, default_value = "1", value_parser = values::shards)]
    shards: ShardCount,
    /// Who admits buyers: redis, or queue for the database alone; then the id must begin with queued-
    #[arg(long, default_value = "redis", value_parser = values::admission)]
    admission: Admission,
}

#[derive(Debug, Args)]
pub(super) struct AdjustArgs {
    #[command(flatten)]
    one: OneArgs,
    /// Units to add, or with a minus to take out
    #[arg(long, allow_hyphen_values = true, value_parser = values::delta)]
    delta: SignedUnits,
    /// A name of this one change; the same id again changes nothing
    #[arg(long, value_parser = values::adjustment_id)]
    id: AdjustmentId,
    /// Why; kept in the audit
    #[arg(long, default_value = "")]
    reason: String,
}

pub(super) async fn run(command: SaleCommand) -> Result<(), CommandError> {
    match command {
        SaleCommand::Plan(args) => plan(*args).await,
        SaleCommand::Approve(args) => act(args, SaleAction::Approve).await,
        SaleCommand::Preheat(args) => act(args, SaleAction::Preheat).await,
        SaleCommand::Suspend(args) => act(args, SaleAction::Suspend).await,
        SaleCommand::Resume(args) => act(args, SaleAction::Resume).await,
        SaleCommand::Close(args) => act(args, SaleAction::Close).await,
        SaleCommand::Withdraw(args) => act(args, SaleAction::Withdraw).await,
        SaleCommand::PaymentsMissing(args) => act(args, SaleAction::PaymentsMissing).await,
        SaleCommand::PaymentsReplayed(args) => act(args, SaleAction::PaymentsReplayed).await,
        SaleCommand::Adjust(args) => adjust(args).await,
        SaleCommand::Report(args) => page(args, "report").await,
        SaleCommand::Audit(args) => page(args, "audit").await,
        SaleCommand::Readiness(args) => page(args, "readiness").await,
        SaleCommand::Show(args) => {
            let api = args.api.connect()?;
            let answer = api.admin_sales(Some(&args.sale), &args.api.token).await?;
            output::show(&args.api, &answer)
        }
        SaleCommand::List(args) => {
            let answer = args
                .api
                .connect()?
                .admin_sales(None, &args.api.token)
                .await?;
            output::show(&args.api, &answer)
        }
    }
}

async fn plan(args: PlanArgs) -> Result<(), CommandError> {
    let OneArgs { sale, api } = args.one;
    if args.closes_at <= args.opens_at {
        return Err(CommandError::Usage(format!(
            "--closes-at: {} is not after --opens-at {}",
            args.closes_at.to_rfc3339(),
            args.opens_at.to_rfc3339()
        )));
    }
    let agrees = args.admission.check(&sale);
    agrees.map_err(|error| CommandError::Usage(format!("--{error}")))?;
    let body = SaleBody {
        sku: args.sku,
        name: args.name,
        stock: args.stock,
        unit_price: Money {
            amount_minor: args.price,
            currency: args.currency,
        },
        limit: args.limit,
        opens_at: args.opens_at.to_rfc3339(),
        closes_at: args.closes_at.to_rfc3339(),
        payment_window_s: args.payment_window,
        shards: args.shards,
        admission: args.admission,
    };
    let answer = api.connect()?.plan_sale(&sale, &body, &api.token).await?;
    output::show(&api, &answer)
}

async fn act(args: ActionArgs, action: SaleAction) -> Result<(), CommandError> {
    let OneArgs { sale, api } = args.one;
    let client = api.connect()?;
    let answer = client
        .sale_action(&sale, action, &args.reason, &api.token)
        .await?;
    output::show(&api, &answer)
}

async fn adjust(args: AdjustArgs) -> Result<(), CommandError> {
    let OneArgs { sale, api } = args.one;
    let client = api.connect()?;
    let answer = client
        .adjust(&sale, &args.id, args.delta, &args.reason, &api.token)
        .await?;
    output::show(&api, &answer)
}

async fn page(args: OneArgs, page: &'static str) -> Result<(), CommandError> {
    let client = args.api.connect()?;
    let answer = client.sale_page(&args.sale, page, &args.api.token).await?;
    output::show(&args.api, &answer)
}

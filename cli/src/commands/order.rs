//! `flashsale order …`

use clap::Subcommand;
use shared::domain::{OrderId, SaleId};

use super::{ApiArgs, CommandError, output, values};

#[derive(Debug, Subcommand)]
pub(super) enum OrderCommand {
    /// Show one order of the token's buyer
    Show {
        /// The sale's id
        #[arg(value_parser = values::sale_id)]
        sale: SaleId,
        /// The order's id; without it, the buyer's order in this sale
        #[arg(value_parser = values::order_id)]
        order: Option<OrderId>,
        #[command(flatten)]
        api: ApiArgs,
    },
}

pub(super) async fn run(command: OrderCommand) -> Result<(), CommandError> {
    let OrderCommand::Show { sale, order, api } = command;
    let client = api.connect()?;
    let answer = match order {
        Some(order) => client.order(&sale, order, &api.token).await?,
        None => client.mine(&sale, &api.token).await?,
    };
    output::show(&api, &answer)
}

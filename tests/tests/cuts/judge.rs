//! Recovery as it happens by itself or by whoever asked, and what must hold then.

use shared::{
    domain::{OrderStatus, RejectReason, SaleId, SaleStatus, SaleTransition},
    invariants::invariants,
    ports::{OrderStore, SaleStore},
};
use tests::cuts::{
    Flow, Task,
    act::{self, STOCK},
    buyer, order_of, person,
};

use super::world::World;

/// Runs of reconcile until nothing is left to do, at most.
const RUNS_MAX: u32 = 6;
/// Buyers who still try when nothing may be left.
const IN_VAIN: u32 = 4;
/// The first of the buyers who come at the end.
const NEWCOMERS: u32 = 1_000;

/// Whoever asked asks again, and the queue delivers again.
pub async fn repeat(world: &World, task: &Task) {
    // Exactly what was cut, once more, and by hands to which nothing happens.
    match task.flow {
        // Nobody asks for these again: what they did has to be found.
        Flow::Repair | Flow::Rebuild | Flow::Finish | Flow::Read => {}
        Flow::Schedule => {
            // The lease of the one that died must be over.
            for _ in 0..50 {
                let came = task.flow.act(&world.hands, task).await;
                if came.contains("skipped: false") {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            panic!("the lease of a dead run never ends");
        }
        Flow::Office => {
            let hands = tests::cuts::Hands::connect(&task.stores, &task.dead_letters, None);
            task.flow.act(&hands, task).await;
        }
        Flow::Redrive => {
            // Its letters are shown again a while after the look of the process that died.
            let hands = tests::cuts::Hands::connect(&task.stores, &task.dead_letters, None);
            for _ in 0..80 {
                task.flow.act(&hands, task).await;
                if letters_left(world, task).await == 0 {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
            panic!("a dead letter stays for ever");
        }
        flow => {
            flow.act(&world.hands, task).await;
        }
    }
}

async fn letters_left(world: &World, task: &Task) -> u32 {
    use aws_sdk_sqs::types::QueueAttributeName::{
        ApproximateNumberOfMessages, ApproximateNumberOfMessagesNotVisible,
    };
    let names = [
        ApproximateNumberOfMessages,
        ApproximateNumberOfMessagesNotVisible,
    ];
    let read = world
        .client
        .get_queue_attributes()
        .queue_url(&task.dead_letters)
        .set_attribute_names(Some(names.to_vec()))
        .send()
        .await
        .unwrap();
    let attributes = read.attributes.unwrap_or_default();
    let counts = names
        .iter()
        .filter_map(|name| attributes.get(name)?.parse::<u32>().ok());
    counts.sum()
}

/// Reconcile runs until it finds nothing, with the queue delivering in between.
pub async fn come_to_rest(world: &World, sale: &SaleId) {
    let reconcile = world.hands.reconcile();
    for _ in 0..RUNS_MAX {
        let budget = reconcile::Budget::unbounded();
        let report = reconcile.run_sale(sale, budget).await.unwrap();
        if report.complete && report.findings() == 0 {
            return;
        }
    }
}

/// What does not hold; empty when all does.
pub async fn judge(world: &World, task: &Task) -> Vec<String> {
    let sale = SaleId::parse(&task.sale).unwrap();
    let mut wrong = promise(world, task.flow, &sale).await;
    if task.flow == Flow::Plan {
        // Nothing is loaded yet.
        return wrong;
    }
    let broken = invariants(&world.hands.ledger, &world.hands.store, &sale).await;
    wrong.extend(broken.unwrap().iter().map(ToString::to_string));
    let row = world.hands.store.sale(&sale).await.unwrap().unwrap();
    if row.status == SaleStatus::Suspended {
        let resumed = act::admin(&world.hands)
            .act(&sale, SaleTransition::Resume, &person())
            .await;
        if !matches!(resumed, Ok(admin::ActOutcome::Done(_))) {
            wrong.push(format!("cannot be resumed: {resumed:?}"));
        }
    }
    let open = matches!(row.status, SaleStatus::Open | SaleStatus::Suspended);
    let left = if open { row.available.get() } else { 0 };
    let sold = sell_out(world, &sale, left).await;
    if sold != left {
        wrong.push(format!(
            "{left} units were left, and {sold} could be bought"
        ));
    }
    wrong
}

/// Newcomers buy what is left, wherever their home is, and then some more try in vain.
async fn sell_out(world: &World, sale: &SaleId, left: u64) -> u64 {
    let (mut sold, mut in_vain) = (0, 0);
    for number in NEWCOMERS..NEWCOMERS + u32::try_from(STOCK).unwrap() * 6 {
        let outcome = act::buy(&world.hands, sale, number).await;
        sold += u64::from(matches!(outcome, deduct::Outcome::Accepted { .. }));
        in_vain += u32::from(sold >= left);
        if in_vain > IN_VAIN {
            break;
        }
    }
    sold
}

/// What each flow promises whoever asked for it.
async fn promise(world: &World, flow: Flow, sale: &SaleId) -> Vec<String> {
    use OrderStatus::{AwaitingPayment, Cancelled, Expired, Paid, Refunded, Rejected};
    let row = world.hands.store.sale(sale).await.unwrap().unwrap();
    let stock = |delta: i64| STOCK.cast_signed() + delta;
    let (orders, total, status): (&[OrderStatus], i64, SaleStatus) = match flow {
        Flow::Buy | Flow::Borrow | Flow::Replay | Flow::Read | Flow::Redrive => {
            (&[AwaitingPayment], stock(0), SaleStatus::Open)
        }
        Flow::Settle => (&[AwaitingPayment; 3], stock(0), SaleStatus::Open),
        Flow::Cancel => (&[Cancelled], stock(0), SaleStatus::Open),
        Flow::Pay => (&[Paid], stock(0), SaleStatus::Open),
        Flow::PayLate | Flow::Expire => (&[Expired], stock(0), SaleStatus::Open),
        Flow::Preheat | Flow::Schedule => (&[], stock(0), SaleStatus::Open),
        Flow::Restock => (&[AwaitingPayment], stock(2), SaleStatus::Open),
        Flow::Withdraw => (&[AwaitingPayment], stock(-1), SaleStatus::Open),
        Flow::Plan => (&[], stock(0), SaleStatus::Draft),
        Flow::Suspend | Flow::SuspendOlder => (&[AwaitingPayment], stock(0), SaleStatus::Suspended),
        Flow::Resume => (&[AwaitingPayment], stock(0), SaleStatus::Open),
        Flow::Close => (&[AwaitingPayment], stock(0), SaleStatus::Closed),
        Flow::Office | Flow::Refund => (&[Refunded], stock(0), SaleStatus::Open),
        Flow::Void => (&[Rejected], stock(0), SaleStatus::Open),
        Flow::Repair => (
            // The first and third began to be due only when their message was sent.
            &[
                AwaitingPayment,
                Expired,
                AwaitingPayment,
                Expired,
                Cancelled,
            ],
            stock(2),
            SaleStatus::Suspended,
        ),
        Flow::Rebuild => (
            &[AwaitingPayment, AwaitingPayment, Paid],
            stock(0),
            SaleStatus::Open,
        ),
        Flow::Finish => (&[Paid], stock(0), SaleStatus::Settled),
    };
    let mut wrong = Vec::new();
    for (number, wanted) in (1..).zip(orders) {
        let order = order_of(sale, &buyer(number));
        let found = world.hands.store.order(order).await.unwrap();
        let good = found.as_ref().is_some_and(|found| {
            let fell_due = flow == Flow::Repair && found.status == Expired;
            found.status == *wanted || *wanted == AwaitingPayment && fell_due
        });
        if !good {
            let found = found.map(|found| found.status);
            wrong.push(format!("order {number} is {found:?}, must be {wanted:?}"));
        } else if flow == Flow::Void
            && found.and_then(|found| found.reject_reason) != Some(RejectReason::Void)
        {
            wrong.push("the order is rejected, but not as void".to_owned());
        }
    }
    if row.total.get().cast_signed() != total {
        wrong.push(format!("{} units in all, must be {total}", row.total.get()));
    }
    if row.status != status {
        wrong.push(format!("the sale is {:?}, must be {status:?}", row.status));
    }
    let refunds = world
        .hands
        .store
        .sums(sale)
        .await
        .unwrap()
        .unwrap()
        .refunds_due;
    let due = u64::from(matches!(flow, Flow::PayLate | Flow::Refund));
    if refunds != due {
        wrong.push(format!("{refunds} refunds are due, must be {due}"));
    }
    wrong
}

//! A sale in the state that an invocation needs.

use preheat::{Preheat, PreheatOutcome};
use shared::{
    domain::{
        AdjustmentId, BodyHash, ExpiryMessage, Gate, IdempotencyKey, OrderId, OrderMessage,
        Quantity, SaleId, SalePlan, SaleTransition, SignedUnits, UnixMillis, Version,
    },
    loading::{OpenTransfer, end_transfer},
    ports::{
        Adjustment, AdjustmentState, CloseOutcome, DeductCall, DeductReply, GateChange, IdSource,
        LendReply, OrderStore, SaleStore, StockLedger, SystemIds,
    },
    routes::home_shard,
};
use tests::cuts::{Flow, Task, act, buyer, order_of, payment, person};

use super::world::World;

/// The shortest that there is.
const SHORT_S: u64 = 5;
/// A first claim, and the shortest time to pay, are over after this.
pub const OVER_MS: u64 = 5_300;

/// Whether the flow needs something to be over first.
pub fn must_wait(flow: Flow) -> bool {
    matches!(
        flow,
        Flow::Replay | Flow::PayLate | Flow::Expire | Flow::Repair
    )
}

/// A task without a cut, on a sale of its own.
pub async fn prepare(world: &World, flow: Flow, name: &str) -> Task {
    let sale = SaleId::parse(name).unwrap();
    let window_s = match flow {
        Flow::PayLate | Flow::Expire | Flow::Repair => SHORT_S,
        _ => act::LONG_S,
    };
    if flow != Flow::Plan {
        plan(world, &sale, window_s).await;
    }
    if !matches!(flow, Flow::Plan | Flow::Preheat) {
        load(world, &sale).await;
    }
    let mut bodies = Vec::new();
    let mut dead_letters = world.addresses.orders.clone();
    match flow {
        Flow::Buy | Flow::Plan | Flow::Preheat | Flow::Schedule => {}
        Flow::Borrow => empty_home(world, &sale, 1).await,
        Flow::Replay | Flow::Read | Flow::Void => {
            hold(world, &sale, 1).await;
        }
        Flow::Settle => bodies = batch(world, &sale).await,
        Flow::Cancel
        | Flow::Pay
        | Flow::PayLate
        | Flow::Restock
        | Flow::Withdraw
        | Flow::Suspend
        | Flow::Close => settled(world, &sale, 1).await,
        Flow::Expire => {
            settled(world, &sale, 1).await;
            let order_id = order_of(&sale, &buyer(1));
            let row = world.hands.store.order(order_id).await.unwrap().unwrap();
            let reminder = ExpiryMessage {
                sale_id: sale.clone(),
                order_id,
                pay_by: row.pay_by,
            };
            bodies.push(reminder.to_json());
        }
        Flow::SuspendOlder => {
            settled(world, &sale, 1).await;
            newer_gate(world, &sale).await;
        }
        Flow::Office => {
            settled(world, &sale, 1).await;
            pay(world, &sale, 1).await;
            let order = order_of(&sale, &buyer(1));
            let refunded = act::admin(&world.hands)
                .refund(&sale, order, &person())
                .await;
            assert!(refunded.is_ok(), "{refunded:?}");
            dead_letters = world.queue(&format!("dead-{sale}")).await;
            let send = world.client.send_message().queue_url(&dead_letters);
            send.message_body("no letter").send().await.unwrap();
        }
        Flow::Resume => {
            settled(world, &sale, 1).await;
            transition(world, &sale, SaleTransition::Suspend).await;
        }
        Flow::Refund => {
            settled(world, &sale, 1).await;
            pay(world, &sale, 1).await;
        }
        Flow::Redrive => {
            let message = hold(world, &sale, 1).await;
            dead_letters = world.queue(&format!("dead-{sale}")).await;
            let send = world.client.send_message().queue_url(&dead_letters);
            send.message_body(message.to_json()).send().await.unwrap();
        }
        Flow::Repair => something_of_everything(world, &sale).await,
        Flow::Rebuild => {
            for number in 1..=3 {
                settled(world, &sale, number).await;
            }
            hold(world, &sale, 4).await;
            pay(world, &sale, 3).await;
            world.lose_shard(&sale);
        }
        Flow::Finish => {
            settled(world, &sale, 1).await;
            pay(world, &sale, 1).await;
            transition(world, &sale, SaleTransition::Close).await;
        }
    }
    Task {
        flow,
        cut: None,
        sale: name.to_owned(),
        bodies,
        dead_letters,
        stores: world.addresses.clone(),
    }
}

async fn plan(world: &World, sale: &SaleId, payment_window_s: u64) {
    approve(world, sale, &act::plan(payment_window_s)).await;
}

/// A planned and approved sale.
pub async fn approve(world: &World, sale: &SaleId, plan: &SalePlan) {
    let admin = act::admin(&world.hands);
    admin.put(sale, plan, &person()).await.unwrap();
    transition(world, sale, SaleTransition::Approve).await;
}

/// Its stock in Redis, open.
pub async fn load(world: &World, sale: &SaleId) {
    let preheat = Preheat {
        ledger: world.hands.ledger.clone(),
        store: world.hands.store.clone(),
        ids: SystemIds,
    };
    let outcome = preheat.run(sale, &person()).await.unwrap();
    assert!(matches!(outcome, PreheatOutcome::Opened(_)), "{outcome:?}");
}

async fn transition(world: &World, sale: &SaleId, to: SaleTransition) {
    let outcome = act::admin(&world.hands).act(sale, to, &person()).await;
    assert!(
        matches!(outcome, Ok(admin::ActOutcome::Done(_))),
        "{outcome:?}"
    );
}

/// A shard hears of a newer row than SQL has, as after a restore of SQL.
async fn newer_gate(world: &World, sale: &SaleId) {
    let row = world.hands.store.sale(sale).await.unwrap().unwrap();
    let change = GateChange {
        version: Version::new(row.version.get() + 10),
        gate: Gate::Open,
        terms: act::terms(),
    };
    let shard = shared::mirror::shard_of(&row, shared::domain::ShardIndex::FIRST);
    world.hands.ledger.set_gate(&shard, &change).await.unwrap();
}

/// Every unit of a buyer's shard goes to the other one.
async fn empty_home(world: &World, sale: &SaleId, number: u32) {
    let row = world.hands.store.sale(sale).await.unwrap().unwrap();
    let home = buyer(number).home_shard(row.plan.shards);
    let from = shared::mirror::shard_of(&row, home);
    let stock = world.hands.ledger.snapshot(&from).await.unwrap().stock;
    let to = row.plan.shards.indexes().find(|index| *index != home);
    let transfer = OpenTransfer {
        id: AdjustmentId::transfer(home, to.unwrap(), SystemIds.call_id(), 0),
        from: home,
        to: to.unwrap(),
        units: SignedUnits::adding(stock).unwrap(),
    };
    let lent = world
        .hands
        .ledger
        .lend(&from, row.epoch, &transfer.id, stock)
        .await;
    assert_eq!(lent.unwrap(), LendReply::Lent);
    end_transfer(&world.hands.ledger, &row, &transfer)
        .await
        .unwrap();
}

/// A buyer's units are held; the message that her call did not send.
async fn hold(world: &World, sale: &SaleId, number: u32) -> OrderMessage {
    let row = world.hands.store.sale(sale).await.unwrap().unwrap();
    let route = shared::domain::RouteInfo {
        shards: row.plan.shards,
        epoch: row.epoch,
    };
    let buyer_id = buyer(number);
    let call = DeductCall {
        shard: home_shard(sale, route, &buyer_id),
        epoch: row.epoch,
        order_id: order_of(sale, &buyer_id),
        buyer_id: buyer_id.clone(),
        quantity: Quantity::parse(1).unwrap(),
        body_hash: BodyHash::of(b"1"),
        call_id: SystemIds.call_id(),
        not_after: UnixMillis::new(4_000_000_000_000),
        rate: None,
    };
    let reply = world.hands.ledger.deduct(&call).await.unwrap();
    let DeductReply::Reserved { reserved_at } = reply else {
        panic!("{reply:?}");
    };
    OrderMessage {
        sale_id: sale.clone(),
        epoch: row.epoch,
        buyer_id,
        order_id: call.order_id,
        quantity: call.quantity,
        reserved_at,
        body_hash: call.body_hash,
    }
}

async fn settled(world: &World, sale: &SaleId, number: u32) {
    let message = hold(world, sale, number).await;
    let failed = world.settle(&[message.to_json()]).await;
    assert_eq!(failed, Vec::<String>::new());
}

async fn pay(world: &World, sale: &SaleId, number: u32) {
    let order = order_of(sale, &buyer(number));
    let paid = act::orders(&world.hands).pay(&payment(sale, order)).await;
    assert!(matches!(paid, Ok(orders::PayOutcome::Paid(_))), "{paid:?}");
}

/// A held order; one that Redis lost; another order of a buyer who has one, and that one again.
async fn batch(world: &World, sale: &SaleId) -> Vec<String> {
    let first = hold(world, sale, 1).await;
    assert!(world.settle(&[first.to_json()]).await.is_empty());
    let second = hold(world, sale, 2).await;
    let lost = OrderMessage {
        buyer_id: buyer(3),
        order_id: order_of(sale, &buyer(3)),
        ..second.clone()
    };
    let other_key = IdempotencyKey::parse("other").unwrap();
    let other = OrderMessage {
        order_id: OrderId::derive(sale, &buyer(1), &other_key),
        reserved_at: first.reserved_at.plus(1),
        ..first.clone()
    };
    [first, second, lost, other]
        .iter()
        .map(OrderMessage::to_json)
        .collect()
}

/// One order held and not sent, one that Redis does not know, one closed that Redis still holds, one that falls
/// due, an adjustment that only SQL knows, and a stop of which no shard has heard.
async fn something_of_everything(world: &World, sale: &SaleId) {
    hold(world, sale, 1).await;
    let lost = OrderMessage {
        buyer_id: buyer(2),
        order_id: order_of(sale, &buyer(2)),
        ..hold(world, sale, 3).await
    };
    world.hands.store.settle(sale, &[lost]).await.unwrap();
    let third = order_of(sale, &buyer(3));
    settled(world, sale, 4).await;
    settled(world, sale, 5).await;
    let closed = order_of(sale, &buyer(5));
    let cancelled = world.hands.store.cancel(sale, closed, &buyer(5)).await;
    assert!(matches!(cancelled, Ok(CloseOutcome::Closed { .. })));
    assert!(world.hands.store.order(third).await.unwrap().is_none());
    let restock = Adjustment {
        id: AdjustmentId::parse("a1").unwrap(),
        sale_id: sale.clone(),
        delta: SignedUnits::parse(2).unwrap(),
        split: vec![(
            shared::domain::ShardIndex::FIRST,
            SignedUnits::parse(2).unwrap(),
        )],
        state: AdjustmentState::Pending,
    };
    world
        .hands
        .store
        .record_adjustment(&restock, &person())
        .await
        .unwrap();
    let stopped = world
        .hands
        .store
        .transition(sale, SaleTransition::Suspend, &person())
        .await;
    assert!(stopped.is_ok());
}

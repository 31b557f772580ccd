//! A whole sale from one seed.

use std::sync::Arc;

use shared::{
    adapters::memory::QueueName,
    domain::{Quantity, SalePlan, SaleStatus, SaleTransition, ShardCount, Terms, Units},
    ports::SaleStore,
};
use tokio::{runtime::Builder, task::JoinSet};

use crate::{
    actors::{buyer, calls, misfortune, operator, person, triggers},
    flaw::Flaws,
    oracle::{Oracle, Violation},
    rest,
    scenario::{Cut, Scenario},
    wire::Fault,
    world::World,
};

/// What to run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What is wrong with the build.
    pub flaws: Flaws,
    /// What is left out.
    pub cuts: Vec<Cut>,
    /// Whether the story is kept.
    pub tell: bool,
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// Broken promises, in order.
    pub violations: Vec<Violation>,
    /// Faults by kind.
    pub faults: Vec<(Fault, u32)>,
    /// The story, where one was asked for.
    pub story: Vec<String>,
    /// Units that live orders own at the end.
    pub sold: u64,
    /// Whether the sale reached `settled`.
    pub settled: bool,
}

/// Runs the sale of a seed from plan to report.
///
/// # Panics
///
/// When the runtime cannot be made, or a use case panics.
#[must_use]
pub fn run(seed: u64, options: &Options) -> Outcome {
    let scenario = Scenario::draw(seed).without(&options.cuts);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let Ok(runtime) = runtime else {
        panic!("no runtime: the system has no resources left")
    };
    runtime.block_on(async {
        let world = World::new(scenario, options.flaws.clone(), options.tell);
        live(&world).await;
        let (sold, settled) = world.stage.sale().map_or((0, false), |sale| {
            let sold = sale.total.get().saturating_sub(sale.available.get());
            (sold, sale.status == SaleStatus::Settled)
        });
        let violations = world.stage.watch.seen().violations.clone();
        Outcome {
            seed,
            violations,
            faults: world.network.counts(),
            story: world.network.story(),
            sold,
            settled,
        }
    })
}

async fn live(world: &Arc<World>) {
    world.network.tell(|| format!("{:?}", world.scenario));
    plan(world).await;
    let mut services = JoinSet::new();
    services.spawn(triggers::feed(Arc::clone(world), QueueName::Orders));
    services.spawn(triggers::feed(Arc::clone(world), QueueName::Expiries));
    services.spawn(triggers::preheat_schedule(Arc::clone(world)));
    services.spawn(triggers::reconcile_schedule(Arc::clone(world)));
    services.spawn(person::on_call(Arc::clone(world)));
    if world.stage.flaws.has(crate::flaw::Flaw::SetCounters) {
        services.spawn(triggers::set_counters(Arc::clone(world)));
    }
    let mut actors = JoinSet::new();
    actors.spawn(operator::load(Arc::clone(world)));
    for plan in &world.scenario.buyers {
        actors.spawn(buyer::live(Arc::clone(world), plan.clone()));
    }
    for (number, step) in world.scenario.operator.iter().enumerate() {
        actors.spawn(operator::step(Arc::clone(world), number, *step));
    }
    for disaster in &world.scenario.disasters {
        actors.spawn(misfortune::strike(Arc::clone(world), *disaster));
    }
    world.at(world.scenario.fair_ms).await;
    world.network.tell(|| "the weather turns fair".to_owned());
    world.turn_fair();
    while let Some(ended) = actors.join_next().await {
        calls::joined(ended);
    }
    // Frozen processes thaw and late copies arrive before anything is at rest.
    world.at(world.network.ghosts_until() + 60_000).await;
    finish(world).await;
}

async fn finish(world: &Arc<World>) {
    rest::settle_down(world, 30).await;
    world.network.tell(|| "at rest".to_owned());
    rest::check(world).await;
    rest::probe(world).await;
    world.pause(10_000).await;
    operator::close(world).await;
    for _ in 0..60 {
        world.pause(60_000).await;
        if world
            .stage
            .sale()
            .is_some_and(|sale| sale.status == SaleStatus::Settled)
        {
            break;
        }
    }
    rest::check(world).await;
    let status = world.stage.sale().map(|sale| sale.status);
    if status != Some(SaleStatus::Settled) {
        let left = rest::unrest(world).join(", ");
        world
            .stage
            .watch
            .broken(Oracle::NotSettled, || format!("{status:?}: {left}"));
    }
}

/// Plans and approves the sale; nothing goes wrong before there is anything to sell.
async fn plan(world: &World) {
    let (scenario, now) = (&world.scenario, world.now());
    let plan = (|| {
        Some(SalePlan {
            sku: "sku".to_owned(),
            name: "a thing".to_owned(),
            stock: Units::try_from(scenario.stock).ok()?,
            unit_price: calls::money(calls::UNIT_PRICE),
            terms: Terms {
                limit: Quantity::parse(scenario.limit).ok()?,
                opens_at: now.plus(scenario.opens_ms),
                closes_at: now.plus(scenario.closes_ms),
            },
            payment_window_s: scenario.payment_window_s,
            shards: ShardCount::parse(scenario.shards).ok()?,
        })
    })();
    let Some(plan) = plan else { return };
    let (store, actor) = (&world.stage.store, world.operator());
    let planned = store.put_plan(&world.sale, &plan, &actor).await;
    let approved = store
        .transition(&world.sale, SaleTransition::Approve, &actor)
        .await;
    world.network.tell(|| {
        format!(
            "planned: {}, approved: {}",
            planned.is_ok(),
            approved.is_ok()
        )
    });
}

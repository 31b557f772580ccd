//! Every flow, cut at every step.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::join_all;
use shared::domain::SaleId;
use tests::cuts::{Cut, Flow, Side, Task};
use tokio::{sync::Semaphore, task::JoinSet};

use super::{
    awaits,
    child::{self, End},
    judge,
    prepare::{OVER_MS, must_wait, prepare},
    world::World,
};

/// Processes at once.
const AT_ONCE: usize = 3;

/// In no flow: a run gives signs of life only when it lasts longer than any here does.
const RARE: [&str; 1] = ["heartbeat"];

/// The names of each flow's port calls, from a run without a cut.
type Traces = BTreeMap<Flow, Vec<String>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_step_nothing_is_oversold_or_lost() {
    let world = Arc::new(World::start().await);
    let traces = trace(&world).await;
    every_port_call_is_cut(&traces);
    let mut cut = Vec::new();
    // A schedule's run, the last, goes first: it looks at all sales that there are.
    for (flow, calls) in traces.iter().rev() {
        cut.extend(cut_everywhere(&world, *flow, calls).await);
    }
    recover(&world, &cut).await;
    let mut wrong = BTreeMap::<Flow, Vec<String>>::new();
    for (task, found) in judged(&world, &cut).await {
        let at = task.cut.unwrap();
        let call = &traces[&task.flow][at.call];
        let line = |what| format!("{} {:?} {call} ({}): {what}", at.call, at.side, task.sale);
        let lines = wrong.entry(task.flow).or_default();
        lines.extend(found.into_iter().map(line));
    }
    wrong.retain(|_, lines| !lines.is_empty());
    println!("| flow | port calls | cuts | violations |\n|---|---:|---:|---:|");
    for (flow, calls) in &traces {
        let cuts = cut.iter().filter(|task| task.flow == *flow).count();
        let wrong = wrong.get(flow).map_or(0, Vec::len);
        println!("| {flow:?} | {} | {cuts} | {wrong} |", calls.len());
    }
    let violations: usize = wrong.values().map(Vec::len).sum();
    println!(
        "cut matrix: {} points of {} flows, {violations} violations",
        cut.len(),
        traces.len()
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Runs every flow once without a cut: it must do what it promises, and tells its calls.
async fn trace(world: &Arc<World>) -> Traces {
    let mut tasks = Vec::new();
    for flow in Flow::ALL {
        let name = format!("{flow:?}-whole").to_lowercase();
        tasks.push(prepare(world, flow, &name).await);
    }
    tokio::time::sleep(Duration::from_millis(OVER_MS)).await;
    let mut traces = Traces::new();
    for task in &tasks {
        let (calls, end) = child::run(task).await;
        assert!(matches!(end, End::Done(_)), "{:?}: {end:?}", task.flow);
        assert!(!calls.is_empty());
        traces.insert(task.flow, calls);
    }
    recover(world, &tasks).await;
    for task in &tasks {
        let wrong = judge::judge(world, task).await;
        assert!(
            wrong.is_empty(),
            "{:?} without a cut: {wrong:#?}",
            task.flow
        );
    }
    traces
}

/// What the sources call, the traces contain: a new call has a cut, or this fails.
fn every_port_call_is_cut(traces: &Traces) {
    let cut: BTreeSet<&str> = traces
        .values()
        .flatten()
        .filter_map(|name| name.split_once('.'))
        .map(|(_, method)| method)
        .collect();
    let called = awaits::port_methods();
    let never: Vec<_> = called
        .iter()
        .filter(|method| !cut.contains(method.as_str()) && !RARE.contains(&method.as_str()))
        .collect();
    assert!(
        never.is_empty(),
        "in the sources, but in no flow: {never:?}"
    );
}

/// Every side of every call.
fn steps(calls: &[String]) -> Vec<Cut> {
    let sides = |call| [Side::Before, Side::After].map(|side| Cut { call, side });
    (0..calls.len()).flat_map(sides).collect()
}

async fn prepared(world: &World, flow: Flow, cut: Cut) -> Task {
    let name = format!("{flow:?}-{}-{:?}", cut.call, cut.side).to_lowercase();
    Task {
        cut: Some(cut),
        ..prepare(world, flow, &name).await
    }
}

async fn cut_everywhere(world: &Arc<World>, flow: Flow, calls: &[String]) -> Vec<Task> {
    let mut tasks = Vec::new();
    for some in steps(calls).chunks(AT_ONCE) {
        tasks.extend(join_all(some.iter().map(|cut| prepared(world, flow, *cut))).await);
    }
    if must_wait(flow) {
        tokio::time::sleep(Duration::from_millis(OVER_MS)).await;
    }
    // Runs under one lease would only wait for each other.
    let at_once = if flow == Flow::Schedule { 1 } else { AT_ONCE };
    let places = Arc::new(Semaphore::new(at_once));
    let mut running = JoinSet::new();
    for task in tasks.clone() {
        let places = Arc::clone(&places);
        running.spawn(async move {
            let _place = places.acquire_owned().await.unwrap();
            if task.flow == Flow::Schedule {
                let lease_ms = tests::cuts::policy().lease_ms;
                tokio::time::sleep(Duration::from_millis(lease_ms)).await;
            }
            let (calls, end) = child::run(&task).await;
            assert_eq!(end, End::Killed, "{task:?} was never there: {calls:?}");
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
    tasks
}

/// Whoever asked asks again, messages come again, reconcile runs: whatever heals in production.
async fn recover(world: &Arc<World>, tasks: &[Task]) {
    // No claim of a process that died stands in the way any longer.
    tokio::time::sleep(Duration::from_millis(OVER_MS)).await;
    // A dead letter that a process looked at stays hidden for a while: those are waited for all at once, and meanwhile
    // everybody else asks again.
    let (letters, others): (Vec<Task>, Vec<Task>) = tasks
        .iter()
        .cloned()
        .partition(|task| task.flow == Flow::Redrive);
    let repeat = |world: Arc<World>, task: Task| async move { judge::repeat(&world, &task).await };
    tokio::join!(
        each(world, &others, AT_ONCE, repeat),
        each(world, &letters, letters.len(), repeat),
    );
    for _ in 0..2 {
        world.drain().await;
        each(world, tasks, AT_ONCE, |world, task| async move {
            let sale = SaleId::parse(&task.sale).unwrap();
            judge::come_to_rest(&world, &sale).await;
        })
        .await;
    }
    world.drain().await;
}

/// What does not hold, task by task.
async fn judged(world: &Arc<World>, tasks: &[Task]) -> Vec<(Task, Vec<String>)> {
    let found = Arc::new(Mutex::new(Vec::new()));
    each(world, tasks, AT_ONCE, |world, task| {
        let found = Arc::clone(&found);
        async move {
            let wrong = judge::judge(&world, &task).await;
            found.lock().unwrap().push((task, wrong));
        }
    })
    .await;
    std::mem::take(&mut *found.lock().unwrap())
}

/// Does something for each task, so many at once.
async fn each<F, R>(world: &Arc<World>, tasks: &[Task], at_once: usize, what: F)
where
    F: Fn(Arc<World>, Task) -> R,
    R: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(at_once));
    let mut running = JoinSet::new();
    for task in tasks {
        let places = Arc::clone(&places);
        let work = what(Arc::clone(world), task.clone());
        running.spawn(async move {
            let _place = places.acquire_owned().await.unwrap();
            work.await;
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}

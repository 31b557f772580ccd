//! The measurement of the scripts' cost runs through on every engine; its times are not looked at here.

use flashsale::bench::{ScriptBench, ShardsBench};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bench_gets_the_replies_and_counts_it_wants() {
    let bench = ScriptBench {
        calls: 300,
        runs: 1,
    };
    let table = bench.run().await.unwrap().to_string();
    for case in ["success", "sold out", "a winner asks again"] {
        let rows = table
            .lines()
            .filter(|line| line.contains(&format!("| {case} |")));
        assert_eq!(rows.count(), 2, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_shards_share_the_calls_and_lend_every_unit() {
    // Exact counts, and that nobody hears "sold out" too early, are the bench's own conditions.
    let even = ShardsBench {
        stock: 200,
        buyers: 900,
        uneven: false,
        runs: 2,
    };
    let report = even.run().await.unwrap();
    assert!(report.busiest_by_calls() <= 0.45, "{report}");
    let uneven = ShardsBench {
        uneven: true,
        ..even
    };
    let report = uneven.run().await.unwrap();
    assert!(report.loans() > 0, "{report}");
}

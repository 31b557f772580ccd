//! The comparison: every method that is meant to be right is, and the one that is not is caught.

use flashsale::compare::{CompareConfig, Method, compare};
use flashsale::demo::Progress;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_method_but_the_naive_one_is_exact() {
    let config = CompareConfig {
        stock: 100,
        buyers: 600,
        lanes: vec![1, 48],
        rounds: 1,
        ..CompareConfig::default()
    };
    let report = compare(&config, &Progress::new(true)).await.unwrap();
    let wrong: Vec<_> = report.wrong();
    assert!(wrong.is_empty(), "{wrong:?}");
    for &lanes in &config.lanes {
        for method in Method::ALL {
            let row = report.row(method, lanes).unwrap();
            // Second clicks are attempts too: every twentieth of 600.
            assert_eq!(row.attempts, 630, "{method:?}");
            if method.must_be_exact() {
                assert_eq!((row.won, row.gave_up), (100, 0), "{method:?}");
            }
        }
    }
    // With one call at a time it sells what there is, and is still wrong about what came back twice.
    let alone = report.row(Method::Naive, 1).unwrap();
    assert_eq!((alone.oversold, alone.exact()), (0, false), "{alone:?}");
    let crowded = report.row(Method::Naive, 48).unwrap();
    assert!(crowded.oversold > 0, "{crowded:?}");
    let text = report.markdown("a test");
    assert!(text.contains("| read, then write (wrong) |"), "{text}");
}

//! A collection records a shared block as counted only if the result contains the report that counted the block.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use memory_reporter::{
    Collection, MallocSizeOf, MallocSizeOfOps, Reading, Reports, measure::AddSizeOf,
    memory_report::WarningKind,
};

use super::{Bomb, By, amounts, warnings};

const SIZE: i64 = 1 << 20;

fn shared() -> Arc<Vec<u8>> {
    Arc::new(vec![0; SIZE as usize])
}

/// Counts the shared value, and then panics.
#[derive(MallocSizeOf)]
struct CountsAndPanics {
    shared: Arc<Vec<u8>>,
    bomb: Bomb,
}

impl AddSizeOf<usize> for CountsAndPanics {
    fn add_size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>, sizes: &mut usize) {
        *sizes += self.size_of_excluding_this(ops);
    }
}

#[test]
fn a_report_that_is_left_out_has_counted_nothing() {
    let big = shared();
    let bad: [&dyn Fn(&mut Reports); 3] = [
        &|out| out.heap("explicit/cache\n1", &big, "Memory of it."),
        &|out| out.heap_with("explicit/cache\n1", |ops| big.size_of_excluding_this(ops), "Memory of it."),
        &|out| out.heap_tree("explicit/cache\n1", &big, 1, "Memory of it."),
    ];
    for (place, report) in bad.iter().enumerate() {
        let reporter = By(
            || "reporter",
            |out: &mut Reports| {
                report(out);
                out.heap("explicit/after", &big, "Memory of it.");
            },
        );
        let set = Collection::new().with(&reporter).collect();
        assert!(amounts(&set)["explicit/after"] >= SIZE, "{place}");
        let message = "`explicit/cache\\n1`: the path has a control character";
        assert_eq!(warnings(&set, "reporter"), [(WarningKind::ReportDropped, message)], "{place}");
    }
}

#[test]
fn a_caught_panic_costs_only_the_report_that_panicked() {
    let (before, big) = (shared(), shared());
    let value = CountsAndPanics { shared: Arc::clone(&big), bomb: Bomb };
    let walks: [&dyn Fn(&mut Reports); 5] = [
        &|out| out.heap("explicit/bomb", &value, "Memory of it."),
        &|out| out.heap_with("explicit/bomb", |ops| value.size_of_excluding_this(ops), "Memory of it."),
        &|out| out.heap_tree("explicit/bomb", &value, 1, "Memory of it."),
        &|out| {
            let _: usize = out.split(&value);
        },
        // This path is outside of the tree `explicit`.
        &|out| out.heap("bomb", &value, "Memory of it."),
    ];
    for (place, walk) in walks.iter().enumerate() {
        let reporter = By(
            || "catches",
            |out: &mut Reports| {
                out.heap("explicit/before", &before, "Memory of it.");
                assert!(catch_unwind(AssertUnwindSafe(|| walk(out))).is_err());
                out.heap("explicit/before-again", &before, "Memory of it.");
                out.heap("explicit/after", &big, "Memory of it.");
            },
        );
        let later = By(
            || "later",
            |out: &mut Reports| {
                out.heap("explicit/later", &before, "Memory of it.");
                out.heap("explicit/later-too", &big, "Memory of it.");
            },
        );
        let set = Collection::new().with(&reporter).with(&later).collect();
        let amounts = amounts(&set);
        assert!(amounts["explicit/before"] >= SIZE, "{place}");
        assert_eq!(amounts["explicit/before-again"], 0, "{place}: the earlier report has counted the value");
        assert!(amounts["explicit/after"] >= SIZE, "{place}: the interrupted report has counted nothing");
        assert_eq!(amounts["explicit/later"], 0, "{place}");
        assert_eq!(amounts["explicit/later-too"], 0, "{place}");
        assert!(!amounts.contains_key("explicit/bomb") && !amounts.contains_key("bomb"), "{place}");
    }
}

#[test]
fn only_heap_unclassified_itself_is_nobody_s_to_report() {
    let mine = vec![1_u8; 9];
    let reporter = By(
        || "reporter",
        |out: &mut Reports| {
            for path in ["heap-unclassified-things/cache", "heap-unclassified", "heap-unclassified/mine"] {
                out.heap(format!("explicit/{path}"), &mine, "Memory of it.");
            }
        },
    );
    let set = Collection::new().with(&reporter).collect();
    let paths: Vec<_> = set.iter().map(|report| report.path).collect();
    assert_eq!(paths, ["explicit/heap-unclassified-things/cache"]);
    assert_eq!(warnings(&set, "reporter").len(), 2);
}

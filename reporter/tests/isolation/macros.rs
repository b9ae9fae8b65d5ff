//! Macros define no names that could hide names in their arguments.

use std::sync::Mutex;

use memory_reporter::{CollectOptions, collect_reports};

use super::{alone, amounts};

struct OneReport;

impl OneReport {
    const NUMBER: u32 = 5;
}

static NAMES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

memory_reporter::define_reporter!("one-reports", Other, Count, OneReport::NUMBER, "The number of it.");
memory_reporter::define_reporter!("explicit/one-report/names", Heap, &NAMES, "Memory used by the names.");
memory_reporter::define_reporter!(
    "explicit/one-report/tree",
    HeapTree,
    1,
    &NAMES,
    "Memory used by the names."
);

#[test]
fn define_reporter_hides_no_type_of_the_program() {
    let _alone = alone();
    *NAMES.lock().unwrap() = vec![0; 10_000];
    let set = collect_reports(&CollectOptions::new());
    let amounts = amounts(&set);
    assert_eq!(amounts["one-reports"], 5);
    assert!(amounts["explicit/one-report/names"] >= 10_000);
    assert!(amounts["explicit/one-report/tree"] >= 10_000);
    let names: Vec<_> = set.runs().iter().map(|run| run.reporter.as_str()).collect();
    assert!(names.contains(&"one-reports") && names.contains(&"explicit/one-report/names"));
}

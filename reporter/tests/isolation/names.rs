//! Reporters that are not linked, and whose `name` panics or collects.

use std::rc::Rc;
use std::sync::Arc;

use memory_reporter::{
    CollectOptions, Collection, ReportSet, Reports, collect_reports, memory_report::WarningKind,
    register_local, register_strong, register_weak,
};

use super::{By, alone, amounts, warnings};

const PLACEHOLDER: &str = "(name() panicked: no name today)";

fn nameless() -> &'static str {
    panic!("no name today")
}

fn collecting() -> &'static str {
    assert!(collect_reports(&CollectOptions::new()).is_empty());
    "collecting"
}

fn report(out: &mut Reports) {
    memory_reporter::collect_report!(out, "one", Other, Count, 1, "One report.");
}

fn check(set: &ReportSet, who: &str) {
    let message = "its name() panicked; the reporter runs under this name instead";
    assert_eq!(warnings(set, PLACEHOLDER), [(WarningKind::Panicked, message)], "{who}");
    assert_eq!(amounts(set)["one"], 1, "{who}");
    assert!(set.runs().iter().any(|run| run.reporter == PLACEHOLDER), "{who}");
}

#[test]
fn a_borrowed_one() {
    let reporter = By(nameless, report);
    check(&Collection::new().with(&reporter).collect(), "borrowed");
    let reporter = By(collecting, report);
    let set = Collection::new().with(&reporter).collect();
    let message = "its name() called collect_reports; nothing was collected there";
    assert_eq!(warnings(&set, "collecting"), [(WarningKind::Nested, message)]);
    assert_eq!(amounts(&set)["one"], 1);
}

#[test]
fn a_registered_one() {
    let _alone = alone();
    {
        let _registration = register_strong(Arc::new(By(nameless, report)));
        check(&collect_reports(&CollectOptions::new()), "strong");
    }
    {
        let reporter = Arc::new(By(nameless, report));
        let _registration = register_weak(&reporter);
        check(&collect_reports(&CollectOptions::new()), "weak");
    }
    let _registration = register_local(Rc::new(By(nameless, report)));
    check(&collect_reports(&CollectOptions::new()), "local");
}

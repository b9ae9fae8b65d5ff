//! Linked reporters whose `name` panics, collects or registers. The first collection calls it.

use std::sync::Arc;

use memory_reporter::{
    CollectOptions, MemoryReporter, ReportSet, Reports, collect_reports, memory_report::WarningKind,
    register_reporter, register_strong,
};

memory_reporter::global_allocator!(std::alloc::System);

struct Linked(fn() -> &'static str);

impl MemoryReporter for Linked {
    fn name(&self) -> &str {
        (self.0)()
    }

    fn collect_reports(&self, out: &mut Reports) {
        memory_reporter::collect_report!(out, "linked", Other, Count, 1, "One of several.");
    }
}

register_reporter!(Linked(|| panic!("no linked name today")));
register_reporter!(Linked(|| {
    assert!(collect_reports(&CollectOptions::new()).is_empty());
    "linked-and-collecting"
}));
register_reporter!(Linked(|| {
    let registration = register_strong(Arc::new(Linked(|| "by-the-name")));
    // A collection on another thread also needs all names.
    std::thread::spawn(|| drop(collect_reports(&CollectOptions::new())))
        .join()
        .expect("a collection does not panic");
    drop(registration);
    "linked-and-waiting"
}));

/// The warnings about one subject.
fn warnings<'a>(set: &'a ReportSet, subject: &str) -> Vec<(WarningKind, &'a str)> {
    let warnings = set.warnings().iter().filter(|warning| warning.subject == subject);
    warnings.map(|warning| (warning.kind, warning.message.as_str())).collect()
}

#[test]
fn linked_reporters_run_whatever_their_names_do() {
    let set = collect_reports(&CollectOptions::new());
    let placeholder = "(name() panicked: no linked name today)";
    let message = "its name() panicked; the reporter runs under this name instead";
    assert_eq!(warnings(&set, placeholder), [(WarningKind::Panicked, message)]);
    let message = "its name() called collect_reports; nothing was collected there";
    assert_eq!(warnings(&set, "linked-and-collecting"), [(WarningKind::Nested, message)]);
    let runs = set.runs().iter().filter(|run| {
        [placeholder, "linked-and-collecting", "linked-and-waiting"].contains(&run.reporter.as_str())
    });
    assert_eq!(runs.map(|run| run.reports).sum::<usize>(), 3);
}

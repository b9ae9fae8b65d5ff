//! A program with reports that the collection leaves out. Other reporters also report some of the blocks of these
//! reports. Usage, with `DMD`: `withdrawn report FILE` or `withdrawn dump FILE`.

use std::alloc::System;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use memory_reporter::{
    CollectOptions, MallocSizeOf, MallocSizeOfOps, MemoryReporter, Reports, collect_reports,
    measure::ErasedReading, register_reporter,
};

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

type Pages = Vec<Vec<u8>>;

/// Blocks of the faulty reporters, which panic, misspell a path or do not answer. A reporter without a fault reports
/// them, too.
static PAGES: Mutex<Pages> = Mutex::new(Vec::new());
/// Blocks that only the faulty reporters report.
static LOST: Mutex<Pages> = Mutex::new(Vec::new());

struct By(&'static str, fn(&mut Reports));

impl MemoryReporter for By {
    fn name(&self) -> &str {
        self.0
    }

    fn collect_reports(&self, out: &mut Reports) {
        (self.1)(out);
    }
}

register_reporter!(By("panics", |out| {
    out.heap("explicit/pages", &PAGES, "Memory used by pages.");
    out.heap("explicit/lost", &LOST, "Memory used by lost pages.");
    panic!("on purpose");
}));
register_reporter!(By("catches", |out| {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let walk = |ops: &mut MallocSizeOfOps<ErasedReading<'_>>| -> usize {
            PAGES.size_of_excluding_this(ops);
            LOST.size_of_excluding_this(ops);
            panic!("on purpose")
        };
        out.heap_with("explicit/caught", walk, "Memory used by lost pages.");
    }));
    assert!(caught.is_err());
}));
register_reporter!(By("misspells", |out| {
    out.heap("explicit//pages", &PAGES, "Memory used by pages.");
    out.heap_with("explicit//pages", |ops| LOST.size_of_excluding_this(ops), "Memory used by pages.");
}));
register_reporter!(By("does not answer", |out| {
    out.heap("explicit/late", &PAGES, "Memory used by pages.");
    loop {
        std::thread::park();
    }
}));
register_reporter!(By("reports", |out| out.heap("explicit/pages", &PAGES, "Memory used by pages.")));

#[inline(never)]
fn report_well() -> Pages {
    (0..100).map(|_| vec![1_u8; 10_000]).collect()
}

#[inline(never)]
fn lose() -> Pages {
    (0..100).map(|_| vec![1_u8; 20_000]).collect()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (what, file) = (arguments.next().expect("report or dump"), arguments.next().expect("a file"));
    *PAGES.lock().expect("unpoisoned") = report_well();
    *LOST.lock().expect("unpoisoned") = lose();
    let options = CollectOptions::new().deadline(Duration::from_secs(2));
    // The first collection leaves one reporter running. The second collection does not run that reporter again, so both
    // collections report the same blocks.
    let first = collect_reports(&options);
    match &*what {
        "report" => memory_reporter::file::write(&file, &first).expect("writable"),
        _ => dmd::report_and_dump(Path::new(&file)).expect("a dump"),
    }
}

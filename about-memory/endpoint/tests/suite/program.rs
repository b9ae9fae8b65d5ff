//! The program for which the endpoint answers.

use std::alloc::System;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use dmd::{Dmd, Mode, Options};
use memory_endpoint::EndpointResponse;
use memory_export::pprof::{self, PprofReadOptions};
use memory_export::{ProfileValue, StackProfile};
use memory_reporter::{Kind, MemoryReporter, Reports, Units};

memory_reporter::global_allocator!(
    Dmd<System>: Dmd::switched_on(
        System,
        Options::new()
            .mode(Mode::DarkMatter)
            .stacks(dmd::Stacks::Full)
            .quiet(true)
            .black_box(dmd::BlackBox::new().folder(KEPT))
    )
);

/// The folder of the black box.
pub(crate) const KEPT: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/black-box");

/// The value that `explicit/names` reports. It never changes after it is filled.
pub(crate) static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());

memory_reporter::define_reporter!("explicit/names", Heap, &NAMES, "Memory used by names.");

struct Private;

impl MemoryReporter for Private {
    fn collect_reports(&self, out: &mut Reports) {
        let name = if out.anonymize() { "<anonymized>" } else { "secret.txt" };
        let path = format!("private/{name}");
        out.report(&path, Kind::Other, Units::Count, 7, "A file that nobody else may know.");
    }
}

/// Fills the program, and gives one test at a time access to it: the endpoint answers one request at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    static FILLED: Once = Once::new();
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    FILLED.call_once(|| {
        *NAMES.lock().unwrap() = (0..1000).map(|number| format!("{number:0300}")).collect();
        memory_reporter::register_strong(Arc::new(Private)).forever();
        // An unreported block.
        std::hint::black_box(Box::leak(vec![1_u8; 777_777].into_boxed_slice()));
    });
    alone
}

/// The expected bytes of `explicit/names`.
pub(crate) fn names_bytes() -> i128 {
    memory_reporter::malloc_size_of(&*NAMES.lock().unwrap()) as i128
}

/// The body of a successful answer.
pub(crate) fn body(response: EndpointResponse) -> Vec<u8> {
    let line = String::from_utf8_lossy(&response.body[..response.body.len().min(200)]).into_owned();
    assert_eq!(response.status, 200, "{line}");
    response.body
}

/// The one line of an error.
pub(crate) fn line(response: &EndpointResponse) -> &str {
    let text = std::str::from_utf8(&response.body).unwrap();
    assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(text.ends_with('\n') && text.lines().count() == 1, "{text}");
    text.trim_end()
}

/// Reads a profile by the schema of pprof.
pub(crate) fn profile(body: &[u8]) -> StackProfile {
    pprof::read(body, &PprofReadOptions::new()).unwrap()
}

/// The bytes of a profile by the label `reporter`. Samples without the label have the key `""`.
pub(crate) fn by_reporter(stacks: &StackProfile) -> BTreeMap<String, i128> {
    let column = stacks.index_of(ProfileValue::LiveBytes).unwrap();
    let mut sums = BTreeMap::new();
    for owned in stacks.owned().iter() {
        let reporter = owned.owner.reporter.unwrap_or_default().to_owned();
        *sums.entry(reporter).or_default() += owned.sums[column];
    }
    sums
}

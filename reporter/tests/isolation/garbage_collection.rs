//! Callbacks of garbage collections that panic, remove themselves or collect again, and the statistics that they
//! receive.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::{Arc, Mutex};
use std::thread;

use memory_reporter::{
    pressure::{AllocatorPurge, MemoryPressure, minimize_memory_usage},
    watching::{
        Collector, CycleProgress, GarbageCollection, GarbageCollectionCycle, GarbageCollectionHook,
        WatchedCollector, on_garbage_collection,
    },
};

use super::{DropBomb, alone};

/// A collector with a number of slices of work for a cycle.
struct Work {
    slices: usize,
    done: usize,
}

impl Collector for Work {
    fn name(&self) -> Cow<'static, str> {
        format!("work of {}", self.slices).into()
    }

    fn slice(&mut self) -> CycleProgress {
        if self.slices == 0 {
            return CycleProgress::Idle;
        }
        self.done += 1;
        if self.done.is_multiple_of(self.slices) {
            CycleProgress::Finished
        } else {
            CycleProgress::Unfinished
        }
    }

    fn finish(&mut self) {
        while self.slice() == CycleProgress::Unfinished {}
    }
}

fn work(slices: usize) -> WatchedCollector<Work> {
    WatchedCollector::new(Work { slices, done: 0 })
}

type Seen = Arc<Mutex<Vec<(GarbageCollection, thread::ThreadId)>>>;

/// Records the statistics that callbacks receive, with their threads.
fn watch() -> (Seen, GarbageCollectionHook) {
    let seen = Seen::default();
    let into = Arc::clone(&seen);
    let hook = on_garbage_collection(move |cycle| {
        into.lock().unwrap().push((cycle.clone(), thread::current().id()));
    });
    (seen, hook)
}

fn taken(seen: &Seen) -> Vec<GarbageCollection> {
    std::mem::take(&mut *seen.lock().unwrap()).into_iter().map(|(cycle, _)| cycle).collect()
}

#[test]
fn a_cycle_has_its_slices_in_order() {
    let _alone = alone();
    let (seen, _hook) = watch();
    let mut collector = work(3);
    for _ in 0..2 {
        assert_eq!(collector.slice("ALLOC_TRIGGER"), CycleProgress::Unfinished);
    }
    assert!(taken(&seen).is_empty());
    assert_eq!(collector.slice("ignored, since the cycle is open"), CycleProgress::Finished);
    collector.collect("API");
    let cycles = taken(&seen);
    let [first, second] = &cycles[..] else { panic!("{cycles:?}") };
    assert_eq!((&*first.collector, &*first.reason), ("work of 3", "ALLOC_TRIGGER"));
    assert_eq!((first.collections.len(), second.collections.len()), (3, 1));
    assert_eq!(first.nonincremental_reason, None);
    assert_eq!(second.nonincremental_reason.as_deref(), Some("requested"));
    assert_eq!((&*second.reason, second.gc_cycle_number), ("API", first.gc_cycle_number + 1));
    let times: Vec<f64> = cycles
        .iter()
        .flat_map(|cycle| &cycle.collections)
        .flat_map(|slice| [slice.start_timestamp, slice.end_timestamp])
        .collect();
    assert!(times.is_sorted() && times[0] > 0.0, "{times:?}");
    // The tests run soon after the process has started.
    assert!(times[7] < 600_000.0, "milliseconds since the process started: {times:?}");
    assert_eq!(work(0).slice("nothing to do"), CycleProgress::Idle);
    assert!(taken(&seen).is_empty());
}

#[test]
fn the_json_is_firefoxs() {
    let _alone = alone();
    let mut cycle = GarbageCollectionCycle::begin("a \"heap\"", "API");
    cycle.slice(|| ());
    let statistics = cycle.end();
    let json: serde_json::Value = serde_json::from_str(&statistics.to_json()).unwrap();
    let slice = &statistics.collections[0];
    assert_eq!(
        json,
        serde_json::json!({
            "nonincrementalReason": null,
            "reason": "API",
            "gcCycleNumber": statistics.gc_cycle_number,
            "collections": [{"startTimestamp": slice.start_timestamp, "endTimestamp": slice.end_timestamp}],
            "collector": "a \"heap\"",
        })
    );
}

#[test]
fn a_callback_runs_on_the_thread_of_the_cycle() {
    let _alone = alone();
    let (seen, _hook) = watch();
    let thread = thread::spawn(|| work(1).collect("API"));
    let id = thread.thread().id();
    thread.join().unwrap();
    assert_eq!(seen.lock().unwrap()[0].1, id);
}

#[test]
fn a_callback_may_panic_remove_itself_and_collect() {
    let _alone = alone();
    let slot: Arc<Mutex<Option<GarbageCollectionHook>>> = Arc::default();
    let (own, bomb) = (Arc::clone(&slot), DropBomb);
    let once = on_garbage_collection(move |_| {
        let _ = &bomb;
        drop(own.lock().unwrap().take());
    });
    *slot.lock().unwrap() = Some(once);
    let _panics = on_garbage_collection(|_| panic_any(DropBomb));
    let _collects = on_garbage_collection(|_| work(1).collect("inside of a callback"));
    let (seen, hook) = watch();
    work(1).collect("API");
    work(1).collect("API");
    let reasons: Vec<String> = taken(&seen).into_iter().map(|cycle| cycle.reason.into_owned()).collect();
    assert_eq!(reasons, ["API", "API"]);
    drop(hook);
    work(1).collect("API");
    assert!(taken(&seen).is_empty());
}

#[test]
fn a_slice_that_panics_has_its_times() {
    let _alone = alone();
    let mut cycle = GarbageCollectionCycle::begin("heap", "DEBUG_GC");
    assert!(catch_unwind(AssertUnwindSafe(|| cycle.slice(|| panic!("the work")))).is_err());
    assert_eq!(cycle.end().collections.len(), 1);
}

#[test]
fn a_cycle_lists_a_bounded_number_of_slices() {
    let _alone = alone();
    let mut cycle = GarbageCollectionCycle::begin("heap", "DEBUG_GC");
    for _ in 0..20_000 {
        cycle.slice(|| ());
    }
    let before = cycle.end();
    assert_eq!(before.collections.len(), 10_000);
    assert!(before.collections.is_sorted_by(|a, b| a.end_timestamp <= b.start_timestamp));
}

#[test]
fn memory_pressure_and_the_allocator_are_collectors() {
    let _alone = alone();
    let (seen, _hook) = watch();
    minimize_memory_usage();
    WatchedCollector::new(AllocatorPurge).collect("API");
    let mut pressure = WatchedCollector::new(MemoryPressure::new());
    assert_eq!(pressure.slice("LOAD_END"), CycleProgress::Unfinished);
    pressure.collect("API");
    let cycles = taken(&seen);
    let short: Vec<_> =
        cycles.iter().map(|cycle| (&*cycle.collector, &*cycle.reason, cycle.collections.len())).collect();
    let pressure = "memory-pressure";
    assert_eq!(short, [(pressure, "MEM_PRESSURE", 4), ("allocator", "API", 1), (pressure, "LOAD_END", 2)]);
}

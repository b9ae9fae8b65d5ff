//! Reporters whose destructor panics when a collection drops the last reference to them.

use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use memory_reporter::{
    CollectOptions, LocalRegistration, MemoryReporter, Registration, ReportSet, Reports, collect_reports,
    memory_report::WarningKind, register_local, register_strong, register_weak,
};

use super::{DropBomb, alone, amounts, warnings};

type Slot<T> = Arc<Mutex<Option<T>>>;

/// Makes a collection the last owner: the program drops its own reference while the reporter runs.
struct LastHeldByTheCollection<T> {
    slot: Slot<T>,
    _bomb: DropBomb,
}

impl<T> MemoryReporter for LastHeldByTheCollection<T> {
    fn name(&self) -> &str {
        "bomb"
    }

    fn collect_reports(&self, out: &mut Reports) {
        memory_reporter::collect_report!(out, "bombs", Other, Count, 1, "How many there are.");
        drop(self.slot.lock().expect("no thread panics with the lock").take());
    }
}

fn options() -> [CollectOptions; 2] {
    [CollectOptions::new(), CollectOptions::new().deadline(Duration::from_secs(60))]
}

fn check(set: &ReportSet) {
    let message = "its destructor panicked, its reports are kept: the destructor";
    assert_eq!(warnings(set, "bomb"), [(WarningKind::Panicked, message)]);
    assert_eq!(amounts(set)["bombs"], 1);
    // Later reporters still run.
    assert_eq!(amounts(set)["last-one"], 1);
    let again = collect_reports(&CollectOptions::new());
    assert!(warnings(&again, "bomb").is_empty() && !amounts(&again).contains_key("bombs"));
}

struct Last;

impl MemoryReporter for Last {
    fn name(&self) -> &str {
        "zzz"
    }

    fn collect_reports(&self, out: &mut Reports) {
        memory_reporter::collect_report!(out, "last-one", Other, Count, 1, "One report.");
    }
}

memory_reporter::register_reporter!(Last);

#[test]
fn a_weak_one() {
    let _alone = alone();
    for options in options() {
        let slot: Slot<Arc<dyn MemoryReporter + Send + Sync>> = Slot::default();
        let reporter = Arc::new(LastHeldByTheCollection { slot: Arc::clone(&slot), _bomb: DropBomb });
        let _registration = register_weak(&reporter);
        *slot.lock().unwrap() = Some(reporter);
        check(&collect_reports(&options));
    }
}

#[test]
fn a_strong_one() {
    let _alone = alone();
    for options in options() {
        let slot: Slot<Registration> = Slot::default();
        let reporter = LastHeldByTheCollection { slot: Arc::clone(&slot), _bomb: DropBomb };
        *slot.lock().unwrap() = Some(register_strong(Arc::new(reporter)));
        check(&collect_reports(&options));
    }
}

#[test]
fn one_of_a_thread() {
    let _alone = alone();
    let slot: Slot<LocalRegistration> = Slot::default();
    let reporter = LastHeldByTheCollection { slot: Arc::clone(&slot), _bomb: DropBomb };
    *slot.lock().unwrap() = Some(register_local(Rc::new(reporter)));
    check(&collect_reports(&CollectOptions::new()));
}

#[test]
fn one_that_owns_its_registration_and_collects() {
    struct OwnsItself(Mutex<Option<Registration>>, Slot<Arc<OwnsItself>>);
    impl MemoryReporter for OwnsItself {
        fn name(&self) -> &str {
            "owns-itself"
        }
        fn collect_reports(&self, _: &mut Reports) {
            drop(self.1.lock().unwrap().take());
        }
    }
    impl Drop for OwnsItself {
        fn drop(&mut self) {
            drop(self.0.lock().unwrap().take());
            assert!(collect_reports(&CollectOptions::new()).is_empty());
        }
    }
    let _alone = alone();
    for options in options() {
        let slot: Slot<Arc<OwnsItself>> = Slot::default();
        let reporter = Arc::new(OwnsItself(Mutex::new(None), Arc::clone(&slot)));
        *reporter.0.lock().unwrap() = Some(register_weak(&reporter));
        *slot.lock().unwrap() = Some(reporter);
        let set = collect_reports(&options);
        let message = "its destructor called collect_reports; nothing was collected there";
        assert_eq!(warnings(&set, "owns-itself"), [(WarningKind::Nested, message)]);
    }
}

/// Registers another reporter in its destructor, and then panics.
struct RegistersInDrop(DropBomb);

impl Drop for RegistersInDrop {
    fn drop(&mut self) {
        let registration = register_local(Rc::new(Last));
        drop(registration);
    }
}

impl MemoryReporter for RegistersInDrop {
    fn collect_reports(&self, _: &mut Reports) {
        let _ = &self.0;
    }
}

#[test]
#[allow(clippy::mem_forget, reason = "the thread's end drops the reporters")]
fn forgotten_local_reporters_end_with_their_thread_whatever_their_destructors_do() {
    let thread = std::thread::spawn(|| {
        for _ in 0..2 {
            std::mem::forget(register_local(Rc::new(RegistersInDrop(DropBomb))));
        }
        amounts(&collect_reports(&CollectOptions::new()))["last-one"]
    });
    assert_eq!(thread.join().unwrap(), 1);
}

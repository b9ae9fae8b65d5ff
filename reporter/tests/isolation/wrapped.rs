//! Reporters behind pointers, cells and locks.

use std::any::type_name;
use std::cell::{LazyCell, OnceCell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, RwLock};

use memory_reporter::{
    CollectOptions, Collection, MemoryReporter, ReportSet, Reports, collect_report, collect_reports,
    measure::SkipReason, memory_report::WarningKind, register_local, register_reporter, register_strong,
    register_weak,
};

use super::{By, alone, amounts, warnings};

/// Reports its number.
struct Numbered(&'static str, i64);

impl MemoryReporter for Numbered {
    fn name(&self) -> &str {
        self.0
    }

    fn collect_reports(&self, out: &mut Reports) {
        collect_report!(out, format!("numbered/{}", self.0), Other, Count, self.1, "Its number.");
    }
}

fn one() -> Numbered {
    Numbered("one", 1)
}

fn collect(reporter: &dyn MemoryReporter) -> ReportSet {
    Collection::new().with(reporter).collect()
}

/// Whether the reporter reports the number, without warnings.
fn reports(reporter: &dyn MemoryReporter) -> bool {
    let set = collect(reporter);
    assert!(set.warnings().is_empty(), "{:?}", set.warnings());
    amounts(&set).get("numbered/one") == Some(&1)
}

/// Asserts that the reporter is skipped, with its name and this reason.
fn skipped<T: MemoryReporter>(reporter: &T, reason: SkipReason, why: &str) {
    let set = collect(reporter);
    assert!(set.is_empty());
    let message = format!("not measured: {}: {why}", type_name::<T>());
    assert_eq!(warnings(&set, reporter.name()), [(WarningKind::Unavailable, &*message)]);
    assert_eq!(set.runs()[0].skipped[0].reason, reason);
}

#[test]
fn what_points_to_a_reporter_is_one_of_its_name() {
    let pinned: Pin<Box<dyn MemoryReporter>> = Box::pin(one());
    let mut own = one();
    let pointers: [Box<dyn MemoryReporter>; 7] = [
        Box::new(Box::new(one())),
        Box::new(Rc::new(one())),
        Box::new(Arc::new(Box::new(one()) as Box<dyn MemoryReporter + Send + Sync>)),
        Box::new(&const { Numbered("one", 1) }),
        Box::new(Some(Some(one()))),
        Box::new(pinned),
        Box::new(Option::<Rc<Numbered>>::Some(Rc::new(one()))),
    ];
    for pointer in &pointers {
        assert!(reports(pointer));
        assert_eq!(pointer.name(), "one");
    }
    assert!(reports(&&mut own));
    let none = None::<Numbered>;
    assert!(!reports(&none));
    assert_eq!(none.name(), type_name::<Numbered>());
}

#[test]
fn a_held_lock_is_skipped_and_a_poisoned_one_is_read() {
    let mutex = Mutex::new(one());
    assert!(reports(&mutex));
    let guard = mutex.lock();
    skipped(&mutex, SkipReason::Locked, "locked");
    drop(guard);
    let lock = RwLock::new(one());
    let reader = lock.read();
    assert!(reports(&lock));
    drop(reader);
    let writer = lock.write();
    skipped(&lock, SkipReason::Locked, "locked");
    drop(writer);
    let poisoned = Mutex::new(one());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _guard = poisoned.lock();
        panic!("on purpose");
    }));
    assert!(panicked.is_err() && poisoned.is_poisoned());
    assert!(reports(&poisoned));
    let cell = RefCell::new(one());
    assert!(reports(&cell));
    let writer = cell.borrow_mut();
    skipped(&cell, SkipReason::Borrowed, "mutably borrowed");
    drop(writer);
    assert!(reports(&cell));
}

#[test]
fn the_name_does_not_depend_on_whether_the_value_is_within_reach() {
    let mutex = Mutex::new(one());
    let cell = OnceLock::<Numbered>::new();
    let names = || [mutex.name(), cell.name()].map(str::to_owned);
    let before = names();
    let _guard = mutex.lock();
    cell.get_or_init(one);
    assert_eq!(names(), before);
    assert_eq!(before, [type_name::<Numbered>(); 2]);
}

#[test]
fn nothing_is_initialized() {
    let lock = OnceLock::new();
    assert!(!reports(&lock));
    lock.get_or_init(|| Mutex::new(one()));
    assert!(reports(&lock));
    let cell = OnceCell::new();
    assert!(!reports(&cell));
    cell.get_or_init(one);
    assert!(reports(&cell));
    let lazy: LazyLock<Numbered> = LazyLock::new(one);
    let lazy_cell: LazyCell<Numbered> = LazyCell::new(one);
    // With a std before 1.94, a collection has no access to the values and warns.
    let shows = collect(&lazy).warnings().is_empty();
    assert!(collect(&lazy).is_empty() && collect(&lazy_cell).is_empty());
    LazyLock::force(&lazy);
    LazyCell::force(&lazy_cell);
    assert_eq!(collect(&lazy).len(), usize::from(shows));
    assert_eq!(collect(&lazy_cell).len(), usize::from(shows));
}

#[test]
fn a_lazy_value_that_panicked_while_it_began_reports_nothing() {
    let lazy: LazyLock<Numbered> = LazyLock::new(|| panic!("on purpose"));
    assert!(catch_unwind(AssertUnwindSafe(|| LazyLock::force(&lazy).0)).is_err());
    let set = collect(&lazy);
    assert!(set.is_empty());
    // std panics when the reporter accesses such a value. The panic costs only the reports of this reporter.
    assert!(set.warnings().iter().all(|warning| warning.subject == type_name::<Numbered>()));
}

#[test]
fn a_reporter_that_panics_poisons_no_lock() {
    let bad = Mutex::new(By(|| "bad", |_: &mut Reports| panic!("on purpose")));
    let set = collect(&bad);
    let (kind, message) = warnings(&set, bad.name())[0];
    assert_eq!(kind, WarningKind::Panicked);
    assert_eq!(message, "panicked, its reports are left out: on purpose");
    assert!(!bad.is_poisoned() && bad.try_lock().is_ok());
}

static CACHE: LazyLock<Mutex<Option<Numbered>>> = LazyLock::new(|| Mutex::new(Some(Numbered("static", 4))));
static HELD: OnceLock<Mutex<Numbered>> = OnceLock::new();
register_reporter!(CACHE);
register_reporter!(HELD);

#[test]
fn they_register_like_any_other() {
    let _alone = alone();
    HELD.get_or_init(|| Mutex::new(Numbered("held", 5)));
    let weak = Arc::new(Mutex::new(Numbered("weak", 2)));
    let local = Rc::new(RefCell::new(Numbered("local", 3)));
    let strong = register_strong(Arc::new(RwLock::new(one())));
    let (weak_registration, local_registration) = (register_weak(&weak), register_local(local.clone()));
    local.borrow_mut().1 = 30;
    let amounts = amounts(&collect_reports(&CollectOptions::new()));
    for (name, number) in [("one", 1), ("weak", 2), ("local", 30), ("held", 5)] {
        assert_eq!(amounts[&format!("numbered/{name}")], number);
    }
    assert!(!amounts.contains_key("numbered/static"), "the value is not initialized");
    drop((strong, weak_registration, local_registration));
}

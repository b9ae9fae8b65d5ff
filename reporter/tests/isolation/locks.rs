//! Values that panic while the walk holds a lock of the program.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, RwLock};

use memory_reporter::{
    Collection, MallocSizeOf, Reports, computed_size_of, malloc_size_of, measure::size_summary,
    memory_report::WarningKind, size_tree,
};

use super::{Bomb, By, warnings};

fn panics<T>(walk: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(walk)).is_err()
}

#[test]
fn no_reading_poisons_a_lock() {
    let mutex = Mutex::new(Some(Bomb));
    assert!(panics(|| malloc_size_of(&mutex)) && !mutex.is_poisoned());
    assert!(panics(|| computed_size_of(&mutex)) && !mutex.is_poisoned());
    assert!(panics(|| size_summary(&mutex)) && !mutex.is_poisoned());
    assert!(panics(|| size_tree(&mutex)) && !mutex.is_poisoned());
    assert!(mutex.try_lock().is_ok(), "the lock is free again");
    let nested = RwLock::new(vec![Mutex::new(Bomb)]);
    assert!(panics(|| malloc_size_of(&nested)));
    assert!(!nested.is_poisoned() && nested.try_write().is_ok());
    assert!(!nested.read().unwrap()[0].is_poisoned());
}

#[test]
fn a_lock_that_was_poisoned_stays_so() {
    let mutex = Mutex::new(vec![1_u8; 100]);
    assert!(panics(|| {
        let _guard = mutex.lock();
        panic!("on purpose");
    }));
    assert!(malloc_size_of(&mutex) >= 100);
    assert!(mutex.is_poisoned());
}

#[test]
fn the_part_that_panicked_is_named() {
    let mutex = Mutex::new(Some(Bomb));
    let bad = By(|| "bad", |out: &mut Reports| out.heap("explicit/bad", &mutex, "Memory of it."));
    let catches = By(
        || "catches",
        |out: &mut Reports| {
            assert!(panics(|| out.heap("explicit/lost", &mutex, "Memory of it.")));
            assert!(panics(|| out.heap("lost", &mutex, "Memory of it.")));
            out.heap("explicit/kept", &vec![1_u8; 9], "Memory of it.");
        },
    );
    let set = Collection::new().with(&bad).with(&catches).collect();
    let part = format!("{}: panicked while it was measured", std::any::type_name::<Mutex<Option<Bomb>>>());
    let message = format!("panicked, its reports are left out: the bomb; {part}");
    assert_eq!(warnings(&set, "bad"), [(WarningKind::Panicked, &*message)]);
    let message = format!("not measured: {part} (2 times)");
    assert_eq!(warnings(&set, "catches"), [(WarningKind::Unavailable, &*message)]);
    assert_eq!(set.iter().map(|report| report.path).collect::<Vec<_>>(), ["explicit/kept"]);
    assert!(!mutex.is_poisoned());
}

#[test]
fn a_deep_lock_gives_its_bytes_as_before() {
    #[derive(MallocSizeOf)]
    struct Node {
        next: Option<Box<Mutex<Node>>>,
    }
    let mut node = Node { next: None };
    for _ in 0..20_000 {
        node = Node { next: Some(Box::new(Mutex::new(node))) };
    }
    assert_eq!(computed_size_of(&node), 20_000 * size_of::<Mutex<Node>>());
    // Drops the list without recursion: in a destructor, no guard protects the stack.
    while let Some(next) = node.next.take() {
        node = next.into_inner().unwrap();
    }
}

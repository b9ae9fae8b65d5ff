//! Hooks for memory pressure that panic at unusual places, or minimize memory usage again.

use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use memory_reporter::{
    CollectOptions, Collection,
    pressure::{PressureHook, minimize_memory_usage, minimize_near_limit, on_memory_pressure},
};

use super::{DropBomb, alone};

/// The number of runs of a hook while memory usage is minimized twice, once by a collection.
fn others_run() -> usize {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let _hook = on_memory_pressure(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    minimize_memory_usage();
    Collection::new().options(CollectOptions::new().minimize(true)).collect();
    runs.load(Ordering::SeqCst)
}

#[test]
fn a_hook_may_panic_while_it_is_dropped() {
    let _alone = alone();
    let slot: Arc<Mutex<Option<PressureHook>>> = Arc::default();
    let (own, bomb) = (Arc::clone(&slot), DropBomb);
    let hook = on_memory_pressure(move || {
        let _ = &bomb;
        drop(own.lock().unwrap().take());
    });
    *slot.lock().unwrap() = Some(hook);
    assert_eq!(others_run(), 6);
}

#[test]
fn what_a_panic_carries_may_panic_too() {
    let _alone = alone();
    let _hook = on_memory_pressure(|| panic_any(DropBomb));
    assert_eq!(others_run(), 6);
}

#[test]
fn a_hook_may_minimize_memory_usage() {
    let _alone = alone();
    let _hook = on_memory_pressure(|| {
        minimize_memory_usage();
        Collection::new().options(CollectOptions::new().minimize(true)).collect();
    });
    assert_eq!(others_run(), 6);
}

#[cfg(target_os = "linux")]
#[test]
fn hooks_run_near_the_limit() {
    let _alone = alone();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let _hook = on_memory_pressure(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    for percent in [0, 100, 255] {
        let error = minimize_near_limit(percent, |_| {}).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{percent}");
    }
    let (send, receive) = std::sync::mpsc::channel();
    // Each machine uses more than 1 % of its memory.
    let registration = minimize_near_limit(1, move |relief| {
        send.send(*relief).unwrap();
        panic_any(DropBomb);
    })
    .unwrap();
    let relief = receive.recv().unwrap();
    // The panic does not end the thread, and the end of the registration does: it drops the sender.
    let is_running = receive.recv_timeout(std::time::Duration::from_millis(600));
    assert_eq!(is_running, Err(std::sync::mpsc::RecvTimeoutError::Timeout));
    drop(registration);
    assert!(receive.recv().is_err());
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    assert!(relief.limit > 0 && relief.before > 0 && relief.after > 0, "{relief:?}");
    let text = relief.to_string();
    assert!(
        text.starts_with("memory pressure: ") && text.contains(" MiB after the hooks, which took "),
        "{text}"
    );
}

//! Garbage collectors of other crates call the callbacks of [`on_garbage_collection`].

use std::sync::{Arc, Mutex};

use gc_arena::{Arena, Collect, Gc, Rootable, lock::RefLock};
use memory_reporter::watching::{CycleProgress, WatchedCollector, on_garbage_collection};

#[derive(Collect)]
#[collect(no_drop)]
struct Node<'gc> {
    next: Option<Gc<'gc, Node<'gc>>>,
    payload: [u64; 4],
}

type Heap = Arena<Rootable![Gc<'_, RefLock<Option<Gc<'_, Node<'_>>>>>]>;

#[test]
fn an_arena_collects_slice_by_slice_or_at_once() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&seen);
    let _hook = on_garbage_collection(move |cycle| into.lock().unwrap().push(cycle.clone()));
    let mut heap: WatchedCollector<Heap> =
        WatchedCollector::new(Arena::new(|mc| Gc::new(mc, RefLock::new(None))));
    heap.collect("API");
    seen.lock().unwrap().clear();
    assert_eq!(heap.slice("ALLOC_TRIGGER"), CycleProgress::Idle, "nothing was allocated");

    // Each step allocates ten nodes, and then runs a slice of the collector. Every tenth step drops all older nodes, so
    // the root keeps at most a hundred nodes.
    let mut slices = Vec::new();
    for step in 0..2_000 {
        heap.mutate(|mc, root| {
            let last = if step % 10 == 0 { None } else { *root.borrow() };
            let next = (0..10).fold(last, |next, at| Some(Gc::new(mc, Node { next, payload: [at; 4] })));
            *root.borrow_mut(mc) = next;
        });
        slices.push(heap.slice("ALLOC_TRIGGER"));
    }
    let left = heap.metrics().total_gc_count();
    assert!((50..15_000).contains(&left), "{left} nodes of 20,000");
    let finished = slices.iter().filter(|progress| **progress == CycleProgress::Finished).count();
    let cycles = std::mem::take(&mut *seen.lock().unwrap());
    assert!(finished > 1 && cycles.len() == finished, "{finished}, {cycles:?}");
    let ran = slices.iter().filter(|progress| **progress != CycleProgress::Idle).count();
    let listed: usize = cycles.iter().map(|cycle| cycle.collections.len()).sum();
    // The slices of an unfinished cycle are reported at its end.
    assert!(listed <= ran && listed > finished, "{listed} of {ran}");
    assert!(cycles.iter().all(|cycle| cycle.nonincremental_reason.is_none()));

    heap.collect("API");
    let last = seen.lock().unwrap().pop().unwrap();
    assert_eq!((&*last.collector, last.nonincremental_reason.as_deref()), ("gc-arena", Some("requested")));
    heap.mutate(|_, root| {
        let nodes = std::iter::successors(*root.borrow(), |node| node.next);
        assert!(nodes.map(|node| node.payload[0]).eq((0..100).map(|at| 9 - at % 10)));
    });
}

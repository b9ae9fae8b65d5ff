//! Libraries that were on a stack: a dump names those that were unloaded since, too.
//!
//! Noted when a node of the tree is made, which is when the library is there for certain. Nodes are numbered
//! in order, so that of two libraries that were loaded to the same place a node tells which it means.

use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::system::lock::Lock;
use crate::system::memory::Arena;
use crate::tables::trace_id::TraceId;
use dmd_unwind::{Loaded, is_loaded, loaded};

/// A library as it was loaded once.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Path and build id are copies.
    pub(crate) module: Loaded,
    /// The first node of it.
    pub(crate) since: TraceId,
    /// The one that was noted before.
    older: *mut Seen,
}

impl Seen {
    pub(crate) fn holds(&self, pc: usize) -> bool {
        (self.module.start..self.module.end).contains(&pc)
    }
}

/// More are not kept.
const MOST: usize = 4096;
/// Of modules that cannot be unloaded.
const PERMANENT: usize = 8;

struct Place {
    start: AtomicUsize,
    end: AtomicUsize,
}

static PERMANENT_PLACES: [Place; PERMANENT] =
    [const { Place { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; PERMANENT];
static NEWEST: AtomicPtr<Seen> = AtomicPtr::new(null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);
static LOCK: Lock = Lock::new();
static ARENA: Arena = Arena::new();

/// All locks, in the order in which they may be taken together.
pub(crate) fn for_each_lock(each: &mut dyn FnMut(&Lock)) {
    each(&LOCK);
    each(ARENA.lock());
}

/// All that were noted, the newest first.
pub(crate) fn iter() -> impl Iterator<Item = &'static Seen> {
    let mut next = NEWEST.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        // SAFETY: null, or a record that is never unmapped nor changed.
        let seen = unsafe { next.as_ref() }?;
        next = seen.older;
        Some(seen)
    })
}

/// Notes the library of a return address on this thread's stack, for which a node was made.
pub(crate) fn note(return_address: usize, node: TraceId) {
    let pc = return_address.wrapping_sub(1);
    let is_permanent = PERMANENT_PLACES
        .iter()
        .any(|place| place.end.load(Ordering::Acquire) > pc && place.start.load(Ordering::Relaxed) <= pc);
    if !is_permanent && !is_noted(pc) {
        add(pc, node);
    }
}

fn is_noted(pc: usize) -> bool {
    iter().find(|seen| seen.holds(pc)).is_some_and(|seen| is_loaded(pc, &seen.module))
}

#[cold]
fn add(pc: usize, node: TraceId) {
    let Some(module) = loaded(pc) else { return };
    let _held = LOCK.hold();
    if module.is_permanent {
        let place = PERMANENT_PLACES.iter().find(|place| place.end.load(Ordering::Relaxed) == 0);
        if let Some(place) = place {
            place.start.store(module.start, Ordering::Relaxed);
            place.end.store(module.end, Ordering::Release);
        }
        return;
    }
    // Another thread may have come first.
    if is_noted(pc) || COUNT.load(Ordering::Relaxed) >= MOST {
        return;
    }
    let place = ARENA.take(size_of::<Seen>()).cast::<Seen>();
    let (Some(path), Some(build_id)) = (keep(module.path.to_bytes_with_nul()), keep(module.build_id)) else {
        return;
    };
    let Ok(path) = CStr::from_bytes_with_nul(path) else { return };
    if place.is_null() {
        return;
    }
    let module = Loaded { path, build_id, ..module };
    let seen = Seen { module, since: node, older: NEWEST.load(Ordering::Relaxed) };
    // SAFETY: fresh memory of that size, aligned to 16.
    unsafe { place.write(seen) };
    NEWEST.store(place, Ordering::Release);
    COUNT.fetch_add(1, Ordering::Relaxed);
}

/// A copy that outlives the library.
fn keep(bytes: &[u8]) -> Option<&'static [u8]> {
    if bytes.is_empty() {
        return Some(&[]);
    }
    let place = ARENA.take(bytes.len());
    if place.is_null() {
        return None;
    }
    // SAFETY: zeroed bytes that nobody else has.
    let copy = unsafe { core::slice::from_raw_parts_mut(place, bytes.len()) };
    copy.copy_from_slice(bytes);
    Some(copy)
}

//! Libraries that were on a stack. A dump also names the libraries that were unloaded since then.
//!
//! The tree records a library when it makes a node, since the library is certainly loaded at that moment. Nodes are
//! numbered in order. So if two libraries were loaded at the same address, the number of a node decides to which of
//! them it belongs.

use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::system::lock::Lock;
use crate::system::memory::Arena;
use crate::tables::trace_id::TraceId;
pub(crate) use dmd_unwind::{LoadedLibrary, ModuleSample, sample_at};
use dmd_unwind::{is_loaded, loaded};

/// A library that was on a stack, in its state at that time.
#[derive(Debug)]
pub(crate) struct SeenModule {
    /// The library; its path and build id are copies.
    pub(crate) module: LoadedLibrary,
    /// The first node of the tree whose address is in the library.
    pub(crate) since: TraceId,
    /// The library that was recorded before this one.
    older: *mut SeenModule,
}

impl SeenModule {
    pub(crate) fn holds(&self, pc: usize) -> bool {
        (self.module.start..self.module.end).contains(&pc)
    }
}

/// The maximum number of libraries that are kept.
const MOST: usize = 4096;
/// The maximum number of libraries that cannot be unloaded.
const PERMANENT: usize = 8;

struct ModulePlace {
    start: AtomicUsize,
    end: AtomicUsize,
}

static PERMANENT_PLACES: [ModulePlace; PERMANENT] =
    [const { ModulePlace { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; PERMANENT];
static NEWEST: AtomicPtr<SeenModule> = AtomicPtr::new(null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);
static LOCK: Lock = Lock::new();
static ARENA: Arena = Arena::new();

/// Calls `each` for all locks, in the order in which a thread may take several of them.
pub(crate) fn for_each_lock(each: &mut dyn FnMut(&Lock)) {
    each(&LOCK);
    each(ARENA.lock());
}

/// All libraries recorded so far, the newest first.
pub(crate) fn iter() -> impl Iterator<Item = &'static SeenModule> {
    let mut next = NEWEST.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        // SAFETY: the pointer is null or points to a record of `add`. Records do not change.
        let seen = unsafe { next.as_ref() }?;
        next = seen.older;
        Some(seen)
    })
}

/// The number of libraries recorded so far, including libraries that cannot be unloaded.
pub(crate) fn noted() -> u64 {
    let permanent = PERMANENT_PLACES.iter().filter(|place| place.end.load(Ordering::Relaxed) != 0).count();
    (COUNT.load(Ordering::Relaxed) + permanent) as u64
}

/// Records the library of a return address on this thread's stack. The tree has just made a node for the address.
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
    // Another thread may have recorded the library first.
    if is_noted(pc) || COUNT.load(Ordering::Relaxed) >= MOST {
        return;
    }
    let place = ARENA.take(size_of::<SeenModule>()).cast::<SeenModule>();
    let (Some(path), Some(build_id)) = (keep(module.path.to_bytes_with_nul()), keep(module.build_id)) else {
        return;
    };
    let Ok(path) = CStr::from_bytes_with_nul(path) else { return };
    if place.is_null() {
        return;
    }
    let module = LoadedLibrary { path, build_id, ..module };
    let seen = SeenModule { module, since: node, older: NEWEST.load(Ordering::Relaxed) };
    // SAFETY: the arena returned new memory of this size, aligned to 16.
    unsafe { place.write(seen) };
    NEWEST.store(place, Ordering::Release);
    COUNT.fetch_add(1, Ordering::Relaxed);
}

/// Copies bytes, so that the copy outlives the library.
fn keep(bytes: &[u8]) -> Option<&'static [u8]> {
    if bytes.is_empty() {
        return Some(&[]);
    }
    let place = ARENA.take(bytes.len());
    if place.is_null() {
        return None;
    }
    // SAFETY: the arena returns zeroed bytes that no other code uses.
    let copy = unsafe { core::slice::from_raw_parts_mut(place, bytes.len()) };
    copy.copy_from_slice(bytes);
    Some(copy)
}

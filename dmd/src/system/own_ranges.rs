//! The addresses of the engine's own memory, so that a dump can distinguish it from the memory of the program. The
//! kernel joins neighboring mappings of the engine and of the program into one.
//!
//! The list takes no lock, since the engine maps memory inside of hooks. It is bounded: a range that does not fit is
//! left out, and a dump then shows its memory as memory without a known owner.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of ranges. The engine maps most of its memory in parts of 256 KiB or more.
const MOST: usize = 1 << 14;

struct OwnRange {
    start: AtomicUsize,
    bytes: AtomicUsize,
}

static RANGES: [OwnRange; MOST] =
    [const { OwnRange { start: AtomicUsize::new(0), bytes: AtomicUsize::new(0) } }; MOST];

/// All ranges at this index and above are empty.
static END: AtomicUsize = AtomicUsize::new(0);

/// Adds a range of pages that the engine has mapped.
pub(super) fn add(start: usize, bytes: usize) {
    // Search from the start: short-lived ranges leave free places there.
    let is_free = |range: &OwnRange| {
        range.start.load(Ordering::Relaxed) == 0
            && range.start.compare_exchange(0, start, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    if let Some(index) = RANGES.iter().position(is_free) {
        RANGES[index].bytes.store(bytes, Ordering::Release);
        END.fetch_max(index + 1, Ordering::Relaxed);
    }
}

/// Removes a range of [`add`], before the engine unmaps it.
pub(super) fn remove(start: usize) {
    let end = END.load(Ordering::Relaxed);
    let range = RANGES[..end].iter().find(|range| range.start.load(Ordering::Relaxed) == start);
    if let Some(range) = range {
        range.bytes.store(0, Ordering::Relaxed);
        range.start.store(0, Ordering::Release);
    }
}

/// All ranges, in no order.
#[cfg(target_os = "linux")]
pub(crate) fn iter() -> impl Iterator<Item = Range<usize>> {
    RANGES[..END.load(Ordering::Relaxed)].iter().filter_map(|range| {
        let bytes = range.bytes.load(Ordering::Acquire);
        let start = range.start.load(Ordering::Relaxed);
        (bytes > 0 && start > 0).then(|| start..start + bytes)
    })
}

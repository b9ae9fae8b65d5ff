//! Address ranges that arenas of the program own, for `in_nursery`.

use core::ops::Range;
use std::collections::VecDeque;

use crate::engine_abi;
use crate::process_lock::ProcessLock;

/// A range that an arena owns, or has owned.
#[derive(Clone, Debug)]
struct NurseryRange {
    number: u64,
    addresses: Range<usize>,
}

struct NurseryTable {
    made: u64,
    owned: Vec<NurseryRange>,
    /// The last ranges that arenas gave up, and when they did, on the engine's clock.
    given_up: VecDeque<(NurseryRange, u64)>,
}

/// An old range matters only while a log has allocations from its time.
const MOST_GIVEN_UP: usize = 1024;

static NURSERIES: ProcessLock<NurseryTable> =
    ProcessLock::new(NurseryTable { made: 0, owned: Vec::new(), given_up: VecDeque::new() });

/// Keeps the range of an arena; the arena drops it when it frees the memory.
#[derive(Debug)]
#[must_use = "dropping it ends the registration; `forever` keeps it"]
pub struct NurseryRegistration(u64);

/// Says that an arena of the program owns these addresses: a chunk of a bump allocator, the young generation of a
/// garbage collector. Entries of an allocations log have `in_nursery` if their block lies in such a range, or contains
/// one that was registered after its allocation, as the chunk itself does.
///
/// A block is in no nursery if the registration ended before its allocation, provided that fewer than 1024 others have
/// ended since. A block that the program freed before an arena took its place counts as the arena's.
///
/// ```
/// let chunk = vec![0_u8; 1 << 16];
/// let registration = memory_reporter::watching::register_nursery(chunk.as_ptr_range());
/// // ... the arena hands out parts of the chunk ...
/// drop(registration);
/// drop(chunk);
/// ```
pub fn register_nursery(range: Range<*const u8>) -> NurseryRegistration {
    let mut nurseries = NURSERIES.lock();
    nurseries.made += 1;
    let number = nurseries.made;
    nurseries.owned.push(NurseryRange { number, addresses: range.start.addr()..range.end.addr() });
    NurseryRegistration(number)
}

impl NurseryRegistration {
    /// Keeps the range until the program ends: for memory that the arena never frees.
    #[allow(clippy::mem_forget, reason = "the caller requests that it never ends")]
    pub fn forever(self) {
        core::mem::forget(self);
    }
}

impl Drop for NurseryRegistration {
    fn drop(&mut self) {
        let mut nurseries = NURSERIES.lock();
        let Some(at) = nurseries.owned.iter().position(|nursery| nursery.number == self.0) else { return };
        let nursery = nurseries.owned.swap_remove(at);
        if nurseries.given_up.len() == MOST_GIVEN_UP {
            nurseries.given_up.pop_front();
        }
        nurseries.given_up.push_back((nursery, engine_abi::ticks()));
    }
}

/// The ranges as they are at one time, to ask for many blocks.
pub(super) struct NurseryLookup {
    ranges: Vec<(Range<usize>, u64)>,
}

impl NurseryLookup {
    pub(super) fn new() -> Self {
        let nurseries = NURSERIES.lock();
        let owned = nurseries.owned.iter().map(|nursery| (nursery.addresses.clone(), u64::MAX));
        let given_up = nurseries.given_up.iter().map(|(nursery, end)| (nursery.addresses.clone(), *end));
        Self { ranges: owned.chain(given_up).collect() }
    }

    /// Whether an arena owns the block that was allocated at this time.
    pub(super) fn owns(&self, block: Range<usize>, tick: u64) -> bool {
        self.ranges.iter().any(|(range, end)| {
            let overlap = range.start.max(block.start) < range.end.min(block.end);
            overlap && tick <= *end
        })
    }
}

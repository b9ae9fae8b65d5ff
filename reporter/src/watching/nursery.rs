//! Address ranges that belong to arenas of the program, for `in_nursery`.

use core::ops::Range;
use std::collections::VecDeque;

use crate::engine_abi;
use crate::process_lock::ProcessLock;

/// A range that belongs, or belonged, to an arena.
#[derive(Clone, Debug)]
struct NurseryRange {
    number: u64,
    addresses: Range<usize>,
}

struct NurseryTable {
    made: u64,
    owned: Vec<NurseryRange>,
    /// The last ranges that arenas released, and the times of the release, on the engine's clock.
    given_up: VecDeque<(NurseryRange, u64)>,
}

/// The largest number of released ranges. An old range matters only while a log has allocations from its time.
const MOST_GIVEN_UP: usize = 1024;

static NURSERIES: ProcessLock<NurseryTable> =
    ProcessLock::new(NurseryTable { made: 0, owned: Vec::new(), given_up: VecDeque::new() });

/// Keeps the range of an arena registered. The arena drops the registration when it frees the memory.
#[derive(Debug)]
#[must_use = "dropping this value unregisters the range; to keep the range registered, call `forever`"]
pub struct NurseryRegistration(u64);

/// Registers a range of addresses that belongs to an arena of the program: a chunk of a bump allocator, or the young
/// generation of a garbage collector. An entry of an allocations log has `in_nursery` if its block is inside such a
/// range. It also has `in_nursery` if its block contains a range that was registered after the allocation: this is the
/// block of the chunk itself.
///
/// A range counts for blocks that were allocated before its registration ended. After 1024 more registrations have
/// ended, the range no longer counts. If the program freed a block before an arena used the block's memory, the block
/// counts as the arena's.
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
    /// Keeps the range registered until the program ends: for memory that the arena never frees.
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

/// A copy of the ranges at one moment, for looking up many blocks.
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

    /// Whether the block that was allocated at this time belongs to an arena.
    pub(super) fn owns(&self, block: Range<usize>, tick: u64) -> bool {
        self.ranges.iter().any(|(range, end)| {
            let overlap = range.start.max(block.start) < range.end.min(block.end);
            overlap && tick <= *end
        })
    }
}

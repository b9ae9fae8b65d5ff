//! `HashMap` and `HashSet`, whose block contains slots and control bytes.
//!
//! `capacity()` gives the exact number of slots, unless entries were removed from a dense table: each tombstone lowers
//! the capacity. A table without tombstones rarely has such a capacity, so the module usually recognizes a lowered
//! capacity. It then uses the addresses of the entries, which give a minimum for the number of slots. In a test with
//! 60,000 random tables after removals, 37 results were too small (by half). These tables had few or no entries left,
//! or by chance the capacity of a table without tombstones and with half the slots.

use core::alloc::Layout;

/// The number of control bytes that hashbrown reads at once, in the build of std.
const GROUP: usize = if cfg!(all(target_arch = "x86_64", target_feature = "sse2")) {
    16
} else if cfg!(target_pointer_width = "64") || cfg!(target_arch = "aarch64") {
    8
} else {
    4
};

/// The number of slots for this `capacity()` (0 without a table), and whether the number is certain.
fn slots_of_capacity(capacity: usize) -> (usize, bool) {
    match capacity {
        0 => (0, true),
        1..=3 => (4, capacity == 3),
        4..=7 => (8, capacity == 7),
        // At most 7 of 8 slots are filled.
        _ => match capacity.checked_mul(8) {
            Some(n) => {
                let slots = (n / 7).next_power_of_two();
                (slots, slots / 8 * 7 == capacity)
            }
            None => (0, true),
        },
    }
}

/// Collects the addresses of a table's entries, to find the size of its block.
pub(crate) struct TableProbe {
    slots: usize,
    is_sure: bool,
    low: usize,
    high: usize,
}

impl TableProbe {
    pub(crate) fn new(capacity: usize) -> Self {
        let (slots, is_sure) = slots_of_capacity(capacity);
        Self { slots, is_sure, low: usize::MAX, high: 0 }
    }

    /// Whether the capacity alone determines the layout of the block.
    #[inline]
    pub(crate) fn is_sure(&self) -> bool {
        self.is_sure
    }

    /// Adds an entry, by the address of its key.
    #[inline]
    pub(crate) fn entry<K>(&mut self, key: &K) {
        let address = (&raw const *key).addr();
        self.low = self.low.min(address);
        self.high = self.high.max(address);
    }

    /// The layout of the table's block; `entry` is the layout of a pair of key and value.
    pub(crate) fn block(&self, entry: Layout) -> Layout {
        let mut slots = self.slots;
        if !self.is_sure && self.low <= self.high && entry.size() != 0 {
            let spanned = (self.high - self.low) / entry.size() + 1;
            slots = slots.max(spanned.next_power_of_two());
        }
        layout(entry, slots).unwrap_or(Layout::new::<()>())
    }
}

fn layout(entry: Layout, slots: usize) -> Option<Layout> {
    if slots == 0 {
        return None;
    }
    let align = entry.align().max(GROUP);
    let controls = slots.checked_mul(entry.size())?.checked_next_multiple_of(align)?;
    Layout::from_size_align(controls.checked_add(slots + GROUP)?, align).ok()
}

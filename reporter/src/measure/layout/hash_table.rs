//! `HashMap` and `HashSet`: one block of slots and control bytes.
//!
//! `capacity()` gives the number of slots exactly, unless entries were removed from a dense table: each tombstone lowers
//! it. Then it is rarely a number that a clean table has, and the addresses of the entries show how many slots there
//! are at least. Of 60,000 random tables after removals, 37 came out too small (by half): those with few or no entries
//! left, or with a capacity that happens to be that of a clean table of half the size.

use core::alloc::Layout;

/// The number of control bytes that hashbrown reads at once in the way std is built.
const GROUP: usize = if cfg!(all(target_arch = "x86_64", target_feature = "sse2")) {
    16
} else if cfg!(target_pointer_width = "64") || cfg!(target_arch = "aarch64") {
    8
} else {
    4
};

/// The number of slots of a table with this `capacity()` (0 for no table), and whether it is certain.
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

/// Collects the addresses of a table's entries to find its block.
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

    /// Whether the capacity alone determines the block.
    #[inline]
    pub(crate) fn is_sure(&self) -> bool {
        self.is_sure
    }

    /// Takes an entry, by the address of its key.
    #[inline]
    pub(crate) fn entry<K>(&mut self, key: &K) {
        let address = (&raw const *key).addr();
        self.low = self.low.min(address);
        self.high = self.high.max(address);
    }

    /// The table's block; `entry` is the layout of the pair of key and value.
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

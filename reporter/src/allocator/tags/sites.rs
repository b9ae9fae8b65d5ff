//! The stacks that allocated blocks under a tag, counted while an engine of DMD records.

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::kept_pages::ZeroValid;

/// The number of places for stacks.
const PLACES: usize = 1 << 12;
/// The number of places that a search reads.
const REACH: usize = 64;

/// Blocks by the number of their stack.
pub(crate) struct SiteTable {
    places: [SitePlace; PLACES],
    /// The blocks whose stack is not known.
    unknown: SitePlace,
    /// The blocks whose stack has no place in this table.
    dropped: SitePlace,
}

struct SitePlace {
    /// The number of the stack; 0 for a free place.
    site: AtomicU64,
    blocks: AtomicU64,
    bytes: AtomicU64,
}

/// The blocks of one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SiteCount {
    /// The number of the stack; 0 for blocks without a known stack.
    pub(crate) site: u64,
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
}

#[allow(unsafe_code, reason = "promises that zeroed memory is valid")]
// SAFETY: all fields are atomic integers and arrays of them.
unsafe impl ZeroValid for SiteTable {}

/// The function that returns the number of the stack that allocated a block.
pub(crate) type SiteOf = fn(*const u8) -> u64;

/// Null, or a [`SiteOf`].
static SITE_OF: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// The layer that knows the engine registers the function here.
pub(crate) fn register(site_of: SiteOf) {
    SITE_OF.store(site_of as *mut (), Ordering::Release);
}

#[allow(unsafe_code, reason = "a function in an atomic pointer")]
fn site_of(block: *const u8) -> u64 {
    let function = SITE_OF.load(Ordering::Acquire);
    if function.is_null() {
        return 0;
    }
    // SAFETY: `register` is the only writer, and stores a function of this type.
    let function = unsafe { core::mem::transmute::<*mut (), SiteOf>(function) };
    function(block)
}

impl SiteTable {
    /// Counts a block that has just been allocated.
    #[cold]
    pub(super) fn add(&self, block: *const u8, bytes: usize) {
        let place = match site_of(block) {
            0 => &self.unknown,
            site => self.place(site).unwrap_or(&self.dropped),
        };
        place.blocks.fetch_add(1, Ordering::Relaxed);
        place.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn place(&self, site: u64) -> Option<&SitePlace> {
        let first = (site.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
        (first..first + REACH).map(|place| &self.places[place % PLACES]).find(|place| {
            match place.site.compare_exchange(0, site, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => true,
                Err(other) => other == site,
            }
        })
    }

    /// The counts of all stacks. The count with the number 0 has the blocks without a known stack.
    pub(crate) fn counts(&self) -> Vec<SiteCount> {
        let count = |place: &SitePlace| SiteCount {
            site: place.site.load(Ordering::Relaxed),
            blocks: place.blocks.load(Ordering::Relaxed),
            bytes: place.bytes.load(Ordering::Relaxed),
        };
        let all = self.places.iter().chain([&self.unknown, &self.dropped]).map(count);
        all.filter(|count| count.blocks > 0).collect()
    }
}

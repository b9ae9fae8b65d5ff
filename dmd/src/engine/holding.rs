//! Freed blocks that wait for the next one: the hook of `libdmd.so` frees each short block one `free` late.
//!
//! Neither a freed block's line in the table nor its head, which the allocator reads, is likely to be in a cache. So the
//! hook prefetches both, and the thread *holds* the block: it forgets the block that it held before, and hands that one
//! to the allocator. By then its memory has arrived, and nobody has waited for it.
//!
//! A thread holds at most one block, of less than [`SHORT`] bytes. Only the thread itself writes its place, without an
//! instruction that locks: such a one would wait for all earlier writes of the program. So other threads cannot take a
//! held block: readers of the table leave those out that [`Engine::held`] has. The peak counts them as live. A thread
//! that ends leaves its block to the hook of any thread, where it is *due*.

use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::Engine;
use crate::system::memory;
use crate::tables::block_table::{Block, Found, SHORT};
use crate::tables::statistics::End;
use crate::tables::thread::{self, Lease};
use memory_report::dmd::tables::{HELD, RECORDS_ALL};

/// Whether a hook of this process holds blocks.
static HOLDS: AtomicBool = AtomicBool::new(false);

/// The first block that is due; 0 if there is none. Each begins with the address of the next.
static DUE: AtomicUsize = AtomicUsize::new(0);

/// A freed block that the allocator is to get; no block if the address is 0.
#[derive(Clone, Copy)]
struct Freed {
    address: usize,
    is_forgotten: bool,
}

/// The blocks that threads held at one moment, in order of addresses.
pub(crate) struct Held([usize; HELD]);

impl Held {
    #[inline]
    pub(crate) fn has(&self, address: usize) -> bool {
        self.0[HELD - 1] != 0 && self.0.binary_search(&address).is_ok()
    }
}

impl Engine {
    /// Forgets a block, and passes it to `free`, or holds it and does so with the block that this thread has held. Also
    /// passes on the blocks that are due.
    #[inline(always)]
    pub(crate) fn forget_and_free(&self, address: usize, free: impl Fn(usize)) {
        match self.hold(address) {
            Some(Freed { address: 0, .. }) => {}
            Some(Freed { address, is_forgotten: true }) => free(address),
            other => {
                for freed in self.without_wait(address, other) {
                    if freed.address != 0 {
                        free(freed.address);
                    }
                }
            }
        }
        if DUE.load(Ordering::Relaxed) != 0 {
            free_due(free);
        }
    }

    /// Holds a block. Returns the one that the thread has held. `None` if the block cannot wait.
    #[inline(always)]
    fn hold(&self, address: usize) -> Option<Freed> {
        let may_wait =
            self.phase.load(Ordering::Relaxed) == RECORDS_ALL && !self.watches_frees.load(Ordering::Relaxed);
        if !may_wait {
            return None;
        }
        let _inside = Self::enter_with_room()?;
        let lease = thread::lease()?;
        // Observers want to know when a block ends.
        if lease.pending.is_observed() || !self.table().prefetch_short(address) {
            return None;
        }
        memory::prefetch(with_exposed_provenance::<u8>(address.wrapping_sub(8)));
        let held = lease.hold_block(address)?;
        lease.pending.end_last(address);
        Some(self.end_held(lease, held))
    }

    /// Forgets a block that this thread has held, if that is simple.
    #[inline(always)]
    fn end_held(&self, lease: &Lease, address: usize) -> Freed {
        if address == 0 {
            return Freed { address, is_forgotten: true };
        }
        let word = self.table().remove_word(address);
        if let Some(word) = word
            && lease.pending.end_held(word)
        {
            lease.settle(self.peak().allowance());
        }
        Freed { address, is_forgotten: word.is_some() }
    }

    /// Forgets a block that cannot wait, and the one that the thread has held, or only that one if `held` is not simple to
    /// forget. Returns both.
    #[inline(never)]
    fn without_wait(&self, address: usize, held: Option<Freed>) -> [Freed; 2] {
        let mut all = match held {
            Some(held) => [held, Freed { address: 0, is_forgotten: true }],
            None => [self.take_held(), Freed { address, is_forgotten: false }],
        };
        for freed in &mut all {
            if !freed.is_forgotten {
                self.forget(freed.address);
                freed.is_forgotten = true;
            }
        }
        all
    }

    fn take_held(&self) -> Freed {
        let none = Freed { address: 0, is_forgotten: true };
        let Some(_inside) = Self::enter_with_room() else { return none };
        let Some(lease) = thread::lease() else { return none };
        match lease.hold_block(0).unwrap_or(0) {
            address if address != 0 && self.watches_frees.load(Ordering::Relaxed) => {
                Freed { address, is_forgotten: false }
            }
            address => self.end_held(lease, address),
        }
    }

    /// Forgets a block whose thread holds it no more. It is due then.
    pub(super) fn release(&self, address: usize) {
        let usable = self.table().get(address).map_or(0, |block| block.usable());
        match self.table().remove_word(address) {
            Some(word) => self.end_alone(word.block(), End::Freed),
            None => self.forget(address),
        }
        // Without room for the address of the next block, the allocator never gets this one.
        if usable >= size_of::<usize>() {
            make_due(address);
        }
    }

    /// The blocks that threads hold now: the program has freed them.
    pub(crate) fn held(&self) -> Held {
        let mut held = [0; HELD];
        held.iter_mut().zip(thread::held()).for_each(|(place, address)| *place = address);
        held.sort_unstable();
        Held(held)
    }

    /// Whether a thread holds this block.
    pub(crate) fn is_held(&self, address: usize) -> bool {
        HOLDS.load(Ordering::Relaxed) && thread::held().any(|held| held == address)
    }

    /// [`find`](crate::tables::block_table::Table::find) without held blocks.
    pub(crate) fn find(&self, address: usize) -> Found {
        match self.table().find(address) {
            Found::Start(_) if self.is_held(address) => Found::Freed,
            Found::Inside(start, _) if self.is_held(start) => Found::Nothing,
            found => found,
        }
    }

    /// The number of blocks that threads hold.
    pub(super) fn number_held(&self) -> u64 {
        thread::held().filter(|address| self.table().is_live(*address)).count() as u64
    }

    /// Calls `each` for every live block.
    pub(crate) fn for_each_live(&self, mut each: impl FnMut(usize, Block)) {
        let held = self.held();
        self.table().for_each(|address, block| {
            if !held.has(address) {
                each(address, block);
            }
        });
    }

    /// Says that a hook of this process holds blocks.
    pub(crate) fn note_that_hooks_hold(&self) {
        HOLDS.store(true, Ordering::Relaxed);
    }

    /// The bytes, at most, of the blocks that as many threads hold.
    pub(crate) fn most_held(&self, threads: usize) -> u64 {
        if HOLDS.load(Ordering::Relaxed) { (threads.min(HELD) * SHORT) as u64 } else { 0 }
    }
}

fn make_due(address: usize) {
    let mut first = DUE.load(Ordering::Relaxed);
    loop {
        let place = with_exposed_provenance_mut::<usize>(address);
        // SAFETY: the program has freed the block, and the allocator does not have it yet, so that nobody uses its
        // memory; the only caller has looked that there is room.
        unsafe { place.write_unaligned(first) };
        match DUE.compare_exchange_weak(first, address, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => first = other,
        }
    }
}

#[cold]
#[inline(never)]
fn free_due(free: impl Fn(usize)) {
    let mut next = DUE.swap(0, Ordering::Acquire);
    while next != 0 {
        let due = next;
        // SAFETY: `make_due` has written the place, and the exchange above made all due blocks this thread's.
        next = unsafe { with_exposed_provenance::<usize>(due).read_unaligned() };
        free(due);
    }
}

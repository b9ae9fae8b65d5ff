//! Copies of the process for the reader that the options name.
//!
//! The options also decide when a copy is made: at a peak, at the end of the process, or for a request. At a peak, a
//! hook makes the copy when the end of its block makes the heap fall. The allocator has not freed the block yet, so the
//! copy still has the block's contents. No code of the program runs in a copy.

use core::sync::atomic::{AtomicU64, Ordering};

use super::Engine;
use crate::options::{CopyTime, Options};
use crate::system::copy::{self, CopyFacts};
use crate::system::errno::keeping_errno;
use crate::system::slot::Inside;
use crate::system::threads::ThreadTable;
use crate::system::{clock, error_numbers, own_stack, signals};
use crate::tables::block_table::TableBlock;
use crate::tables::thread;

/// Copies are cheap as long as the process has spent less than 1 / `CHEAP_PART` of its time in making copies. This time
/// does not include the later work of the system, which copies each page that the program changes.
const CHEAP_PART: u64 = 100;

/// Nanoseconds for which the process was stopped for copies.
static STOOD_STILL: AtomicU64 = AtomicU64::new(0);

impl Engine {
    pub(super) fn start_copies(&self, options: Options) {
        if options.copy_to.is_some() && options.copy_at == CopyTime::Peak {
            self.peak().fall.watch();
        }
    }

    /// Makes a copy when the end of this block makes the heap fall from a peak. The allocator has not freed the block
    /// yet, so the copy also contains the block.
    #[cold]
    #[inline(never)]
    pub(super) fn copy_at_fall(&self, address: usize, block: TableBlock) {
        if !self.peak().fall.take(self.are_copies_cheap()) {
            return;
        }
        keeping_errno(|| {
            let _inside = Inside::deeper();
            let is_back = self.table().insert(address, block);
            // The copy contains the block. The sum of the peak's table no longer contains it.
            let bytes = if is_back { self.amount(block).bytes.try_into().unwrap_or(0) } else { 0 };
            // The stack of a thread may be small, and a pending cancellation would unwind this frame.
            let _ = signals::held(|| own_stack::run(|| self.keep_copy(bytes)));
            if is_back {
                self.table().remove(address);
            }
        });
    }

    /// Makes the copy at the end of the process, if the options ask for it.
    pub(crate) fn copy_at_end(&self) {
        let options = self.setup().options;
        let is_wanted = match options.copy_at {
            _ if options.copy_to.is_none() => false,
            CopyTime::Peak => self.peak().fall.wants_end(self.peak().sum()),
            CopyTime::End => true,
            CopyTime::Request => false,
        };
        if is_wanted {
            let _inside = Inside::deeper();
            let _ = self.keep_copy(0);
        }
    }

    /// Makes a copy for the reader that the options name. The copy has `beyond_sum` bytes more than the sum of the
    /// peak's table. The error is the system's number.
    pub(crate) fn keep_copy(&self, beyond_sum: u64) -> Result<(), i32> {
        let path = self.setup().options.copy_to.ok_or(error_numbers::INVALID)?;
        let started = clock::nanoseconds();
        let sum = self.peak().sum() + beyond_sum;
        let (_, seconds) = self.peak().seconds();
        let facts = CopyFacts {
            process: std::process::id().into(),
            bytes: sum,
            milliseconds: (seconds * 1e3) as u64,
        };
        let made = copy::keep(path.as_bytes(), facts, add_stacks);
        let stood = clock::nanoseconds().saturating_sub(started);
        STOOD_STILL.fetch_add(stood, Ordering::Relaxed);
        self.peak().fall.copied(sum);
        made
    }

    fn are_copies_cheap(&self) -> bool {
        let (_, seconds) = self.peak().seconds();
        (STOOD_STILL.load(Ordering::Relaxed) as f64) * (CHEAP_PART as f64) < seconds * 1e9
    }
}

/// In a copy of the process: adds the last stack that the engine recorded for each thread of the process.
pub(crate) fn add_stacks(threads: &mut ThreadTable) {
    thread::for_each_stack(&mut |thread, stack| threads.add(thread, stack.frames()));
}

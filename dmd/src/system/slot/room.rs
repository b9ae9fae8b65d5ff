//! Whether a stack has room for the engine. An overflow inside the engine would leave a lock held.
//!
//! A hook checks this before the thread is inside the engine, so no event is lost even if the check itself overflows.
//! The result is kept as a hint. Stacks are made and freed, so the hint may be wrong. Then the damage is the same as
//! without the check.

use core::cell::Cell;

use dmd_unwind::is_readable;

const PAGE: usize = 4096;
/// The free room that a stack must have: walks used up to 3 KiB.
const ROOM: usize = 4 << 10;
/// A readable range may grow over a gap of this size if the whole gap is readable.
const NEAR: usize = 64 * PAGE;

/// The readable ranges of this thread's last two stacks: the current and the previous stack. All zero at first.
#[repr(C)]
pub(super) struct StackRoom {
    last: ReadableStretch,
    other: ReadableStretch,
}

#[repr(C)]
struct ReadableStretch {
    floor: Cell<usize>,
    end: Cell<usize>,
}

impl ReadableStretch {
    #[inline(always)]
    fn has_room(&self, sp: usize) -> bool {
        self.floor.get() + ROOM <= sp && sp < self.end.get()
    }

    fn is_near(&self, low: usize, end: usize) -> bool {
        self.floor.get() <= end + NEAR && low <= self.end.get() + NEAR
    }

    fn replace(&self, (floor, end): (usize, usize)) -> (usize, usize) {
        (self.floor.replace(floor), self.end.replace(end))
    }
}

impl StackRoom {
    /// Whether this thread's stack has room below a stack pointer.
    #[inline(always)]
    pub(super) fn is_below(&self, sp: usize) -> bool {
        self.last.has_room(sp) || self.look(sp)
    }

    #[cold]
    #[inline(never)]
    fn look(&self, sp: usize) -> bool {
        let low = page_of(sp.saturating_sub(ROOM));
        let end = page_of(sp) + PAGE;
        if !self.last.is_near(low, end) {
            // The thread runs on another stack now.
            let last = self.last.replace((self.other.floor.get(), self.other.end.get()));
            self.other.replace(last);
            if self.last.has_room(sp) {
                return true;
            }
        }
        if !are_readable(low, page_of(sp)) {
            return false;
        }
        let (floor, known_end) = (self.last.floor.get(), self.last.end.get());
        let is_longer =
            self.last.is_near(low, end) && are_readable(end, floor) && are_readable(known_end, low);
        let longer = if is_longer { (low.min(floor), end.max(known_end)) } else { (low, end) };
        self.last.replace(longer);
        true
    }
}

fn are_readable(low: usize, end: usize) -> bool {
    (low..end).step_by(PAGE).all(is_readable)
}

fn page_of(address: usize) -> usize {
    address & !(PAGE - 1)
}

//! Deep values: a walk that comes near the end of its stack continues on a fresh one.
//!
//! The check is one comparison for each pointer that the walk follows: of the stack pointer with a window that is known
//! to be safe. Outside the window it asks the system again, so that ops that are used at another depth, or on a stack
//! that other code has grown, stay right.
//!
//! Below a check a walk needs room for its frames up to the next one. The derive bounds its own ([`apart`]). Those of
//! hand-written impls and of functions (`with = path`) are unknown until they occur, but a deep value shows them again
//! and again: windows are short, so a step that is not small leaves its window, and twice the largest step so far stays
//! free.

use crate::platform;

/// The least room that stays free, for frames that have not occurred yet and for code that never checks.
const RED_ZONE: usize = 256 * 1024;
/// The size of a fresh stack, unless four red zones are more. Untouched pages cost nothing.
const FRESH_STACK: usize = 4 * 1024 * 1024;
/// How far a window reaches from where it was learned, down and up.
const WINDOW: usize = 64 * 1024;

#[derive(Clone, Copy, Debug)]
pub(crate) struct StackGuard {
    low: usize,
    span: usize,
    red_zone: usize,
}

impl StackGuard {
    pub(crate) const fn new() -> Self {
        Self { low: 0, span: 0, red_zone: RED_ZONE }
    }

    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        stack_pointer().wrapping_sub(self.low) < self.span
    }

    /// Learns the window around the current depth; `false` if too little stack is left.
    pub(crate) fn learn(&mut self) -> bool {
        let here = stack_pointer();
        self.learn_step(here);
        match platform::remaining_stack(here) {
            Some(left) if left > self.red_zone => {
                let below = (left - self.red_zone).min(WINDOW);
                (self.low, self.span) = (here - below, below + WINDOW);
                true
            }
            Some(_) => false,
            // The platform does not know the stack's end, so every window counts as safe.
            None => {
                (self.low, self.span) = (0, usize::MAX);
                true
            }
        }
    }

    /// Notes the step from the check before this one, which was in the window if there is one.
    fn learn_step(&mut self, here: usize) {
        // A step larger than any stack: the ops have moved to another stack.
        const FAR: usize = 64 * 1024 * 1024;
        if here < self.low && self.low - here < FAR {
            let step = self.low + self.span - here;
            self.red_zone = self.red_zone.max(2 * step);
        }
    }

    /// Forgets the window, since the walk continues on another stack.
    pub(crate) fn forget_window(&mut self) {
        *self = Self { red_zone: self.red_zone, ..Self::new() };
    }

    /// Takes over what the guard of a part of this walk has learned.
    pub(crate) fn learn_from(&mut self, part: Self) {
        if part.red_zone > self.red_zone {
            *self = Self { red_zone: part.red_zone, ..Self::new() };
        }
    }

    /// Runs `f` on a stack of its own.
    pub(crate) fn on_fresh_stack<T>(self, f: impl FnOnce() -> T) -> T {
        platform::on_fresh_stack(FRESH_STACK.max(4 * self.red_zone), f)
    }
}

/// Calls `f` with a frame of its own: the derive measures a type of many fields or variants by several functions. A
/// debug build gives every local of a function its own place in the frame. If one function measured all of a large
/// type, each pointer that a walk follows would take that much stack.
#[cfg_attr(debug_assertions, inline(never))]
#[cfg_attr(not(debug_assertions), inline(always))]
pub fn apart<T>(f: impl FnOnce() -> T) -> T {
    f()
}

#[inline(always)]
fn stack_pointer() -> usize {
    let here = 0u8;
    (&raw const here).addr()
}

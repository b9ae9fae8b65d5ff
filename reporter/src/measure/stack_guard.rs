//! Supports deep values: near the end of its stack, a walk continues on a new stack.
//!
//! The check is one comparison for each pointer that the walk follows: it compares the stack pointer with a window
//! that is known to be safe. Outside the window the check gets the stack's bounds again. So the check stays right if
//! the same ops are used at another depth, or on a stack that other code has grown.
//!
//! After a check, a walk needs room for its frames up to the next check. The derive bounds its own frames
//! ([`apart`]). The frames of manual impls and of functions (`with = path`) are unknown until they occur, but in a
//! deep value they occur repeatedly. Windows are short, so a large step leaves its window and is noticed. From then
//! on, twice the largest step stays free.

use crate::platform;

/// The minimum number of free bytes on the stack, for frames that have not occurred yet and for code that never checks.
const RED_ZONE: usize = 256 * 1024;
/// The smallest size of a new stack. A new stack has at least four times the red zone. Untouched pages cost no memory.
const FRESH_STACK: usize = 4 * 1024 * 1024;
/// The distance from the current depth to both ends of a new window, in bytes.
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

    /// Sets the window around the current depth. Returns `false` if too little stack is left.
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
            // The platform does not provide the stack's end, so every depth counts as safe.
            None => {
                (self.low, self.span) = (0, usize::MAX);
                true
            }
        }
    }

    /// Records the step from the previous check to the current depth `here`. The previous check was inside the window,
    /// if there is a window.
    fn learn_step(&mut self, here: usize) {
        // A larger step is impossible on one stack: the ops have moved to another stack.
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

    /// Takes over the red zone of `part`, the guard of a part of this walk, if that red zone is larger.
    pub(crate) fn learn_from(&mut self, part: Self) {
        if part.red_zone > self.red_zone {
            *self = Self { red_zone: part.red_zone, ..Self::new() };
        }
    }

    /// Runs `f` on a new stack.
    pub(crate) fn on_fresh_stack<T>(self, f: impl FnOnce() -> T) -> T {
        platform::on_fresh_stack(FRESH_STACK.max(4 * self.red_zone), f)
    }
}

/// Calls `f` in a separate frame. The derive uses it to measure a type with many fields or variants in several
/// functions. A debug build gives every local of a function its own place in the frame. If one function measured all
/// of a large type, each pointer that a walk follows would need that much stack.
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

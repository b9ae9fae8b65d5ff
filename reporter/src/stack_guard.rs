//! Deep values: a walk that nears the end of its stack goes on on a fresh one.
//!
//! The check is one compare per pointer followed: the stack pointer against a window known to be
//! safe. Outside of it the window is asked of `stacker` again, so that an ops used at another
//! depth, or on a stack that somebody else grew, stays right.
//!
//! What a walk needs below a check is its frames up to the next one. Those of the derive are bounded
//! ([`apart`]). Those of hand-written impls and of functions (`with = path`) are not known before
//! they are seen, but a deep value shows them again and again: windows are short, so a step that
//! is not small leaves its window, and twice the largest seen so far is kept free.

/// What is kept free at least, for frames not seen yet and for what never checks.
const RED_ZONE: usize = 256 * 1024;
/// Each fresh stack, if four red zones are not more. Pages that stay untouched cost nothing.
const FRESH_STACK: usize = 4 * 1024 * 1024;
/// How far a window goes from where it was learned, down and up.
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

    /// Learns the window around the present depth; `false` if too little is left.
    pub(crate) fn learn(&mut self) -> bool {
        let here = stack_pointer();
        self.learn_step(here);
        match stacker::remaining_stack() {
            Some(left) if left > self.red_zone => {
                let below = (left - self.red_zone).min(WINDOW);
                (self.low, self.span) = (here - below, below + WINDOW);
                true
            }
            Some(_) => false,
            // The platform does not tell: no window is safe or unsafe.
            None => {
                (self.low, self.span) = (0, usize::MAX);
                true
            }
        }
    }

    /// The check before this one was in the window, if there is one.
    fn learn_step(&mut self, here: usize) {
        // More than any stack: the ops has gone to another one.
        const FAR: usize = 64 * 1024 * 1024;
        if here < self.low && self.low - here < FAR {
            let step = self.low + self.span - here;
            self.red_zone = self.red_zone.max(2 * step);
        }
    }

    /// Forgets the window, which is of another stack than what follows.
    pub(crate) fn forget_window(&mut self) {
        *self = Self { red_zone: self.red_zone, ..Self::new() };
    }

    /// Learns what the guard of a part of this walk has learned.
    pub(crate) fn learn_from(&mut self, part: Self) {
        if part.red_zone > self.red_zone {
            *self = Self { red_zone: part.red_zone, ..Self::new() };
        }
    }

    /// Runs `f` on a stack of its own.
    pub(crate) fn on_fresh_stack<T>(self, f: impl FnOnce() -> T) -> T {
        stacker::grow(FRESH_STACK.max(4 * self.red_zone), f)
    }
}

/// Calls `f` with a frame of its own: the derive measures a type of many fields or variants by several
/// functions. A debug build gives every local of a function its own place in the frame, and with all of a large
/// type in one, each pointer that a walk follows would take so much stack.
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

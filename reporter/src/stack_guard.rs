//! Deep values: a walk that nears the end of its stack goes on on a fresh one.
//!
//! The check is one compare per pointer followed: the stack pointer against a window known to be
//! safe. Outside of it the window is asked of `stacker` again, so that an ops used at another
//! depth, or on a stack that somebody else grew, stays right.

/// What a walk needs below the check: the frames up to the next check, foreign functions
/// (`with = path`) included.
const RED_ZONE: usize = 128 * 1024;
/// Each fresh stack. Pages that stay untouched cost nothing.
const FRESH_STACK: usize = 4 * 1024 * 1024;

#[derive(Clone, Copy, Debug)]
pub(crate) struct StackGuard {
    low: usize,
    span: usize,
}

impl StackGuard {
    pub(crate) const fn new() -> Self {
        Self { low: 0, span: 0 }
    }

    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        stack_pointer().wrapping_sub(self.low) < self.span
    }

    /// Learns the window around the present depth; `false` if too little is left.
    pub(crate) fn learn(&mut self) -> bool {
        let here = stack_pointer();
        match stacker::remaining_stack() {
            Some(left) if left > RED_ZONE => {
                self.low = here - (left - RED_ZONE);
                self.span = left - RED_ZONE + RED_ZONE / 2;
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
}

/// Runs `f` on a stack of its own.
pub(crate) fn on_fresh_stack<T>(f: impl FnOnce() -> T) -> T {
    stacker::grow(FRESH_STACK, f)
}

#[inline(always)]
fn stack_pointer() -> usize {
    let here = 0u8;
    (&raw const here).addr()
}

//! A walk that reuses the thread's last walk: it stops where the outer part of the stack is unchanged.
//!
//! A step by a usual rule depends on the frame that it leaves, the rule of its pc, and one or two words of the stack.
//! The rules of permanent modules do not change. Suppose that a walk reaches a frame of the last walk, and that all
//! words that the last walk read beyond this frame are unchanged. Then the outer part of the walk would give the same
//! frames. This conclusion assumes nothing about the code that ran in between: the code may have returned, thrown,
//! jumped or switched stacks. The conclusion is valid only if all outer steps were usual steps. Otherwise, and on
//! stacks that are not the thread's own, a walk goes to the outermost frame.
//!
//! Each frame has a tag, made from its caller's tag and its pc. Frames that still exist keep their tags, so the walk
//! can identify a stack without reading its outer frames.

use crate::arch::{Caller, Registers, strip};
use crate::stack::StackRange;
use crate::walker::{StackFrame, WalkEnd, WalkStart, walk_by_words};
use crate::words::StackWords;

/// The maximum number of frames of a stack. For a deeper stack, the walk takes the innermost frames.
pub const MOST: usize = 256;

/// The number of frames that a walk checks in one round of its loop.
const CHECKED: usize = 4;

#[derive(Clone, Copy)]
struct KeptWalk<T> {
    frame: StackFrame,
    /// The addresses of the words that the step to this frame read: the word of the pc, and a second word.
    words: StackWords,
    /// The value of the second word: the frame pointer or, if the step did not read it, the pc again.
    second: usize,
    tag: T,
}

impl<T> KeptWalk<T> {
    #[inline(always)]
    const fn new(frame: StackFrame, words: StackWords, tag: T) -> Self {
        let second = if words.fp == words.pc { frame.pc } else { frame.fp };
        Self { frame, words, second, tag }
    }
}

/// A frame of the current walk. The order of the fields differs from [`StackFrame`], so that the compiler does not
/// copy two fields with one load. The walk has just stored the fields one by one, so the processor would delay such a
/// load until both stores are in the cache.
#[derive(Clone, Copy)]
#[repr(C)]
struct FreshWalk {
    fp: usize,
    sp: usize,
    pc: usize,
    words: StackWords,
}

impl FreshWalk {
    #[inline(always)]
    const fn new(frame: StackFrame, words: StackWords) -> Self {
        let StackFrame { pc, sp, fp } = frame;
        Self { fp, sp, pc, words }
    }

    #[inline(always)]
    fn frame(self) -> StackFrame {
        StackFrame { pc: self.pc, sp: self.sp, fp: self.fp }
    }
}

/// The last stack of one thread, and room for the next stack. The value belongs to the thread; a new thread needs a
/// new value. All zeroes are a valid new value.
pub struct LastStack<T> {
    /// The frames of the last stack, outermost first.
    kept: [KeptWalk<T>; MOST],
    /// The number of kept frames that have a tag.
    tagged: usize,
    /// The number of outermost kept frames at which a walk may end.
    trusted: usize,
    /// The frames of the current walk, innermost first.
    fresh: [FreshWalk; MOST],
}

impl<T> core::fmt::Debug for LastStack<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LastStack").field("frames", &self.tagged).field("trusted", &self.trusted).finish()
    }
}

impl<T: Copy> LastStack<T> {
    /// A value without a last stack. The tag of every frame is `root` until the first walk.
    pub const fn new(root: T) -> Self {
        let nowhere = StackFrame { pc: 0, sp: 0, fp: 0 };
        let words = StackWords { pc: 0, fp: 0 };
        let kept = [KeptWalk::new(nowhere, words, root); MOST];
        Self { kept, tagged: 0, trusted: 0, fresh: [FreshWalk::new(nowhere, words); MOST] }
    }

    /// Forgets the last stack: the thread has another stack now.
    pub fn forget(&mut self) {
        self.tagged = 0;
        self.trusted = 0;
    }

    /// The number of outermost frames at which the next walk may end.
    pub fn trusted(&self) -> usize {
        self.trusted
    }

    /// The frames of the last stack, outermost first. Each frame comes with the address of the return address that led
    /// to the frame, or with 0 if the step to the frame was not a usual step. A frame still exists if the return
    /// addresses of all outer frames are unchanged.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = (StackFrame, usize)> {
        self.kept[..self.tagged.min(MOST)].iter().map(|kept| (kept.frame, kept.words.pc))
    }

    /// Walks from `start`. Returns the tag of the caller of `start`, or the tag of `from`, an outer caller of `start`.
    /// Returns `root` if there is no such frame. `child` makes a frame's tag from its caller's tag and its pc, and must
    /// return equal tags for equal arguments. There may be at most 64 frames between `start` and `from`.
    #[inline(never)]
    pub fn tag(
        &mut self,
        start: &Registers,
        stack: &mut StackRange,
        from: Option<Caller>,
        root: T,
        child: impl FnMut(T, usize) -> T,
    ) -> (T, WalkEnd) {
        // The frames at which the walk may end.
        let mut same = self.kept[..self.unchanged(start.sp, stack)].iter();
        let mut nearest = same.next_back();
        // The number of free places in `fresh` right before the walk stored the frame after the last unusual step.
        let mut unusual = None;
        let mut met = None;
        let mut places = self.fresh.iter_mut();
        let begin = from.map_or(WalkStart::Outside, Caller::begin);
        let (end, sure_end) = walk_by_words(start, stack, begin, |frame, words| {
            while let Some(kept) = nearest
                && kept.frame.sp < frame.sp
            {
                nearest = same.next_back();
            }
            if nearest.is_some_and(|kept| kept.frame == frame) && words != StackWords::INTERRUPTED {
                met = Some((frame, words));
                return false;
            }
            if words.pc == 0 {
                unusual = Some(rarely(places.len()));
            }
            let Some(place) = places.next() else { return false };
            *place = FreshWalk::new(frame, words);
            places.len() > 0
        });
        let left = places.len();
        let fresh = MOST - left;
        // A walk may end at a frame if all outer steps are usual steps.
        let usual = unusual.map_or(fresh, |places| places - left);
        let Some((frame, words)) = met else {
            self.trusted = if sure_end && self.starts_on(stack, fresh) { usual } else { 0 };
            return (self.keep(0, fresh, root, child), end);
        };
        let same = same.len() + 1;
        // The step to this frame may differ from the step in the last walk.
        let kept = &mut self.kept[same - 1];
        *kept = KeptWalk::new(frame, words, kept.tag);
        if same + fresh > MOST {
            return (self.cut(same, fresh, root, child), WalkEnd::Enough);
        }
        self.trusted = if words.pc == 0 { same } else { same + usual };
        (self.keep(same, fresh, root, child), WalkEnd::Complete)
    }

    /// The number of frames at which a walk from `sp` may end.
    #[inline(always)]
    fn unchanged(&self, sp: usize, stack: &StackRange) -> usize {
        let mut kept = &self.kept[..self.trusted];
        // Memory below `sp` may be unmapped.
        while let Some((innermost, others)) = kept.split_last()
            && innermost.frame.sp < sp
        {
            kept = others;
        }
        match kept.first() {
            Some(outermost) if stack.holds(sp, outermost.frame.sp) => {}
            _ => return 0,
        }
        let word = |address| {
            // SAFETY: usual steps lead from one multiple of 8 to another, and read only between the two. All these
            // frames are between `sp` and the outermost frame, and `holds` above checked that both are on this
            // thread's stack.
            unsafe { stack.word(address) }
        };
        // A signed pc in the place of a frame pointer always counts as changed; then the walk walks that frame again.
        let differs = |kept: &KeptWalk<T>| {
            strip(word(kept.words.pc)) != kept.frame.pc || word(kept.words.fp) != kept.second
        };
        // The words of the innermost frame are below the frame itself, so they are not compared.
        let (several, others) = kept[..kept.len() - 1].as_chunks::<CHECKED>();
        for (at, kept) in several.iter().enumerate() {
            if let Some(changed) = kept.iter().position(differs) {
                return at * CHECKED + changed + 1;
            }
        }
        let changed = others.iter().position(differs).unwrap_or(others.len());
        several.len() * CHECKED + changed + 1
    }

    /// Whether the outermost frame is on the thread's own stack. If it is, all frames that lead there by usual steps
    /// are on this stack, too.
    fn starts_on(&self, stack: &StackRange, fresh: usize) -> bool {
        fresh > 0 && stack.holds(self.fresh[fresh - 1].sp, self.fresh[fresh - 1].sp)
    }

    /// Puts the new frames after the first `same` frames of the last stack. Returns the tag of the innermost frame.
    #[inline(always)]
    fn keep(&mut self, same: usize, fresh: usize, root: T, mut child: impl FnMut(T, usize) -> T) -> T {
        let (before, places) = self.kept.split_at_mut(same);
        let mut tag = before.last().map_or(root, |kept| kept.tag);
        // A new frame may reuse the tag of the frame that was in its place.
        let mut alike = self.tagged - same;
        for (kept, fresh) in places.iter_mut().zip(self.fresh[..fresh].iter().rev()) {
            let (frame, words) = (fresh.frame(), fresh.words);
            if alike > 0 && kept.frame.pc == frame.pc {
                alike -= 1;
                tag = kept.tag;
            } else {
                alike = 0;
                tag = child(tag, frame.pc);
            }
            *kept = KeptWalk::new(frame, words, tag);
        }
        self.tagged = same + fresh;
        tag
    }

    /// The tag of the innermost frames of a stack that is too deep for the kept frames.
    #[cold]
    fn cut(&mut self, same: usize, fresh: usize, root: T, mut child: impl FnMut(T, usize) -> T) -> T {
        let kept = self.kept[..same].iter().skip(same + fresh - MOST).map(|kept| kept.frame.pc);
        let fresh = self.fresh[..fresh].iter().rev().map(|fresh| fresh.pc);
        let tag = kept.chain(fresh).fold(root, &mut child);
        self.tagged = same;
        self.trusted = same.min(self.trusted);
        tag
    }
}

/// Returns its argument. The compiler treats a branch with a call of this function as a rare branch.
#[cold]
#[inline(never)]
fn rarely<T>(value: T) -> T {
    value
}

//! A walk that remembers the thread's last one, and ends where the stack is still what it was.
//!
//! A step by a usual rule depends on the frame that it leaves, the rule of its pc, and one or two words of
//! the stack; the rules of modules that stay do not change. So if a walk comes to a frame that the last one
//! came to, and all words that were read further out hold what they held, then the rest of the walk would be
//! what it was. That is no guess: nothing is assumed of what ran in between, which may have returned, thrown,
//! jumped or switched stacks. It holds as far as the outer steps were all of that kind; beyond, and on stacks
//! that are not the thread's own, walks go all the way.
//!
//! Each frame has a tag, made of its caller's tag and its pc. Those of frames that are still there are kept,
//! so a stack is named without a look at its outer frames.

use crate::arch::{Registers, strip};
use crate::stack::StackRange;
use crate::walker::{End, Frame, walk_by_words};
use crate::words::Words;

/// The most frames of a stack. Of one that is deeper the innermost are taken.
pub const MOST: usize = 256;

#[derive(Clone, Copy)]
struct Kept<T> {
    frame: Frame,
    /// What was read in the step to this frame.
    words: Words,
    tag: T,
}

/// Where the step to a frame read, and what: the pc, and the frame pointer, or else the pc again. Only for usual
/// steps.
#[derive(Clone, Copy)]
struct Read {
    pc_at: usize,
    pc: usize,
    fp_at: usize,
    fp: usize,
}

impl Read {
    #[inline(always)]
    fn new(frame: Frame, words: Words) -> Self {
        let at = |words: u16| frame.sp.wrapping_sub(usize::from(words) * 8);
        let (fp_at, fp) = if words.fp == 0 { (at(words.pc), frame.pc) } else { (at(words.fp), frame.fp) };
        Self { pc_at: at(words.pc), pc: frame.pc, fp_at, fp }
    }
}

/// The last stack of one thread, and room for the next. Belongs to the thread; a new thread needs a new one.
/// All zero is a new one.
pub struct LastStack<T> {
    /// Outermost first.
    kept: [Kept<T>; MOST],
    /// Of each. Apart, since they are looked at one after another.
    reads: [Read; MOST],
    /// How many have a tag.
    tagged: usize,
    /// At how many of them a walk may end, from the outermost on.
    trusted: usize,
    /// What the walk has seen so far, innermost first.
    fresh: [(Frame, Words); MOST],
}

impl<T> core::fmt::Debug for LastStack<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LastStack").field("frames", &self.tagged).field("trusted", &self.trusted).finish()
    }
}

impl<T: Copy> LastStack<T> {
    /// Without a last stack. Tags are `root` until there is one.
    pub const fn new(root: T) -> Self {
        let nowhere = Frame { pc: 0, sp: 0, fp: 0 };
        let words = Words { pc: 0, fp: 0 };
        let kept = [Kept { frame: nowhere, words, tag: root }; MOST];
        let reads = [Read { pc_at: 0, pc: 0, fp_at: 0, fp: 0 }; MOST];
        Self { kept, reads, tagged: 0, trusted: 0, fresh: [(nowhere, words); MOST] }
    }

    /// Forgets the last stack: this thread's is another one.
    pub fn forget(&mut self) {
        self.tagged = 0;
        self.trusted = 0;
    }

    /// At how many frames, from the outermost on, the next walk may end.
    pub fn trusted(&self) -> usize {
        self.trusted
    }

    /// Walks from `start`, and gives the tag of the innermost frame that counts: the first one, or with
    /// `from` the first with this pc. `root` if there is none. `child` makes a frame's tag of its caller's and
    /// its pc, and always the same of the same.
    #[inline(never)]
    pub fn tag(
        &mut self,
        start: &Registers,
        stack: &mut StackRange,
        from: Option<usize>,
        root: T,
        child: impl FnMut(T, usize) -> T,
    ) -> (T, End) {
        let mut same = self.unchanged(start.sp, stack);
        let mut counts = from.is_none();
        let mut fresh = 0;
        let mut met = None;
        let kept = &self.kept;
        let places = &mut self.fresh;
        let (end, sure_end) = walk_by_words(start, stack, |frame, words| {
            if !counts {
                if from != Some(frame.pc) {
                    return true;
                }
                counts = true;
            }
            while same > 0 && kept[same - 1].frame.sp < frame.sp {
                same -= 1;
            }
            if same > 0 && kept[same - 1].frame == frame && words != Words::INTERRUPTED {
                met = Some(words);
                return false;
            }
            places[fresh] = (frame, words);
            fresh += 1;
            fresh < MOST
        });
        let end = if met.is_some() { End::Complete } else { end };
        match met {
            // The step to it may be another one than last time.
            Some(words) => {
                let kept = &mut self.kept[same - 1];
                kept.words = words;
                self.reads[same - 1] = Read::new(kept.frame, words);
            }
            None => same = 0,
        }
        if same + fresh > MOST {
            return (self.cut(same, fresh, root, child), End::Enough);
        }
        let trusted = met.is_some() || (sure_end && self.starts_on(stack, fresh));
        (self.keep(same, fresh, trusted, root, child), end)
    }

    /// At how many of the frames a walk from `sp` may end.
    #[inline(always)]
    fn unchanged(&self, sp: usize, stack: &StackRange) -> usize {
        let mut kept = &self.kept[..self.trusted];
        // What lies further in than `sp` may not even be mapped.
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
            // SAFETY: usual steps lead from a multiple of 8 to another, and read between the two; all these
            // are between `sp` and the outermost frame, on the stack that this thread runs on.
            unsafe { stack.word(address) }
        };
        // The innermost frame's words lie further in than it.
        let changed = self.reads[..kept.len() - 1].iter().position(|read| {
            // A signed pc that stands for a frame pointer never equals itself: then that frame is walked again.
            (strip(word(read.pc_at)) ^ read.pc) | (word(read.fp_at) ^ read.fp) != 0
        });
        changed.map_or(kept.len(), |at| at + 1)
    }

    /// Is the outermost frame on the thread's own stack? Then all are from which only usual steps lead there.
    fn starts_on(&self, stack: &StackRange, fresh: usize) -> bool {
        fresh > 0 && stack.holds(self.fresh[fresh - 1].0.sp, self.fresh[fresh - 1].0.sp)
    }

    /// Puts the fresh frames behind the first `same` of the last stack, and gives the tag of the innermost.
    #[inline(always)]
    fn keep(
        &mut self,
        same: usize,
        fresh: usize,
        trusted: bool,
        root: T,
        mut child: impl FnMut(T, usize) -> T,
    ) -> T {
        let mut tag = if same == 0 { root } else { self.kept[same - 1].tag };
        // Frames that are new may have the tags of those that were in their place.
        let mut alike = self.tagged;
        // A walk may end at a frame if all steps further out are usual ones.
        let mut trust = trusted && (same == 0 || self.kept[same - 1].words.pc != 0);
        let mut trusted = if trusted { same } else { 0 };
        for (at, (frame, words)) in (same..).zip(self.fresh[..fresh].iter().rev()) {
            let Some(place) = self.kept.get_mut(at) else { break };
            if at < alike && place.frame.pc == frame.pc {
                tag = place.tag;
            } else {
                alike = 0;
                tag = child(tag, frame.pc);
            }
            *place = Kept { frame: *frame, words: *words, tag };
            self.reads[at] = Read::new(*frame, *words);
            if trust {
                trusted = at + 1;
                trust = words.pc != 0;
            }
        }
        self.tagged = same + fresh;
        self.trusted = trusted;
        tag
    }

    /// The tag of the innermost frames of a stack that is too deep to be kept.
    #[cold]
    fn cut(&mut self, same: usize, fresh: usize, root: T, mut child: impl FnMut(T, usize) -> T) -> T {
        let kept = self.kept[..same].iter().skip(same + fresh - MOST).map(|kept| kept.frame.pc);
        let fresh = self.fresh[..fresh].iter().rev().map(|(frame, _)| frame.pc);
        let tag = kept.chain(fresh).fold(root, &mut child);
        self.tagged = same;
        self.trusted = same.min(self.trusted);
        tag
    }
}

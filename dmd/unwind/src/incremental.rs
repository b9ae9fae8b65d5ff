//! A walk that reuses the thread's last one: it stops where the rest of the stack is unchanged.
//!
//! A step by a usual rule depends on the frame that it leaves, the rule of its pc, and one or two words of the
//! stack; the rules of permanent modules do not change. Suppose that a walk comes to a frame of the last walk, and
//! that all words that the last walk read further out are unchanged. Then the rest of the walk would give the same
//! frames. This is not a guess: it assumes nothing about the code that ran in between, which may have returned,
//! thrown, jumped or switched stacks. It holds only as far as all outer steps were usual ones. Otherwise, and on
//! stacks that are not the thread's own, a walk goes all the way.
//!
//! Each frame has a tag, made from its caller's tag and its pc. Frames that are still there keep their tags, so the
//! walk can name a stack without a look at its outer frames.

use crate::arch::{Registers, strip};
use crate::stack::StackRange;
use crate::walker::{End, Frame, walk_by_words};
use crate::words::Words;

/// The maximum number of frames of a stack. Of a deeper stack the walk takes the innermost frames.
pub const MOST: usize = 256;

#[derive(Clone, Copy)]
struct Kept<T> {
    frame: Frame,
    /// The place of the words that the step to this frame read.
    words: Words,
    tag: T,
}

/// The addresses and the values that the step to a frame read: the pc, and the frame pointer or, if the step did not
/// read it, the pc again. Only for usual steps.
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

/// The last stack of one thread, and room for the next. The value belongs to the thread; a new thread needs a new
/// one. All zeroes are a valid new value.
pub struct LastStack<T> {
    /// Outermost first.
    kept: [Kept<T>; MOST],
    /// One for each kept frame. A separate array, since a walk checks them in sequence.
    reads: [Read; MOST],
    /// The number of kept frames that have a tag.
    tagged: usize,
    /// The number of kept frames, from the outermost on, at which a walk may end.
    trusted: usize,
    /// The frames that the current walk has seen, innermost first.
    fresh: [(Frame, Words); MOST],
}

impl<T> core::fmt::Debug for LastStack<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LastStack").field("frames", &self.tagged).field("trusted", &self.trusted).finish()
    }
}

impl<T: Copy> LastStack<T> {
    /// A value without a last stack. All tags are `root` until there is one.
    pub const fn new(root: T) -> Self {
        let nowhere = Frame { pc: 0, sp: 0, fp: 0 };
        let words = Words { pc: 0, fp: 0 };
        let kept = [Kept { frame: nowhere, words, tag: root }; MOST];
        let reads = [Read { pc_at: 0, pc: 0, fp_at: 0, fp: 0 }; MOST];
        Self { kept, reads, tagged: 0, trusted: 0, fresh: [(nowhere, words); MOST] }
    }

    /// Forgets the last stack: the thread now has another one.
    pub fn forget(&mut self) {
        self.tagged = 0;
        self.trusted = 0;
    }

    /// The number of frames, from the outermost on, at which the next walk may end.
    pub fn trusted(&self) -> usize {
        self.trusted
    }

    /// The frames of the last stack, outermost first. With each comes the address of the return address that led to it, or 0 if
    /// that was not a usual step. A frame is still there if all return addresses further out are.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = (Frame, usize)> {
        let kept = &self.kept[..self.tagged.min(MOST)];
        let return_at = |kept: &Kept<T>, read: &Read| if kept.words.pc == 0 { 0 } else { read.pc_at };
        kept.iter().zip(&self.reads).map(move |(kept, read)| (kept.frame, return_at(kept, read)))
    }

    /// Walks from `start`, and gives the tag of the innermost frame that counts: the first one or, with `from`, the
    /// first with this pc. Gives `root` if no frame counts. `child` makes a frame's tag from its caller's tag and
    /// its pc, and must give equal tags for equal arguments.
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
            // The step to the met frame may differ from the last walk's.
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

    /// The number of frames at which a walk from `sp` may end.
    #[inline(always)]
    fn unchanged(&self, sp: usize, stack: &StackRange) -> usize {
        let mut kept = &self.kept[..self.trusted];
        // Memory further in than `sp` may be unmapped.
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
            // frames lie between `sp` and the outermost frame, and `holds` above checked that both are on this
            // thread's stack.
            unsafe { stack.word(address) }
        };
        // The words of the innermost frame lie further in than the frame itself.
        let changed = self.reads[..kept.len() - 1].iter().position(|read| {
            // A signed pc in the place of a frame pointer never equals itself; the walk then walks that frame again.
            (strip(word(read.pc_at)) ^ read.pc) | (word(read.fp_at) ^ read.fp) != 0
        });
        changed.map_or(kept.len(), |at| at + 1)
    }

    /// Is the outermost frame on the thread's own stack? If so, all frames from which only usual steps lead there
    /// are too.
    fn starts_on(&self, stack: &StackRange, fresh: usize) -> bool {
        fresh > 0 && stack.holds(self.fresh[fresh - 1].0.sp, self.fresh[fresh - 1].0.sp)
    }

    /// Puts the fresh frames after the first `same` of the last stack, and gives the tag of the innermost frame.
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
        // A new frame may reuse the tag of the frame that was in its place.
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

//! Walks the stack frame by frame, from the current registers outwards.

use crate::arch::{FP, FROM_FP, Registers, SIGNAL_CONTEXT, SIGNAL_RETURN, SP, caller, strip, unpack};
use crate::cache::{CACHE, CacheView, CachedRule};
use crate::general::{GeneralFrame, WalkStop};
use crate::module::UnwindModule;
use crate::rule::{UnwindRule, UsualStep};
use crate::stack::{StackMemory, StackRange};
use crate::words::StackWords;

/// A frame of the stack. A usual step to its caller depends only on the frame and on the words that the step reads. If
/// two walks reach equal frames, they continue in the same way as long as the stack's words are unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct StackFrame {
    /// The address at which the frame continues: after its current call, or at the interrupted instruction.
    pub pc: usize,
    /// The stack pointer at that point.
    pub sp: usize,
    /// The value of the frame pointer register there, even if the code uses the register for another value.
    pub fp: usize,
}

/// The maximum number of frames between the start of a walk and the first frame that the walk passes to its visitor.
const BEFORE_CALLER: usize = 64;

/// The maximum number of steps to another stack in one walk. Stacks may be in any order in memory, so only a limit
/// prevents endless loops in a walk of damaged stacks.
const SWITCHES: u8 = 16;

/// The reason why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkEnd {
    /// The walk reached the outermost frame.
    Complete,
    /// The visitor stopped the walk.
    Enough,
    /// The walk reached code without unwind information, or an invalid frame.
    Lost,
}

/// The first frame that a walk passes to its visitor.
#[derive(Clone, Copy)]
pub(crate) enum WalkStart {
    /// The caller of the frame at which the walk starts.
    Outside,
    /// The first frame with this pc.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "for other processors"))]
    At(usize),
    /// The frame with these registers, whose pc is stored at the address `pc_at`. It is an outer frame of the frame at
    /// which the walk starts. The walk goes directly to it, without the steps between.
    #[cfg_attr(target_arch = "aarch64", expect(dead_code, reason = "for other processors"))]
    Frame { sp: usize, fp: usize, pc_at: usize },
}

/// Walks from `start`. Passes the caller's frame to `visit`, then that frame's caller, and so on, until `visit`
/// returns false.
#[inline(always)]
pub fn walk(start: &Registers, stack: &mut StackRange, mut visit: impl FnMut(StackFrame) -> bool) -> WalkEnd {
    walk_by_words(start, stack, WalkStart::Outside, |frame, _| visit(frame)).0
}

/// Like [`walk`], and also passes the words that each step read. The second result is true if every walk that reaches
/// the last frame would end at it: the last frame is an outermost frame in a permanent module.
#[inline(always)]
pub(crate) fn walk_by_words(
    start: &Registers,
    stack: &mut StackRange,
    begin: WalkStart,
    mut visit: impl FnMut(StackFrame, StackWords) -> bool,
) -> (WalkEnd, bool) {
    if !start.sp.is_multiple_of(8) {
        return (WalkEnd::Lost, false);
    }
    let mut memory = StackMemory::new(stack, start.sp);
    let mut rules = CACHE.view();
    let mut frame = StackFrame { pc: start.pc, sp: start.sp, fp: start.fp };
    let mut words = StackWords::MORE;
    let mut seen = WalkState::default();
    // The number of frames that the walk has passed. All frames between the start and a given first frame count as
    // one.
    let mut left = 0;
    // Whether the walk has started to pass frames on, and the pc of the first frame to pass on.
    let (mut begun, mut first) = (false, 0);
    match begin {
        WalkStart::Outside => {}
        WalkStart::At(pc) => first = pc,
        WalkStart::Frame { sp, fp, pc_at } => {
            let pc = if pc_at < start.sp { None } else { memory.read(pc_at) };
            let Some(pc) = pc.map(strip).filter(|pc| *pc != 0) else { return (WalkEnd::Lost, false) };
            frame = StackFrame { pc, sp, fp };
            words = StackWords { pc: pc_at, fp: pc_at };
            left = 1;
            begun = true;
        }
    }
    loop {
        if begun && !visit(frame, words) {
            return (WalkEnd::Enough, false);
        }
        if let Some(next) = usual_step(rules.get(frame.pc), frame, &memory) {
            (frame, words) = next;
        } else {
            seen.frames = left;
            let StackFrame { pc, sp, fp } = frame;
            match other_step(start, &mut rules, pc, sp, fp, &mut memory, &mut seen) {
                Ok(next) => (frame, words) = next,
                Err(end) => return (end, seen.sure_end),
            }
        }
        left += 1;
        begun = begun || first == 0 || first == frame.pc;
    }
}

/// The step from a frame without a packed rule, or from a frame for which the checks of its packed rule fail. This is
/// a separate function that takes the frame in parts, so that the frame stays in the processor's registers on usual
/// steps.
#[inline(never)]
fn other_step(
    start: &Registers,
    rules: &mut CacheView,
    pc: usize,
    sp: usize,
    fp: usize,
    memory: &mut StackMemory<'_>,
    seen: &mut WalkState,
) -> Result<(StackFrame, StackWords), WalkEnd> {
    let frame = StackFrame { pc, sp, fp };
    let packed = rules.get(pc);
    if let Some(next) = quick_step(*rules, packed, frame, memory, seen.module) {
        return Ok(next);
    }
    let next = match unusual_step(start, *rules, packed, frame, memory, seen) {
        WalkStep::To(next) => next,
        WalkStep::End(end) => return Err(end),
    };
    let interrupted = seen.known.as_ref().is_some_and(|known| known.exact);
    let words = if interrupted { StackWords::INTERRUPTED } else { StackWords::MORE };
    // The usual step requires a stack pointer inside the stack.
    if next.sp > memory.high() && memory.enter(next.sp).is_none() {
        return Err(WalkEnd::Lost);
    }
    // While the walk follows all registers, it uses no rules.
    let fresh = if seen.known.is_none() { CACHE.view() } else { CacheView::NOTHING };
    if !fresh.is_like(rules) {
        seen.module = 0;
    }
    *rules = fresh;
    Ok((next, words))
}

/// The state of a walk besides its current frame.
#[derive(Default)]
struct WalkState {
    /// The number of frames that the walk had passed at the last step without a packed rule.
    frames: usize,
    /// The record of the module that the walk last found to be still loaded.
    module: u16,
    /// All registers, while the walk follows them: for one step after a signal frame, and to the end after a frame
    /// that needs another register.
    known: Option<GeneralFrame>,
    /// Whether the walk follows all registers to its end.
    all: bool,
    /// Whether a rule of a permanent module has ended the walk.
    sure_end: bool,
    /// The number of steps to another stack.
    switches: u8,
}

enum WalkStep {
    To(StackFrame),
    End(WalkEnd),
}

/// The step by a packed rule, with its checks: the CFA is above the stack pointer and inside the stack, and all words
/// that the step reads are between the stack pointer and the CFA.
#[inline(always)]
fn usual_step(packed: u16, frame: StackFrame, memory: &StackMemory<'_>) -> Option<(StackFrame, StackWords)> {
    if packed.wrapping_sub(1) >= i16::MAX as u16 {
        return None;
    }
    let (cfa, lowest) = unpack(packed, frame.sp, frame.fp);
    if packed & FROM_FP == 0 {
        // `pack` has checked how far down the step reads. The sum cannot wrap, since no stack ends at so high an
        // address.
        if cfa > memory.high() {
            return None;
        }
    } else {
        // If the CFA is below the stack pointer, the size wraps to a large number. The check of the size also checks
        // the alignment of the CFA, since the stack pointer is a multiple of 8.
        let size = cfa.wrapping_sub(frame.sp);
        if size < lowest || size > memory.high().wrapping_sub(frame.sp) || size % 8 != 0 {
            return None;
        }
    }
    let (pc, fp, words) = caller(packed, cfa, frame.fp, |address| memory.word(address));
    let pc = strip(pc);
    (pc != 0).then_some((StackFrame { pc, sp: cfa, fp }, words))
}

/// The step by a wide rule, if the rule needs no further check.
#[inline(always)]
fn quick_step(
    rules: CacheView,
    packed: u16,
    frame: StackFrame,
    memory: &mut StackMemory<'_>,
    module: u16,
) -> Option<(StackFrame, StackWords)> {
    let (usual, sure) = match rules.resolve(packed) {
        CachedRule::Sure(UnwindRule::Usual(usual)) => (usual, true),
        CachedRule::If(record, UnwindRule::Usual(usual)) if record == module => (usual, false),
        _ => return None,
    };
    let next = wide_step(usual, frame, memory).filter(|next| next.pc != 0)?;
    Some((next, if sure { words_of(usual, next.sp) } else { StackWords::MORE }))
}

/// The words that a step by this wide rule has read. `sp` is the stack pointer after the step.
fn words_of(usual: UsualStep, sp: usize) -> StackWords {
    let below = |words: u32| sp - words as usize * 8;
    let pc = below(usual.return_address);
    StackWords { pc, fp: if usual.fp == 0 { pc } else { below(usual.fp) } }
}

#[cold]
#[inline(never)]
fn unusual_step(
    start: &Registers,
    rules: CacheView,
    packed: u16,
    frame: StackFrame,
    memory: &mut StackMemory<'_>,
    seen: &mut WalkState,
) -> WalkStep {
    if let Some(known) = seen.known.take() {
        return general_step(known, memory, seen);
    }
    if packed.wrapping_sub(1) < i16::MAX as u16 {
        // A packed rule failed its check: the end of the known range of the stack may be too low.
        let (cfa, _) = unpack(packed, frame.sp, frame.fp);
        if cfa > memory.high()
            && memory.reach(cfa)
            && let Some((next, _)) = usual_step(packed, frame, memory)
        {
            return WalkStep::To(next);
        }
    }
    let known = rules.resolve(packed);
    let rule = match known {
        CachedRule::Sure(rule) => rule,
        CachedRule::If(record, rule) if record == seen.module || rules.is_still_there(record, frame.pc) => {
            seen.module = record;
            rule
        }
        CachedRule::If(..) | CachedRule::Missing => match compile(frame.pc, seen) {
            Some(rule) => rule,
            None => return WalkStep::End(WalkEnd::Lost),
        },
    };
    match rule {
        UnwindRule::Usual(usual) => {
            match wide_step(usual, frame, memory).or_else(|| switch(usual, frame, memory, seen)) {
                Some(StackFrame { pc: 0, .. }) => WalkStep::End(WalkEnd::Complete),
                Some(frame) => WalkStep::To(frame),
                None => WalkStep::End(WalkEnd::Lost),
            }
        }
        UnwindRule::End => {
            seen.sure_end = matches!(known, CachedRule::Sure(_));
            WalkStep::End(WalkEnd::Complete)
        }
        UnwindRule::Uncovered => signal_return(frame, memory, seen),
        UnwindRule::Odd => {
            let known = if seen.frames == 0 { GeneralFrame::captured(start) } else { known_of(frame) };
            let sections = UnwindModule::find(known.lookup()).and_then(|module| module.sections());
            let Some(sections) = sections else { return WalkStep::End(WalkEnd::Lost) };
            let mut next = known;
            match next.step(&sections, memory) {
                Ok(()) if next.registers.get(FP).is_some() => remember(next, seen),
                Err(WalkStop::End) => WalkStep::End(WalkEnd::Complete),
                Ok(()) | Err(WalkStop::Lost) => again(start, frame, memory, seen),
            }
        }
    }
}

fn known_of(frame: StackFrame) -> GeneralFrame {
    GeneralFrame::partial(frame.pc, frame.sp, frame.fp)
}

/// Compiles the rule for a return address, and keeps it in the cache.
fn compile(pc: usize, seen: &mut WalkState) -> Option<UnwindRule> {
    // The last instruction of a function may be a call of a function that never returns. Then the return address is in
    // the next function.
    let lookup = pc.wrapping_sub(1);
    let module = UnwindModule::find(lookup)?;
    let mut rule =
        module.sections().map_or(UnwindRule::Uncovered, |sections| UnwindRule::compile(&sections, lookup));
    // If the signal frame has no entry, the search may have found the entry before it.
    if rule != UnwindRule::Odd && module.has_code_at(pc, &SIGNAL_RETURN) {
        rule = UnwindRule::Uncovered;
    }
    if let Some(record) = CACHE.keep(pc, &module, rule) {
        seen.module = record;
    }
    Some(rule)
}

#[inline(always)]
fn wide_step(usual: UsualStep, frame: StackFrame, memory: &mut StackMemory<'_>) -> Option<StackFrame> {
    let base = if usual.from_fp { frame.fp } else { frame.sp };
    let cfa = base.checked_add(usual.cfa as usize * 8)?;
    let below = |words: u32| cfa.checked_sub(words as usize * 8).filter(|&address| address >= frame.sp);
    if cfa <= frame.sp || (cfa > memory.high() && !memory.reach(cfa)) {
        return None;
    }
    let pc = strip(memory.read(below(usual.return_address)?)?);
    let fp = if usual.fp == 0 { frame.fp } else { memory.read(below(usual.fp)?)? };
    Some(StackFrame { pc, sp: cfa, fp })
}

/// The step to a caller on another stack. Functions that run a closure on a separate stack need this step: they keep
/// the caller's stack pointer in the frame pointer. The other stack may be above or below this one.
#[cold]
fn switch(
    usual: UsualStep,
    frame: StackFrame,
    memory: &mut StackMemory<'_>,
    seen: &mut WalkState,
) -> Option<StackFrame> {
    let cfa = frame.fp.checked_add(usual.cfa as usize * 8)?;
    if !usual.from_fp || seen.switches == SWITCHES || memory.holds(cfa) {
        return None;
    }
    seen.switches += 1;
    let saved = |words: u32| cfa.checked_sub(words as usize * 8);
    let pc = saved(usual.return_address)?;
    let fp = if usual.fp == 0 { None } else { Some(saved(usual.fp)?) };
    memory.switch(fp.map_or(pc, |fp| fp.min(pc)))?;
    let next = StackFrame {
        pc: strip(memory.read(pc)?),
        sp: cfa,
        fp: match fp {
            Some(fp) => memory.read(fp)?,
            None => frame.fp,
        },
    };
    // With wrong unwind information, the frame pointer may have any value. A caller is always inside a module.
    UnwindModule::find(next.pc.wrapping_sub(1))?;
    Some(next)
}

/// Takes one step with the known registers, and decides whether to keep following them.
fn general_step(mut known: GeneralFrame, memory: &mut StackMemory<'_>, seen: &mut WalkState) -> WalkStep {
    let sections = UnwindModule::find(known.lookup()).and_then(|module| module.sections());
    let result = match sections {
        Some(sections) => known.step(&sections, memory),
        None => Err(WalkStop::Lost),
    };
    match result {
        Ok(()) => remember(known, seen),
        Err(WalkStop::End) => WalkStep::End(WalkEnd::Complete),
        Err(WalkStop::Lost) => match step_out_of_signal(known, memory) {
            Some(known) => remember(known, seen),
            None => WalkStep::End(WalkEnd::Lost),
        },
    }
}

fn remember(known: GeneralFrame, seen: &mut WalkState) -> WalkStep {
    let Some(frame) = frame_of(&known) else { return WalkStep::End(WalkEnd::Lost) };
    if known.exact || seen.all {
        seen.known = Some(known);
    }
    WalkStep::To(frame)
}

fn frame_of(known: &GeneralFrame) -> Option<StackFrame> {
    Some(StackFrame { pc: known.pc, sp: known.registers.get(SP)?, fp: known.registers.get(FP).unwrap_or(0) })
}

/// Walks again from the start to a frame, and follows all registers: the frame needs registers that steps by rules do
/// not follow.
fn again(
    start: &Registers,
    frame: StackFrame,
    memory: &mut StackMemory<'_>,
    seen: &mut WalkState,
) -> WalkStep {
    let mut known = GeneralFrame::captured(start);
    if memory.enter(start.sp).is_none() {
        return WalkStep::End(WalkEnd::Lost);
    }
    seen.all = true;
    let mut left = 0;
    while (known.pc, known.registers.get(SP)) != (frame.pc, Some(frame.sp)) {
        left += 1;
        if left > seen.frames + BEFORE_CALLER {
            return WalkStep::End(WalkEnd::Lost);
        }
        match general_step(known, memory, seen) {
            WalkStep::To(_) => {}
            end @ WalkStep::End(_) => return end,
        }
        match seen.known.take() {
            Some(next) => known = next,
            None => return WalkStep::End(WalkEnd::Lost),
        }
    }
    general_step(known, memory, seen)
}

/// Steps out of the kernel's signal frame in C libraries that give it no unwind information.
fn signal_return(frame: StackFrame, memory: &mut StackMemory<'_>, seen: &mut WalkState) -> WalkStep {
    match step_out_of_signal(known_of(frame), memory) {
        Some(known) => remember(known, seen),
        None => WalkStep::End(WalkEnd::Lost),
    }
}

fn step_out_of_signal(known: GeneralFrame, memory: &mut StackMemory<'_>) -> Option<GeneralFrame> {
    let module = UnwindModule::find(known.pc)?;
    if !module.has_code_at(known.pc, &SIGNAL_RETURN) {
        return None;
    }
    let sp = known.registers.get(SP)?;
    let mut interrupted = GeneralFrame::interrupted();
    for (register, offset) in SIGNAL_CONTEXT {
        interrupted.registers.set(register, memory.read(sp.checked_add(offset)?)?);
        // The last entry of the list is the pc.
        interrupted.pc = memory.read(sp.checked_add(offset)?)?;
    }
    memory.enter(interrupted.registers.get(SP)?)?;
    Some(interrupted)
}

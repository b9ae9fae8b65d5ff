//! Stacks as lines of a view: the type of the blocks, then the frames that are not folded.

use core::fmt;

use super::ProgramOptions;
use super::closure::FunctionNames;
use super::holder::BlockHolder;
use super::line::{dim, frames};
use crate::dump::CallFrame;
use crate::names::{FoldReason, FoldedStack, FrameworkSources, Workspace};
use crate::records::{Analysis, CutStackId, NO_STACK};

/// Writes the stacks of an analysis for a view.
pub(super) struct StackText<'a> {
    analysis: &'a Analysis,
    options: &'a ProgramOptions,
    named: FunctionNames<'a>,
    workspace: Workspace,
    framework: FrameworkSources,
}

/// The part of a stack that a view shows.
struct ShownFrames<'f> {
    frames: Vec<CallFrame<'f>>,
    /// The numbers of folded frames: `inner` before the shown frames, and `outer` after them.
    inner: usize,
    outer: usize,
}

impl<'a> StackText<'a> {
    pub(super) fn new(analysis: &'a Analysis, options: &'a ProgramOptions) -> Self {
        let frames = || analysis.texts.iter().map(|text| text.frame());
        let (workspace, framework) =
            (Workspace::from_frames(frames()), FrameworkSources::from_frames(frames()));
        Self { analysis, options, named: FunctionNames::new(analysis), workspace, framework }
    }

    /// Writes a line with the type of a stack's blocks, if the analysis contains it.
    pub(super) fn type_of(&self, f: &mut fmt::Formatter<'_>, stack: CutStackId) -> fmt::Result {
        let Some(verdict) = self.analysis.type_of(stack) else { return Ok(()) };
        let width = self.options.width.saturating_sub("   ".len());
        let holder = BlockHolder::typed(verdict, stack, &self.named);
        writeln!(f, "   {}", holder.name(width, self.options))
    }

    /// Writes the stacks of one or two reports. Frames of the framework are folded, because all reports pass through
    /// it. For the second stack, only the frames that differ from the first stack are written.
    pub(super) fn reports(
        &self,
        f: &mut fmt::Formatter<'_>,
        reports: &[(String, CutStackId)],
    ) -> fmt::Result {
        let mut first: Option<Vec<CallFrame<'_>>> = None;
        for (title, stack) in reports {
            writeln!(f, "   {title}")?;
            let all = self.named.frames(*stack);
            if self.options.all_frames || all.is_empty() {
                self.stack(f, *stack)?;
                continue;
            }
            let mut shown = self.shown(&all, true);
            let same = first.as_ref().map_or(0, |first| {
                let pairs = first.iter().rev().zip(shown.frames.iter().rev());
                pairs.take_while(|(a, b)| is_same(a, b)).count()
            });
            if same == 0 {
                self.lines(f, &shown)?;
            } else {
                shown.outer = 0;
                shown.frames.truncate(shown.frames.len() - same);
                if !shown.frames.is_empty() {
                    self.lines(f, &shown)?;
                }
                let plural = if same == 1 { "" } else { "s" };
                let line = format!("     ({same} frame{plural} as in the first report)");
                writeln!(f, "{}", dim(&line, self.options))?;
            }
            first.get_or_insert(shown.frames);
        }
        Ok(())
    }

    /// Writes the lines of a stack.
    pub(super) fn stack(&self, f: &mut fmt::Formatter<'_>, stack: CutStackId) -> fmt::Result {
        let options = self.options;
        if self.analysis.frames(stack).any(|text| text.as_str() == NO_STACK) {
            return writeln!(f, "   {}", dim("no stack: DMD recorded stacks for a sample only", options));
        }
        let all = self.named.frames(stack);
        if all.is_empty() {
            return writeln!(f, "   {}", dim("no stack", options));
        }
        self.lines(f, &self.shown(&all, false))
    }

    /// The frames of a stack that the view shows. The stack must not be empty.
    fn shown<'f>(&self, all: &[CallFrame<'f>], of_report: bool) -> ShownFrames<'f> {
        let options = self.options;
        if options.all_frames {
            return ShownFrames { frames: all.to_vec(), inner: 0, outer: 0 };
        }
        let is_framework = |frame: &CallFrame<'_>| of_report && self.framework.has(frame);
        let fold = |at: usize| {
            let frame = &all[at];
            options.folds.reason(frame).or_else(|| is_framework(frame).then_some(FoldReason::Library))
        };
        let FoldedStack { shown, inner, outer } = FoldedStack::with_reasons(all.len(), fold);
        // If all frames are folded, `FoldedStack` still shows one frame.
        let is_all_folded = matches!(shown[..], [only] if fold(only).is_some());
        let outer = match () {
            () if options.verbose => outer,
            () if is_all_folded => inner + outer,
            () => 0,
        };
        let inner = if options.verbose { inner } else { 0 };
        ShownFrames { frames: shown.iter().map(|at| all[*at]).collect(), inner, outer }
    }

    fn lines(&self, f: &mut fmt::Formatter<'_>, shown: &ShownFrames<'_>) -> fmt::Result {
        let options = self.options;
        let folded = |count: usize| {
            let plural = if count == 1 { "" } else { "s" };
            dim(&format!("     ({count} frame{plural} folded)"), options)
        };
        if shown.inner > 0 {
            writeln!(f, "{}", folded(shown.inner))?;
        }
        let lines = frames(&shown.frames, "  ", &self.workspace, options);
        if options.all_frames || options.verbose {
            lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        } else {
            without_repeats(f, &lines, options)?;
        }
        if shown.outer > 0 {
            writeln!(f, "{}", folded(shown.outer))?;
        }
        Ok(())
    }
}

/// Whether two frames look the same in a view.
fn is_same(a: &CallFrame<'_>, b: &CallFrame<'_>) -> bool {
    (a.function, a.file, a.line, a.module, a.offset) == (b.function, b.file, b.line, b.module, b.offset)
}

/// The maximum number of functions in one round of a recursion that is shown once.
const LONGEST_ROUND: usize = 8;

/// The minimum number of repeated lines to leave out. A line that replaces fewer lines would save little.
const FEWEST_REPEATS: usize = 3;

/// Writes the lines of a stack. For a recursion, writes the first round and the number of further rounds.
fn without_repeats(f: &mut fmt::Formatter<'_>, lines: &[String], options: &ProgramOptions) -> fmt::Result {
    let mut at = 0;
    while at < lines.len() {
        let rounds = |length: usize| {
            let mut rounds = lines[at..].chunks_exact(length);
            let first = rounds.next();
            rounds.take_while(|round| Some(*round) == first).count()
        };
        let lengths = 1..=LONGEST_ROUND.min(lines.len() - at);
        // Take the round that leaves out the most lines. Among equal rounds, take the shortest.
        let (length, again) = lengths
            .map(|length| (length, rounds(length)))
            .rev()
            .max_by_key(|(length, again)| length * again)
            .filter(|(length, again)| length * again >= FEWEST_REPEATS)
            .unwrap_or((1, 0));
        lines[at..at + length].iter().try_for_each(|line| writeln!(f, "{line}"))?;
        if again > 0 {
            let round = if length == 1 { "this frame".to_owned() } else { format!("these {length} frames") };
            let times = if again == 1 { "once more".to_owned() } else { format!("{again} more times") };
            writeln!(f, "{}", dim(&format!("     ({round}, {times})"), options))?;
        }
        at += length * (again + 1);
    }
    Ok(())
}

//! Stacks as lines of a view: the type of their blocks, then the frames that say something about the program.

use core::fmt;

use super::ProgramOptions;
use super::closure::Named;
use super::holder::Holder;
use super::line::{dim, frames};
use super::short_path::Workspace;
use crate::fold::Sited;
use crate::frame::Frame;
use crate::records::{Analysis, NO_STACK};
use crate::stacks::StackId;

/// How a view shows the stacks of an analysis.
pub(super) struct StackText<'a> {
    analysis: &'a Analysis,
    options: &'a ProgramOptions,
    named: Named<'a>,
    workspace: Workspace,
}

impl<'a> StackText<'a> {
    pub(super) fn new(analysis: &'a Analysis, options: &'a ProgramOptions) -> Self {
        let workspace = Workspace::of(analysis.texts.iter().map(|text| text.frame()));
        Self { analysis, options, named: Named::of(analysis), workspace }
    }

    /// A line with the type of a stack's blocks, if it is known.
    pub(super) fn type_of(&self, f: &mut fmt::Formatter<'_>, stack: StackId) -> fmt::Result {
        let Some(verdict) = self.analysis.type_of(stack) else { return Ok(()) };
        let width = self.options.width.saturating_sub("   ".len());
        let holder = Holder::of_type(verdict, stack, &self.named);
        writeln!(f, "   {}", holder.name(width, self.options))
    }

    /// The lines of a stack, with a title if that is not empty.
    pub(super) fn stack(&self, f: &mut fmt::Formatter<'_>, title: &str, stack: StackId) -> fmt::Result {
        let options = self.options;
        if !title.is_empty() {
            writeln!(f, "   {title}")?;
        }
        if self.analysis.frames(stack).any(|text| text.as_str() == NO_STACK) {
            return writeln!(f, "   {}", dim("no stack: DMD recorded stacks for a sample only", options));
        }
        let all = self.named.frames(stack);
        if all.is_empty() {
            return writeln!(f, "   {}", dim("no stack", options));
        }
        let sited = Sited::of(&all, &options.folds);
        let folded = |count: usize| {
            let plural = if count == 1 { "" } else { "s" };
            dim(&format!("     ({count} frame{plural} folded)"), options)
        };
        if sited.inner > 0 && options.verbose && !options.all_frames {
            writeln!(f, "{}", folded(sited.inner))?;
        }
        let shown: Vec<Frame<'_>> = match options.all_frames {
            true => all.clone(),
            false => sited.shown.iter().map(|at| all[*at]).collect(),
        };
        let lines = frames(&shown, "  ", &self.workspace, options);
        if options.all_frames || options.verbose {
            lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        } else {
            without_repeats(f, &lines, options)?;
        }
        // The view folds even the frame that it shows.
        let is_all_folded = matches!(shown[..], [only] if options.folds.of(&only).is_some());
        let count = match () {
            () if options.all_frames => 0,
            () if options.verbose => sited.outer,
            () if is_all_folded => sited.inner + sited.outer,
            () => 0,
        };
        if count > 0 {
            writeln!(f, "{}", folded(count))?;
        }
        Ok(())
    }
}

/// The longest recursion whose rounds are shown once: through this number of functions.
const LONGEST_ROUND: usize = 8;

/// The fewest lines that are left out as repeats. One or two say more than the line in their place.
const FEWEST_REPEATS: usize = 3;

/// Writes the lines of a stack. Of a recursion, it writes the first round and the number of the others.
fn without_repeats(f: &mut fmt::Formatter<'_>, lines: &[String], options: &ProgramOptions) -> fmt::Result {
    let mut at = 0;
    while at < lines.len() {
        let rounds = |length: usize| {
            let mut rounds = lines[at..].chunks_exact(length);
            let first = rounds.next();
            rounds.take_while(|round| Some(*round) == first).count()
        };
        let lengths = 1..=LONGEST_ROUND.min(lines.len() - at);
        // The shortest round that leaves out the most.
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

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
        for line in frames(&shown, "  ", &self.workspace, options) {
            writeln!(f, "{line}")?;
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

//! The frames of a stack that a view shows, in the order of a flame graph.

use super::ProgramOptions;
use super::line::place;
use crate::dump::FrameTextId;
use crate::names::{AllocatorFrames, FoldReason, FoldedStack, Workspace};
use crate::records::{Analysis, CutStackId};

/// Finds the paths of an analysis. The analysis needs whole stacks and types.
pub(super) struct StackPaths<'a> {
    analysis: &'a Analysis,
    /// The reason why each frame is folded, by the id of the frame's text.
    folds: Vec<Option<FoldReason>>,
    dropped: Vec<bool>,
    has_folds: bool,
    workspace: Workspace,
    options: &'a ProgramOptions,
}

/// A frame of a path. Without a text, the name is the type of the blocks.
pub(super) struct PathFrame {
    pub(super) name: String,
    text: Option<FrameTextId>,
}

impl<'a> StackPaths<'a> {
    /// A dump without modules is Firefox's. The rules for folded frames do not cover Firefox's frames.
    pub(super) fn new(analysis: &'a Analysis, has_modules: bool, options: &'a ProgramOptions) -> Self {
        let which = if has_modules { AllocatorFrames::CAndRust } else { AllocatorFrames::C };
        let has_folds = has_modules && !options.all_frames;
        let texts = || analysis.texts.iter();
        Self {
            analysis,
            folds: if has_folds {
                texts().map(|text| options.folds.reason(&text.frame())).collect()
            } else {
                Vec::new()
            },
            dropped: texts().map(|text| which.has(text)).collect(),
            has_folds,
            workspace: Workspace::from_frames(texts().map(|text| text.frame())),
            options,
        }
    }

    /// The file and the line of a frame, in short. Empty if they are unknown.
    pub(super) fn place(&self, frame: &PathFrame) -> String {
        let place_of = |text| {
            let frame = self.analysis.texts.get(text).frame();
            frame.file.map(|_| place(&frame, &self.workspace, self.options))
        };
        frame.text.and_then(place_of).unwrap_or_default()
    }

    /// The frames, outermost first. The last frame is the type of the blocks, if the stack names it.
    pub(super) fn path(&self, stack: CutStackId) -> Vec<PathFrame> {
        let texts = self.analysis.stacks.get(stack);
        let inner = texts.iter().take_while(|text| self.dropped[text.index()]).count();
        let shown: Vec<usize> = if self.has_folds {
            FoldedStack::with_reasons(texts.len(), |at| self.folds[texts[at].index()]).shown
        } else {
            (0..texts.len()).collect()
        };
        let kept = match &shown[shown.partition_point(|at| *at < inner)..] {
            [] => &shown[..],
            kept => kept,
        };
        let frame = |at: &usize| {
            let text = texts[*at];
            PathFrame { name: self.analysis.texts.get(text).short_name().to_owned(), text: Some(text) }
        };
        let of_type = self.analysis.type_of(stack).and_then(|verdict| verdict.type_name());
        let of_type = of_type.map(|name| PathFrame { name, text: None });
        kept.iter().rev().map(frame).chain(of_type).collect()
    }
}

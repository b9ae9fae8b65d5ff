//! The names of kinds and reporters in flame graphs and folded stacks.

use super::stacks::CutStackId;
use super::{Analysis, KindSection, StackRecord};
use crate::dump::FrameText;

/// The name of the frame that represents all frames that are too small to show.
pub(crate) const SMALL: &str = "(small)";

/// The name of the outermost frame, if a dump has several kinds.
pub(crate) fn kind_name(section: &KindSection) -> String {
    section.kind.name().to_ascii_lowercase()
}

/// The name of the frame between the kind of a reported record and its stack.
pub(crate) fn reporter_name(analysis: &Analysis, record: &StackRecord) -> String {
    format!("reported by {}", reporter(analysis, record.reps[0]))
}

/// The function that reported blocks on this stack.
pub(crate) fn reporter(analysis: &Analysis, stack: CutStackId) -> &str {
    let mut frames = analysis.frames(stack).map(FrameText::frame);
    let first = frames.next();
    let reporter = first.into_iter().chain(frames).find(|frame| !frame.is_measuring()).or(first);
    reporter.unwrap_or_default().name()
}

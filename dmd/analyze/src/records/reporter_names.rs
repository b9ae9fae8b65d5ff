//! The names of kinds and reporters in flame graphs and folded stacks.

use super::stacks::StackId;
use super::{Analysis, Record, Section};
use crate::dump::FrameText;

/// The name of the frame that stands for all frames that are too small to show.
pub(crate) const SMALL: &str = "(small)";

/// The name of the outermost frame in a dump with several kinds.
pub(crate) fn kind_name(section: &Section) -> String {
    section.kind.name().to_ascii_lowercase()
}

/// The name of the frame between the kind of a reported record and its stack.
pub(crate) fn reporter_name(analysis: &Analysis, record: &Record) -> String {
    format!("reported by {}", reporter(analysis, record.reps[0]))
}

/// The function that reported blocks on this stack.
pub(crate) fn reporter(analysis: &Analysis, stack: StackId) -> &str {
    let mut frames = analysis.frames(stack).map(FrameText::frame);
    let first = frames.next();
    let reporter = first.into_iter().chain(frames).find(|frame| !frame.is_measuring()).or(first);
    reporter.unwrap_or_default().name()
}

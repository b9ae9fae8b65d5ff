//! What flame graphs and folded stacks call kinds, reporters and frames.

use crate::frame::FrameText;
use crate::records::{Analysis, Record, Section};

/// What stands for frames that are too small to be shown one by one.
pub(crate) const SMALL: &str = "(small)";

/// What stands before all frames of a dump with several kinds.
pub(crate) fn kind_name(section: &Section) -> String {
    section.kind.name().to_ascii_lowercase()
}

/// What stands between the kind of a record that was reported and its stack.
pub(crate) fn reporter_name(analysis: &Analysis, record: &Record) -> String {
    let mut frames = analysis.frames(record.reps[0]).map(FrameText::frame);
    let first = frames.next();
    let reporter = first.into_iter().chain(frames).find(|frame| !frame.is_measuring()).or(first);
    format!("reported by {}", reporter.unwrap_or_default().name())
}

/// A frame as flame graphs name it. Places without a function differ by their offset.
pub(crate) fn frame_name(text: FrameText<'_>) -> &str {
    text.frame().function.unwrap_or_else(|| text.without_number())
}

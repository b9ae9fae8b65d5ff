//! Folded stacks: a line for each record, its frames from the outermost on, and its bytes.

use core::fmt::{self, Display};

use super::allocators::split_frame;
use super::by_text::without_number;
use super::owner::is_measuring;
use super::records::{Analysis, Record, Section};
use super::stacks::StackId;

/// Folded stacks, which `inferno`, speedscope and their like make flame graphs of.
///
/// The weight is usable bytes. Of a dark-matter dump the outermost frame is the kind. Records with no
/// bytes, or in a difference fewer than before, are left out: a flame graph cannot show them.
#[derive(Debug)]
pub struct Folded<'a>(&'a Analysis);

impl Analysis {
    /// The records shown as folded stacks; for all of them, set
    /// [`limit`](super::AnalyzeOptions::limit) and [`max_frames`](super::AnalyzeOptions::max_frames) high.
    pub fn folded(&self) -> Folded<'_> {
        Folded(self)
    }
}

impl Display for Folded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for section in &self.0.sections {
            for record in &section.records {
                let bytes = record.sums.usable();
                if bytes <= 0 {
                    continue;
                }
                let mut line = String::new();
                let mut push = |name: &str| {
                    if !line.is_empty() {
                        line.push(';');
                    }
                    let bad = |c: char| c == ';' || c.is_control();
                    line.extend(name.chars().map(|c| if bad(c) { ' ' } else { c }));
                };
                if self.0.sections.len() > 1 {
                    push(&kind_name(section));
                }
                if record.reps[0] != StackId::NONE {
                    push(&reporter_name(self.0, record));
                }
                let frames: Vec<&str> = self.0.frames(record.alloc).collect();
                frames.iter().rev().for_each(|text| push(frame_name(text)));
                writeln!(f, "{line} {bytes}")?;
            }
        }
        Ok(())
    }
}

/// What stands before all frames of a dump with several kinds.
pub(super) fn kind_name(section: &Section) -> String {
    section.kind.name().to_ascii_lowercase()
}

/// What stands between the kind of a record that was reported and its stack.
pub(super) fn reporter_name(analysis: &Analysis, record: &Record) -> String {
    let mut frames = analysis.frames(record.reps[0]);
    let first = analysis.frames(record.reps[0]).next();
    let reporter = frames.find(|text| !is_measuring(text)).or(first);
    format!("reported by {}", split_frame(reporter.unwrap_or("???")).0)
}

/// A frame as flame graphs name it. Places without a function differ by their offset.
pub(super) fn frame_name(text: &str) -> &str {
    match split_frame(text).0 {
        "???" => without_number(text),
        function => function,
    }
}

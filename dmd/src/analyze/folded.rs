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
                names(self.0, section, record, |name| {
                    if !line.is_empty() {
                        line.push(';');
                    }
                    let bad = |c: char| c == ';' || c.is_control();
                    line.extend(name.chars().map(|c| if bad(c) { ' ' } else { c }));
                });
                writeln!(f, "{line} {bytes}")?;
            }
        }
        Ok(())
    }
}

/// The frames of a record from the outermost on, as flame graphs name them; before them the record's kind, if
/// there are several, and who reported it.
pub(super) fn names(analysis: &Analysis, section: &Section, record: &Record, mut each: impl FnMut(&str)) {
    if analysis.sections.len() > 1 {
        each(&section.kind.name().to_ascii_lowercase());
    }
    if record.reps[0] != StackId::NONE {
        let mut frames = analysis.frames(record.reps[0]);
        let first = analysis.frames(record.reps[0]).next();
        let reporter = frames.find(|text| !is_measuring(text)).or(first);
        each(&format!("reported by {}", split_frame(reporter.unwrap_or("???")).0));
    }
    let frames: Vec<&str> = analysis.frames(record.alloc).collect();
    for text in frames.iter().rev() {
        let (function, _) = split_frame(text);
        // Places without a function differ by their offset.
        each(if function == "???" { without_number(text) } else { function });
    }
}

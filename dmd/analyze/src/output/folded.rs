//! Writes folded stacks: one line for each record, with its frames (outermost first) and its bytes.

use core::fmt::{self, Display};
use std::collections::HashMap;

use memory_report::is_deceptive;
use rustc_hash::FxHashMap;

use crate::dump::FrameText;
use crate::records::{Analysis, CutStackId, KindSection, SMALL, StackRecord, kind_name, reporter_name};

/// Folded stacks, from which tools such as `inferno` and speedscope make flame graphs.
///
/// The weight is usable bytes. In a dump of dark-matter mode, the outermost frame is the kind of record. Records
/// without bytes and, in a difference, records that shrank are left out: a flame graph cannot show them. Records with
/// equal lines become one line.
#[derive(Debug)]
pub struct FoldedText<'a> {
    analysis: &'a Analysis,
    most_text: usize,
}

impl Analysis {
    /// The shown records as folded stacks. For all records, set [`limit`](crate::AnalyzeOptions::limit) and
    /// [`max_frames`](crate::AnalyzeOptions::max_frames) high.
    pub fn folded(&self) -> FoldedText<'_> {
        FoldedText { analysis: self, most_text: 256 << 20 }
    }
}

impl FoldedText<'_> {
    /// Sets the maximum number of bytes of all lines; each kind gets an equal part. The limit is needed because a dump
    /// stores shared frames once, but this text repeats them. In each kind, one line `(small)` replaces the first
    /// record that does not fit, and all records after it. Default: 256 MiB.
    #[must_use]
    pub fn most_text(mut self, bytes: usize) -> Self {
        self.most_text = bytes;
        self
    }
}

impl Display for FoldedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sections = &self.analysis.sections;
        let mut reporters = ReporterNames::default();
        for section in sections {
            let kind = if sections.len() > 1 { kind_name(section) } else { String::new() };
            let mut room = self.most_text / sections.len();
            let mut small = 0;
            for (reporter, alloc, bytes) in lines(self.analysis, section, &mut reporters) {
                let mut line = FoldedLine { text: String::new(), room };
                let mut fits = line.push(&kind);
                if let Some(reporter) = reporter {
                    fits = fits && line.push(&reporters.names[reporter]);
                }
                let frames: Vec<FrameText<'_>> = self.analysis.frames(alloc).collect();
                if fits && frames.iter().rev().all(|frame| line.push(frame.short_name())) {
                    room -= line.text.len();
                    writeln!(f, "{} {bytes}", line.text)?;
                } else {
                    room = 0;
                    small += bytes;
                }
            }
            if small > 0 {
                let mut line = FoldedLine { text: String::new(), room: usize::MAX };
                line.push(&kind);
                line.push(SMALL);
                writeln!(f, "{} {small}", line.text)?;
            }
        }
        Ok(())
    }
}

/// The reporter, stack and bytes of each line of a section.
fn lines(
    analysis: &Analysis,
    section: &KindSection,
    reporters: &mut ReporterNames,
) -> Vec<(Option<usize>, CutStackId, i128)> {
    let mut lines: Vec<(Option<usize>, CutStackId, i128)> = Vec::new();
    let mut places: FxHashMap<(Option<usize>, CutStackId), usize> = FxHashMap::default();
    for record in section.records.iter().filter(|record| record.sums.usable() > 0) {
        let reporter = (record.reps[0] != CutStackId::NONE).then(|| reporters.number(analysis, record));
        let bytes = record.sums.usable();
        let place = *places.entry((reporter, record.alloc)).or_insert(lines.len());
        match lines.get_mut(place) {
            Some((.., known)) => *known += bytes,
            None => lines.push((reporter, record.alloc, bytes)),
        }
    }
    lines
}

/// The names of reporters, each stored once.
#[derive(Default)]
struct ReporterNames {
    by_stack: FxHashMap<CutStackId, usize>,
    by_name: HashMap<String, usize>,
    names: Vec<String>,
}

impl ReporterNames {
    fn number(&mut self, analysis: &Analysis, record: &StackRecord) -> usize {
        *self.by_stack.entry(record.reps[0]).or_insert_with(|| {
            let name = reporter_name(analysis, record);
            *self.by_name.entry(name).or_insert_with_key(|name| {
                self.names.push(name.clone());
                self.names.len() - 1
            })
        })
    }
}

/// A line that is being written.
struct FoldedLine {
    text: String,
    room: usize,
}

impl FoldedLine {
    /// Adds a frame if there is room. Returns whether there was room. An empty name at the start of the line adds no
    /// frame.
    fn push(&mut self, name: &str) -> bool {
        let before = self.text.len();
        if !self.text.is_empty() {
            self.text.push(';');
        }
        for c in name.chars() {
            match c {
                ';' => self.text.push(' '),
                c if c.is_control() => self.text.push(' '),
                c if is_deceptive(c) => self.text.extend(c.escape_unicode()),
                c => self.text.push(c),
            }
        }
        // An escaped character is longer than the character.
        let fits = self.text.len() < self.room;
        if !fits {
            self.text.truncate(before);
        }
        fits
    }
}

//! The text that DMD itself wrote in 2013, with records of stack traces and of stack frames.

use core::fmt::{self, Display};

use dmd_format::Mode;

use crate::print::{CleanText, blocks, mark, number, percent};
use crate::records::{Analysis, BlockSums, CutStackId, KindSection, RecordKind, StackRecord, TableKey};

const LINE: &str = "------------------------------------------------------------------";

/// An analysis in the layout of 2013.
///
/// Frames appear as they are in the dump or in the symbols. The text of 2013 also contained the address of each frame;
/// dumps do not. To get records of frames, add [`TableKey::Frame`] to the options.
#[derive(Debug)]
pub struct ClassicText<'a>(&'a Analysis);

impl Analysis {
    /// The analysis in the layout of 2013.
    pub fn classic(&self) -> ClassicText<'_> {
        ClassicText(self)
    }
}

impl Display for ClassicText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for invocation in &self.0.invocations {
            heading(f, "Invocation")?;
            match &invocation.variable {
                Some(variable) => writeln!(f, "$DMD = '{}'", CleanText(variable))?,
                None => f.write_str("$DMD is undefined\n")?,
            }
            let mode = if invocation.mode == Mode::Scan { Mode::Live } else { invocation.mode };
            writeln!(f, "Mode = '{mode}'\n")?;
        }
        for section in &self.0.sections {
            let kind = section.kind.name();
            heading(f, &format!("{kind} stack trace records"))?;
            let mut so_far = 0;
            for (index, record) in section.records.iter().enumerate() {
                so_far += record.sums.usable();
                self.trace_record(f, section, record, index + 1, so_far)?;
            }
            if section.records.is_empty() {
                f.write_str("(none)\n\n")?;
            }
            left_out(f, kind, "trace", section.records.len(), section.kept)?;
            // DMD never had records of frames for twice-reported blocks.
            if section.kind != RecordKind::TwiceReported {
                self.frame_records(f, section)?;
            }
        }
        heading(f, "Summary")?;
        if self.0.sections.len() > 1 {
            for line in self.0.summary() {
                writeln!(f, "{line}")?;
            }
        } else {
            let mark = mark(self.0.estimated);
            let BlockSums { num, .. } = self.0.total;
            writeln!(f, "Total: {mark}{} bytes in {mark}{}", number(self.0.total.usable()), blocks(num))?;
        }
        f.write_str("\n")?;
        for invocation in &self.0.invocations {
            heading(f, "Execution measurements")?;
            invocation.measurements.write(f)?;
        }
        Ok(())
    }
}

impl ClassicText<'_> {
    fn trace_record(
        &self,
        f: &mut fmt::Formatter<'_>,
        section: &KindSection,
        record: &StackRecord,
        index: usize,
        so_far: i128,
    ) -> fmt::Result {
        let mark = mark(record.estimated);
        writeln!(
            f,
            "{}: {mark}{} in stack trace record {} of {}",
            section.kind.name(),
            blocks(record.sums.num),
            number(index as i128),
            number(section.all as i128)
        )?;
        bytes(f, record.sums, mark)?;
        let usable = record.sums.usable();
        let share = |whole: BlockSums| {
            let whole = whole.usable();
            format!("({} cumulative)", percent(so_far, whole))
        };
        write!(f, " {} of the heap {}", percent(usable, self.0.total.usable()), share(self.0.total))?;
        if self.0.sections.len() > 1 {
            let of_kind = percent(usable, section.sums.usable());
            let lower = section.kind.name().to_ascii_lowercase();
            write!(f, ";  {of_kind} of {lower} {}", share(section.sums))?;
        }
        f.write_str("\n Allocated at\n")?;
        self.stack(f, record.alloc)?;
        for (title, stack) in ["Reported at", "Reported again at"].into_iter().zip(record.reps) {
            if stack != CutStackId::NONE {
                writeln!(f, "\n {title}")?;
                self.stack(f, stack)?;
            }
        }
        f.write_str("\n")
    }

    fn stack(&self, f: &mut fmt::Formatter<'_>, stack: CutStackId) -> fmt::Result {
        for text in self.0.frames(stack) {
            writeln!(f, "   {}", CleanText(text.without_number()))?;
        }
        Ok(())
    }

    fn frame_records(&self, f: &mut fmt::Formatter<'_>, section: &KindSection) -> fmt::Result {
        let Some(table) = section.tables.iter().find(|table| table.by == TableKey::Frame) else {
            return Ok(());
        };
        let kind = section.kind.name();
        heading(f, &format!("{kind} stack frame records"))?;
        for (index, row) in table.rows.iter().enumerate() {
            let mark = mark(row.estimated);
            writeln!(
                f,
                "{kind}: {mark}{} from {mark}{} stack trace record{} in stack frame record {} of {}",
                blocks(row.sums.num),
                number(row.records as i128),
                if row.records == 1 { "" } else { "s" },
                number(index as i128 + 1),
                number(table.all as i128)
            )?;
            bytes(f, row.sums, mark)?;
            let usable = row.sums.usable();
            write!(f, " {} of the heap", percent(usable, self.0.total.usable()))?;
            if self.0.sections.len() > 1 {
                let of_kind = percent(usable, section.sums.usable());
                write!(f, ";  {of_kind} of {}", kind.to_ascii_lowercase())?;
            }
            writeln!(f, "\n PC is\n   {}\n", CleanText(&row.name))?;
        }
        if table.rows.is_empty() {
            f.write_str("(none)\n\n")?;
        }
        left_out(f, kind, "frame", table.rows.len(), table.all)
    }
}

fn heading(f: &mut fmt::Formatter<'_>, title: &str) -> fmt::Result {
    writeln!(f, "{LINE}\n{title}\n{LINE}\n")
}

fn bytes(f: &mut fmt::Formatter<'_>, sums: BlockSums, mark: &str) -> fmt::Result {
    let BlockSums { req, slop, .. } = sums;
    let usable = number(sums.usable());
    writeln!(f, " {mark}{usable} bytes ({mark}{} requested / {mark}{} slop)", number(req), number(slop))
}

fn left_out(f: &mut fmt::Formatter<'_>, kind: &str, of: &str, shown: usize, all: usize) -> fmt::Result {
    match all - shown {
        0 => Ok(()),
        more => writeln!(f, "{kind}: {} more stack {of} records are not shown\n", number(more as i128)),
    }
}

//! Writes the text of Firefox's `dmd.py`, byte for byte.

use core::fmt::{self, Display};

use dmd_format::Mode;

use crate::print::{CleanText, blocks, mark, number, percent, share};
use crate::records::{Analysis, BlockSums, CutStackId, KindSection, RecordKind, StackRecord};

const SEPARATOR: &str = "#-----------------------------------------------------------------";

/// An analysis as the text of `dmd.py`. Its `Display` writes the text.
#[derive(Debug)]
pub struct FirefoxText<'a> {
    analysis: &'a Analysis,
    arguments: &'a [String],
}

impl Analysis {
    /// The text of `dmd.py`. The second line of the text contains `arguments`.
    pub fn text<'a>(&'a self, arguments: &'a [String]) -> FirefoxText<'a> {
        FirefoxText { analysis: self, arguments }
    }
}

impl Analysis {
    /// The lines of the summary: the blocks of each kind of records, and their share of the heap (dark-matter mode).
    pub(crate) fn summary(&self) -> Vec<String> {
        let heap = self.total;
        let of = |kind| {
            let section = self.sections.iter().find(|section| section.kind == kind);
            section.map(|section| (section.sums, section.estimated)).unwrap_or_default()
        };
        let lines = [
            ("Total:", (heap, self.estimated)),
            ("Unreported:", of(RecordKind::Unreported)),
            ("Once-reported:", of(RecordKind::OnceReported)),
            ("Twice-reported:", of(RecordKind::TwiceReported)),
        ];
        let line = |(title, (sums, estimated)): (&str, (BlockSums, bool))| {
            let share = |of, heap| if title == "Total:" { 100.0 } else { share(of, heap) };
            let mark = mark(estimated);
            format!(
                "{title:<15} {:>12} bytes ({:6.2}%) in {:>7} blocks ({:6.2}%)",
                format!("{mark}{}", number(sums.usable())),
                share(sums.usable(), heap.usable()),
                format!("{mark}{}", number(sums.num)),
                share(sums.num, heap.num)
            )
        };
        lines.into_iter().map(line).collect()
    }
}

impl Display for FirefoxText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let analysis = self.analysis;
        write!(f, "{SEPARATOR}\n# dmd.py")?;
        for argument in self.arguments {
            write!(f, " {}", CleanText(argument))?;
        }
        f.write_str("\n\n")?;
        self.invocations(f)?;
        for section in &analysis.sections {
            self.section(f, section)?;
        }
        writeln!(f, "{SEPARATOR}\n\nSummary {{")?;
        self.summary(f)?;
        f.write_str("}\n\n")
    }
}

impl FirefoxText<'_> {
    fn invocations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let invocations = &self.analysis.invocations;
        for (index, invocation) in invocations.iter().enumerate() {
            match invocations.len() {
                1 => f.write_str("Invocation {\n")?,
                _ => writeln!(f, "Invocation {} {{", index + 1)?,
            }
            match &invocation.variable {
                Some(variable) => writeln!(f, "  $DMD = '{}'", CleanText(variable))?,
                None => f.write_str("  $DMD is undefined\n")?,
            }
            let mode = if invocation.mode == Mode::Scan { Mode::Live } else { invocation.mode };
            writeln!(f, "  Mode = '{mode}'\n}}\n")?;
        }
        Ok(())
    }

    fn section(&self, f: &mut fmt::Formatter<'_>, section: &KindSection) -> fmt::Result {
        writeln!(f, "{SEPARATOR}\n")?;
        let name = section.kind.name();
        let lower = name.to_ascii_lowercase();
        if section.all == 0 {
            return writeln!(f, "# no {lower} heap blocks\n");
        }
        let mut so_far = 0;
        for (index, record) in section.records.iter().enumerate() {
            so_far += record.sums.usable();
            self.record(f, section, record, index + 1, so_far)?;
        }
        if section.kept > section.records.len() {
            // `dmd.py` stops before it prints its 1,000th record, but counts that record here.
            let shown = match section.records.len() {
                999 => 1000,
                shown => shown as i128,
            };
            writeln!(f, "# {name}: stopping after {} heap block records\n", number(shown))?;
        }
        Ok(())
    }

    fn record(
        &self,
        f: &mut fmt::Formatter<'_>,
        section: &KindSection,
        record: &StackRecord,
        index: usize,
        so_far: i128,
    ) -> fmt::Result {
        let BlockSums { num, req, slop, .. } = record.sums;
        let usable = record.sums.usable();
        let name = section.kind.name();
        writeln!(f, "{name} {{")?;
        let mark = mark(record.estimated);
        writeln!(
            f,
            "  {mark}{} in heap block record {} of {}",
            blocks(num),
            number(index as i128),
            number(section.all as i128)
        )?;
        if !record.addresses.is_empty() {
            let mut addresses: Vec<String> = record.addresses.iter().map(|a| format!("0x{a:x}")).collect();
            addresses.sort_unstable();
            writeln!(f, "  block addresses: {}", addresses.join(", "))?;
        }
        writeln!(
            f,
            "  {mark}{} bytes ({mark}{} requested / {mark}{} slop)",
            number(usable),
            number(req),
            number(slop)
        )?;
        if record.estimated {
            f.write_str("  Individual block sizes: unknown, as ~ marks estimates\n")?;
        } else if self.analysis.has_means() && num > 1 {
            let at = if self.analysis.is_at_peak() { " at the peak" } else { "" };
            writeln!(f, "  Individual block sizes: unknown{at}; their mean is {}", number(usable / num))?;
        } else {
            individual_sizes(f, &record.sizes)?;
        }
        let heap = self.analysis.total.usable();
        writeln!(f, "  {} of the heap ({} cumulative)", percent(usable, heap), percent(so_far, heap))?;
        let dark_matter = self.is_dark_matter();
        if dark_matter {
            let of_kind = section.sums.usable();
            writeln!(
                f,
                "  {} of {} ({} cumulative)",
                percent(usable, of_kind),
                name.to_ascii_lowercase(),
                percent(so_far, of_kind)
            )?;
        }
        self.stack(f, "Allocated at", record.alloc)?;
        for (title, stack) in ["Reported at", "Reported again at"].into_iter().zip(record.reps) {
            if stack != CutStackId::NONE {
                self.stack(f, title, stack)?;
            }
        }
        f.write_str("}\n\n")
    }

    fn stack(&self, f: &mut fmt::Formatter<'_>, title: &str, stack: CutStackId) -> fmt::Result {
        writeln!(f, "  {title} {{")?;
        for (index, text) in self.analysis.frames(stack).enumerate() {
            // The number at the start of the text is a placeholder.
            writeln!(f, "    #{:02}{}", index + 1, CleanText(text.without_stand_in()))?;
        }
        f.write_str("  }\n")
    }

    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let analysis = self.analysis;
        if !self.is_dark_matter() {
            let Some(section) = analysis.sections.first() else { return Ok(()) };
            let mark = mark(section.estimated);
            let (bytes, num) = (number(section.sums.usable()), number(section.sums.num));
            return writeln!(f, "  Total: {mark}{bytes} bytes in {mark}{num} blocks");
        }
        for line in analysis.summary() {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }

    fn is_dark_matter(&self) -> bool {
        self.analysis.sections.len() > 1
    }
}

fn individual_sizes(f: &mut fmt::Formatter<'_>, sizes: &[(i128, i128)]) -> fmt::Result {
    if matches!(sizes, [(_, 1)]) {
        return Ok(());
    }
    f.write_str("  Individual block sizes: ")?;
    for (index, (size, count)) in sizes.iter().enumerate() {
        if index > 0 {
            f.write_str("; ")?;
        }
        f.write_str(&number(*size))?;
        if *count > 1 {
            write!(f, " x {}", number(*count))?;
        }
    }
    if sizes.is_empty() {
        f.write_str("(no change)")?;
    }
    f.write_str("\n")
}

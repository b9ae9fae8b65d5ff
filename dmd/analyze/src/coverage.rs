//! The share of the heap that reporters report, and whether they report a block twice.

mod suggest;

use core::fmt::{self, Display};
use std::collections::BTreeMap;
use std::path::Path;

use dmd_format::Mode;

use crate::dump::{Dump, DumpTime};
use crate::error::AnalyzeError;
use crate::print::{CleanText, blocks, mark, number, share};
use crate::records::{
    Analysis, AnalyzeOptions, BlockSums, RecordKind, ReportFault, ReporterClaims, TableKey,
};
#[cfg(feature = "symbols")]
use crate::symbolize::SymbolOptions;

pub use suggest::{SuggestedSite, Suggestion, Suggestions};

/// The parts of the heap that reporters reported once, twice, and never.
///
/// Its `Display` writes the text that `about-memory heap coverage` prints.
#[derive(Debug)]
#[non_exhaustive]
pub struct Coverage {
    /// The whole heap.
    pub total: BlockSums,
    /// Blocks that were reported once.
    pub once: BlockSums,
    /// Blocks that were reported twice or more.
    pub twice: BlockSums,
    /// Blocks that no reporter reported.
    pub unreported: BlockSums,
    /// The coverage of each crate or type, sorted descending by usable bytes. Blocks without a recorded stack are
    /// estimated: they are distributed over the stacks of similar blocks.
    pub modules: Vec<ModuleCoverage>,
    by: CoverageKey,
    at: DumpTime,
    /// Reported pointers that do not point to the start of a live block.
    pub faults: Vec<ReportFault>,
    claims: ReporterClaims,
}

/// The key by which [`Coverage`] divides the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CoverageKey {
    /// The crate of the innermost function on the allocation stack. Functions that
    /// [`FoldRules`](crate::program::FoldRules) fold do not count.
    #[default]
    Crate,
    /// The type of the blocks, from their allocation stack. If the stack names no type, the function that allocated the
    /// blocks.
    Type,
}

/// The blocks of one crate or type.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ModuleCoverage {
    /// The name of the crate or type.
    pub name: String,
    /// Blocks that were reported once.
    pub once: BlockSums,
    /// Blocks that were reported twice or more.
    pub twice: BlockSums,
    /// Blocks that no reporter reported.
    pub unreported: BlockSums,
    /// Whether the sums contain estimated shares of blocks without a stack.
    pub estimated: bool,
}

impl ModuleCoverage {
    /// All blocks of the crate or type.
    pub fn total(&self) -> BlockSums {
        let mut total = self.once;
        total.add(self.twice);
        total.add(self.unreported);
        total
    }
}

impl Coverage {
    /// Computes the coverage of a dump of dark-matter mode, by crate.
    ///
    /// # Errors
    ///
    /// Returns an error if the mode of the dump is not dark-matter.
    pub fn new(dump: Dump) -> Result<Self, AnalyzeError> {
        Self::by(dump, CoverageKey::Crate)
    }

    /// Computes the coverage of a dump of dark-matter mode, by the given key.
    ///
    /// # Errors
    ///
    /// Returns an error if the mode of the dump is not dark-matter.
    pub fn by(dump: Dump, by: CoverageKey) -> Result<Self, AnalyzeError> {
        if dump.mode() != Mode::DarkMatter {
            return Err(AnalyzeError::NotDarkMatter(dump.mode()));
        }
        let table = match by {
            CoverageKey::Crate => TableKey::Module,
            CoverageKey::Type => TableKey::Type,
        };
        let at = dump.shown;
        let options = AnalyzeOptions::new().by(table).estimate(true).limit(0).row_limit(usize::MAX);
        let analysis = Analysis::new(dump, &options);
        let mut parts: BTreeMap<&str, ModuleCoverage> = BTreeMap::new();
        for section in &analysis.sections {
            for row in section.tables.iter().flat_map(|table| &table.rows) {
                let part = parts.entry(&row.name).or_default();
                match section.kind {
                    RecordKind::TwiceReported => &mut part.twice,
                    RecordKind::OnceReported => &mut part.once,
                    _ => &mut part.unreported,
                }
                .add(row.sums);
                part.estimated |= row.estimated;
            }
        }
        let mut parts: Vec<ModuleCoverage> =
            parts.into_iter().map(|(name, part)| ModuleCoverage { name: name.to_owned(), ..part }).collect();
        parts.sort_by_key(|part| core::cmp::Reverse(part.total().usable()));
        Ok(Self {
            total: analysis.total(),
            once: analysis.sums(RecordKind::OnceReported),
            twice: analysis.sums(RecordKind::TwiceReported),
            unreported: analysis.sums(RecordKind::Unreported),
            modules: parts,
            by,
            at,
            claims: ReporterClaims::new(&analysis.reporters),
            faults: analysis.faults,
        })
    }

    /// The percentage of all usable bytes that were reported, once or more.
    pub fn reported_per_cent(&self) -> f64 {
        share(self.once.usable() + self.twice.usable(), self.total.usable())
    }

    /// The percentage of all usable bytes that were reported twice or more.
    pub fn twice_per_cent(&self) -> f64 {
        share(self.twice.usable(), self.total.usable())
    }
}

impl Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.total.usable();
        let at = if self.at == DumpTime::Peak { " at the peak" } else { "" };
        writeln!(f, "Coverage of {} bytes in {}{at} {{", number(whole), blocks(self.total.num))?;
        for (name, sums) in [
            ("Reported once:", self.once),
            ("Reported twice:", self.twice),
            ("Not reported:", self.unreported),
        ] {
            let usable = number(sums.usable());
            let share = share(sums.usable(), whole);
            writeln!(f, "  {name:<15} {share:6.2}%  {usable:>15} bytes in {}", blocks(sums.num))?;
        }
        let key = match self.by {
            CoverageKey::Crate => "module",
            CoverageKey::Type => "type",
        };
        writeln!(f, "}}\n\nBy {key} {{")?;
        writeln!(f, "  {:>16}  {:>7}  {:>7}  {:>7}", "bytes", "once", "twice", "not")?;
        for part in &self.modules {
            let whole = part.total().usable();
            let bytes = format!("{}{}", mark(part.estimated), number(whole));
            let of = |sums: BlockSums| format!("{:6.2}%", share(sums.usable(), whole));
            let (once, twice, not) = (of(part.once), of(part.twice), of(part.unreported));
            writeln!(f, "  {bytes:>16}  {once}  {twice}  {not}  {}", CleanText(&part.name))?;
        }
        f.write_str("}\n")?;
        for list in self.claims.lists() {
            if !list.reporters.is_empty() {
                write!(f, "\n{} {{\n{list}}}\n", list.title)?;
            }
        }
        if !self.faults.is_empty() {
            f.write_str("\nReported pointers without a live block {\n")?;
            self.faults.iter().try_for_each(|fault| writeln!(f, "  {fault}"))?;
            f.write_str("}\n")?;
        }
        Ok(())
    }
}

/// Asserts the coverage of a dump of dark-matter mode. The share of the heap's bytes that reporters report must be at
/// least the percentage after `>=`. The share that they report twice must be at most the percentage after `twice <=`.
/// Without `twice <=`, this share must be 0.
///
/// ```no_run
/// // The dump is from `report_and_dump` in this program, or from any program that ran under DMD.
/// dmd_analyze::assert_coverage!("dmd.json.gz", >= 95 %);
/// dmd_analyze::assert_coverage!("dmd.json.gz", >= 95.5 %, twice <= 1 %);
/// ```
///
/// # Panics
///
/// Panics if the reported share is too small, or if the share that is reported twice is too large. The message contains
/// the coverage by crate. Without the feature `symbols` of `dmd-analyze`, the addresses in a dump have no crates. Then
/// the message contains the coverage of the program and of each library.
///
/// Also panics if the file is not a valid dump of dark-matter mode.
#[macro_export]
macro_rules! assert_coverage {
    ($path:expr, >= $reported:literal %) => {
        $crate::__private::check($path.as_ref(), $reported as f64, 0.0)
    };
    ($path:expr, >= $reported:literal %, twice <= $twice:literal %) => {
        $crate::__private::check($path.as_ref(), $reported as f64, $twice as f64)
    };
}

/// Implements `assert_coverage!`. Panics if the coverage is out of the given bounds.
#[track_caller]
pub fn check(path: &Path, at_least: f64, twice: f64) {
    let coverage = crate::read(path).and_then(|dump| {
        #[cfg(feature = "symbols")]
        let dump = {
            let mut dump = dump;
            dump.symbolize(&SymbolOptions::new());
            dump
        };
        Coverage::new(dump)
    });
    let coverage = match coverage {
        Ok(coverage) => coverage,
        Err(error) => panic!("{}: {error}", path.display()),
    };
    let reported = coverage.reported_per_cent();
    assert!(
        reported >= at_least,
        "{reported:.2}% of the heap is reported, expected at least {at_least}%\n\n{coverage}"
    );
    let found = coverage.twice_per_cent();
    assert!(
        found <= twice,
        "{found:.2}% of the heap is reported twice, expected at most {twice}%\n\n{coverage}"
    );
}

//! The share of the heap that reporters report, and whether they report a block twice.

use core::fmt::{self, Display};
use std::collections::BTreeMap;
use std::path::Path;

use crate::amounts::{blocks, mark, number, share};
use crate::clean::Clean;
use crate::dump::{Dump, Reporter};
use crate::error::AnalyzeError;
use crate::mode::Mode;
use crate::options::{AnalyzeOptions, By};
use crate::records::{Analysis, RecordKind, Sums};
use crate::symbolize::SymbolOptions;

/// The parts of the heap that reporters reported once, twice, and not at all.
///
/// Its `Display` is what `about-memory coverage` prints.
#[derive(Debug)]
#[non_exhaustive]
pub struct Coverage {
    /// The whole heap.
    pub total: Sums,
    /// Blocks that were reported once.
    pub once: Sums,
    /// Blocks that were reported twice or more.
    pub twice: Sums,
    /// Blocks that no reporter reported.
    pub unreported: Sums,
    /// The same by crate, the largest first. The shares of blocks without a stack are estimates from those with one.
    pub modules: Vec<ModuleCoverage>,
    /// Reporters whose reported amount differs from the size of the blocks that they marked.
    differing: Vec<Reporter>,
}

/// The blocks that one crate allocated, or one file without a crate.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ModuleCoverage {
    /// The crate.
    pub name: String,
    /// Blocks that were reported once.
    pub once: Sums,
    /// Blocks that were reported twice or more.
    pub twice: Sums,
    /// Blocks that no reporter reported.
    pub unreported: Sums,
    /// The sums are estimates.
    pub estimated: bool,
}

impl ModuleCoverage {
    /// All blocks that the crate allocated.
    pub fn total(&self) -> Sums {
        let mut total = self.once;
        total.add(self.twice);
        total.add(self.unreported);
        total
    }
}

impl Coverage {
    /// Computes the coverage of a dump of dark-matter mode.
    ///
    /// # Errors
    ///
    /// If the dump is of another mode.
    pub fn new(mut dump: Dump) -> Result<Self, AnalyzeError> {
        if dump.mode() != Mode::DarkMatter {
            return Err(AnalyzeError::NotDarkMatter(dump.mode()));
        }
        let mut differing = core::mem::take(&mut dump.reporters);
        dump.reporters = differing.clone();
        differing.retain(|reporter| reporter.claimed != reporter.marked);
        let options = AnalyzeOptions::new().by(By::Module).estimate(true).limit(0).row_limit(usize::MAX);
        let analysis = Analysis::new(dump, &options);
        let mut modules: BTreeMap<&str, ModuleCoverage> = BTreeMap::new();
        for section in &analysis.sections {
            for row in section.tables.iter().flat_map(|table| &table.rows) {
                let module = modules.entry(&row.name).or_default();
                match section.kind {
                    RecordKind::TwiceReported => &mut module.twice,
                    RecordKind::OnceReported => &mut module.once,
                    _ => &mut module.unreported,
                }
                .add(row.sums);
                module.estimated |= row.estimated;
            }
        }
        let mut modules: Vec<ModuleCoverage> = modules
            .into_iter()
            .map(|(name, module)| ModuleCoverage { name: name.to_owned(), ..module })
            .collect();
        modules.sort_by_key(|module| core::cmp::Reverse(module.total().usable()));
        Ok(Self {
            total: analysis.total(),
            once: analysis.sums(RecordKind::OnceReported),
            twice: analysis.sums(RecordKind::TwiceReported),
            unreported: analysis.sums(RecordKind::Unreported),
            modules,
            differing,
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
        writeln!(f, "Coverage of {} bytes in {} {{", number(whole), blocks(self.total.num))?;
        for (name, sums) in [
            ("Reported once:", self.once),
            ("Reported twice:", self.twice),
            ("Not reported:", self.unreported),
        ] {
            let usable = number(sums.usable());
            let share = share(sums.usable(), whole);
            writeln!(f, "  {name:<15} {share:6.2}%  {usable:>15} bytes in {}", blocks(sums.num))?;
        }
        f.write_str("}\n\nBy module {\n")?;
        writeln!(f, "  {:>16}  {:>7}  {:>7}  {:>7}", "bytes", "once", "twice", "not")?;
        for module in &self.modules {
            let whole = module.total().usable();
            let bytes = format!("{}{}", mark(module.estimated), number(whole));
            let of = |sums: Sums| format!("{:6.2}%", share(sums.usable(), whole));
            let (once, twice, not) = (of(module.once), of(module.twice), of(module.unreported));
            writeln!(f, "  {bytes:>16}  {once}  {twice}  {not}  {}", Clean(&module.name))?;
        }
        f.write_str("}\n")?;
        if !self.differing.is_empty() {
            f.write_str("\nReporters that said another amount than that of the blocks they measured {\n")?;
            for Reporter { path, claimed, marked } in &self.differing {
                let (claimed, marked) = (number((*claimed).into()), number((*marked).into()));
                writeln!(f, "  {}: said {claimed}, measured {marked} bytes", Clean(path))?;
            }
            f.write_str("}\n")?;
        }
        Ok(())
    }
}

/// Asserts the coverage of a dump of dark-matter mode: the reporters report at least the given percentage of the
/// heap's bytes, and report nothing twice (or at most the percentage after `twice <=`).
///
/// ```no_run
/// // `report_and_dump` in this program, or any DMD, wrote it.
/// dmd_analyze::assert_coverage!("dmd.json.gz", >= 95 %);
/// dmd_analyze::assert_coverage!("dmd.json.gz", >= 95.5 %, twice <= 1 %);
/// ```
///
/// # Panics
///
/// If the reporters report less, or report more twice; the message contains the coverage by module. Also if the file
/// is not a valid dump.
#[macro_export]
macro_rules! assert_coverage {
    ($path:expr, >= $reported:literal %) => {
        $crate::__private::check($path.as_ref(), $reported as f64, 0.0)
    };
    ($path:expr, >= $reported:literal %, twice <= $twice:literal %) => {
        $crate::__private::check($path.as_ref(), $reported as f64, $twice as f64)
    };
}

/// Implements `assert_coverage!`.
#[track_caller]
pub fn check(path: &Path, at_least: f64, twice: f64) {
    let coverage = crate::read(path).and_then(|mut dump| {
        dump.symbolize(&SymbolOptions::new());
        Coverage::new(dump)
    });
    let coverage = match coverage {
        Ok(coverage) => coverage,
        Err(error) => panic!("{}: {error}", path.display()),
    };
    let reported = coverage.reported_per_cent();
    assert!(
        reported >= at_least,
        "{reported:.2}% of the heap is reported, expected {at_least}%\n\n{coverage}"
    );
    let found = coverage.twice_per_cent();
    assert!(found <= twice, "{found:.2}% of the heap is reported twice, expected {twice}%\n\n{coverage}");
}

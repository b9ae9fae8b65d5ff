//! Reporters whose amounts differ from the blocks that they marked.

use core::fmt::{self, Display};

use crate::dump::ReporterAmounts;
use crate::print::{CleanText, number};

/// The reporters of a dump whose amounts differ from the blocks that they marked.
#[derive(Debug, Default)]
pub(crate) struct ReporterClaims {
    /// Reporters that reported an amount without marking blocks.
    by_amount: Vec<ReporterAmounts>,
    /// Reporters that marked blocks, and reported less or more than the blocks' bytes.
    partial: Vec<ReporterAmounts>,
}

impl ReporterClaims {
    pub(crate) fn new(reporters: &[ReporterAmounts]) -> Self {
        let differing = reporters.iter().filter(|reporter| reporter.claimed != reporter.marked).cloned();
        let (by_amount, partial) = differing.partition(|reporter| reporter.marked == 0);
        Self { by_amount, partial }
    }

    /// Both lists, each with its title.
    pub(crate) fn lists(&self) -> [ClaimList<'_>; 2] {
        [
            ClaimList { title: "Reported by amount, blocks unknown", reporters: &self.by_amount },
            ClaimList {
                title: "Partially reported: reporters whose amount differs from the blocks that they measured",
                reporters: &self.partial,
            },
        ]
    }
}

/// Reporters with their amounts.
pub(crate) struct ClaimList<'a> {
    pub(crate) title: &'static str,
    pub(crate) reporters: &'a [ReporterAmounts],
}

/// Writes a line for each reporter.
impl Display for ClaimList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ReporterAmounts { path, claimed, marked } in self.reporters {
            let (claimed, path) = (number((*claimed).into()), CleanText(path));
            match *marked {
                0 => writeln!(f, "  {path}: {claimed} bytes")?,
                marked => {
                    writeln!(f, "  {path}: reported {claimed}, measured {} bytes", number(marked.into()))?;
                }
            }
        }
        Ok(())
    }
}

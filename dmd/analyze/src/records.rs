//! Groups blocks by the texts of their stacks. A record is one group.
//!
//! A difference is the second dump minus the first dump: the blocks of the first dump count negative. In all other
//! respects, a difference is analyzed like one dump.

mod blocks;
mod claims;
mod cut;
mod estimate;
mod grouping;
mod groups;
mod options;
mod report_faults;
mod reporter_names;
mod selection;
mod sizes;
mod stacks;
mod tables;

use std::sync::Arc;

use dmd_format::Mode;

use crate::dump::{
    ByteSample, Dump, DumpBlock, DumpTime, EngineMemory, FrameText, FrameTexts, ReporterAmounts,
};
use crate::error::AnalyzeError;
use crate::names::TypeVerdict;
use grouping::BlockGrouping;
use stacks::CutStackTable;

pub use blocks::BlockEntry;
pub use options::{AnalyzeOptions, RecordOrder, StackFilter, TableKey};
pub use report_faults::ReportFault;

pub(crate) use claims::ReporterClaims;
pub(crate) use grouping::NO_STACK;
pub(crate) use reporter_names::{SMALL, kind_name, reporter, reporter_name};
pub(crate) use stacks::CutStackId;
pub(crate) use tables::{RecordTable, TableRow};

/// The kind of blocks in a section of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RecordKind {
    /// Live blocks.
    Live,
    /// All blocks ever allocated.
    Cumulative,
    /// Blocks reported twice or more.
    TwiceReported,
    /// Blocks that no reporter reported.
    Unreported,
    /// Blocks reported once.
    OnceReported,
}

impl RecordKind {
    /// The title of the section.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "Live",
            Self::Cumulative => "Cumulative",
            Self::TwiceReported => "Twice-reported",
            Self::Unreported => "Unreported",
            Self::OnceReported => "Once-reported",
        }
    }

    pub(crate) fn for_mode(mode: Mode) -> &'static [Self] {
        match mode {
            Mode::Cumulative => &[Self::Cumulative],
            Mode::DarkMatter => &[Self::TwiceReported, Self::Unreported, Self::OnceReported],
            _ => &[Self::Live],
        }
    }
}

/// Numbers of blocks and bytes. In a difference, a number is negative if it is smaller in the second dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockSums {
    /// The number of blocks.
    pub num: i128,
    /// Requested bytes.
    pub req: i128,
    /// Usable bytes that were not requested.
    pub slop: i128,
    /// Usable bytes that are swapped out. 0 if the dump does not have them: see [`Dump::check_resident`].
    pub swapped: i128,
    /// Usable bytes without memory: the program has not written them, or has given them back. 0 if the dump does not
    /// have them.
    pub untouched: i128,
}

impl BlockSums {
    /// Usable bytes in memory, if the dump has them: see [`Dump::check_resident`].
    pub fn resident(&self) -> i128 {
        self.usable() - self.swapped - self.untouched
    }

    /// Whether there are neither blocks nor bytes.
    pub(crate) fn is_empty(&self) -> bool {
        (self.num, self.req, self.slop) == (0, 0, 0)
    }

    /// Requested bytes and slop.
    pub fn usable(&self) -> i128 {
        self.req + self.slop
    }

    /// The sums of all blocks of a dump's entry.
    pub(crate) fn from_block(block: &DumpBlock) -> Self {
        let num = i128::from(block.num);
        if block.weight == 1.0 {
            return Self {
                num,
                req: num * i128::from(block.req),
                slop: num * i128::from(block.slop),
                swapped: block.swapped.into(),
                untouched: block.untouched.into(),
            };
        }
        let weighed = block.num as f64 * block.weight;
        let rounded = |size: u64| (weighed * size as f64).round() as i128;
        let absent = |bytes: u64| (block.weight * bytes as f64).round() as i128;
        Self {
            num: rounded(1),
            req: rounded(block.req),
            slop: rounded(block.slop),
            swapped: absent(block.swapped),
            untouched: absent(block.untouched),
        }
    }

    fn times(self, factor: i128) -> Self {
        Self {
            num: factor * self.num,
            req: factor * self.req,
            slop: factor * self.slop,
            swapped: factor * self.swapped,
            untouched: factor * self.untouched,
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.num += other.num;
        self.req += other.req;
        self.slop += other.slop;
        self.swapped += other.swapped;
        self.untouched += other.untouched;
    }

    pub(crate) fn subtract(&mut self, other: Self) {
        self.add(other.times(-1));
    }
}

/// Blocks with the same stacks.
#[derive(Clone, Debug)]
pub(crate) struct StackRecord {
    pub(crate) sums: BlockSums,
    /// Whether the amounts are estimates.
    pub(crate) estimated: bool,
    pub(crate) alloc: CutStackId,
    pub(crate) reps: [CutStackId; 2],
    /// The indices of the reporters in [`Analysis::reporters`], if the options separate reporters.
    pub(crate) reporters: [u32; 2],
    /// Pairs of a usable size and its count, sorted descending by size. In a difference, a size is negative if the
    /// second dump has fewer blocks of this size. Empty if sizes are means, except for a record of one block.
    pub(crate) sizes: Vec<(i128, i128)>,
    /// The addresses of all blocks; empty except in scan mode.
    pub(crate) addresses: Vec<u64>,
}

/// All records of a kind.
#[derive(Debug)]
pub(crate) struct KindSection {
    pub(crate) kind: RecordKind,
    /// The records, sorted; at most [`AnalyzeOptions::limit`].
    pub(crate) records: Vec<StackRecord>,
    /// The number of records without filters and limit.
    pub(crate) all: usize,
    /// The number of records with filters, without the limit.
    pub(crate) kept: usize,
    /// The sums of all records that pass the filters.
    pub(crate) sums: BlockSums,
    /// Whether the sums are estimates.
    pub(crate) estimated: bool,
    /// The tables that the options request.
    pub(crate) tables: Vec<RecordTable>,
}

/// A dump's `$DMD` and mode, and its measurements of DMD itself.
#[derive(Debug)]
pub(crate) struct DumpInvocation {
    pub(crate) variable: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) at: DumpTime,
    /// Whether the size of each block is the mean size of its stack's blocks: DMD keeps only sums of the peak.
    pub(crate) has_means: bool,
    /// Whether the dump has the resident bytes of its blocks.
    pub(crate) has_resident: bool,
    pub(crate) measurements: EngineMemory,
    pub(crate) sample: Option<ByteSample>,
}

impl DumpInvocation {
    fn new(dump: &Dump) -> Self {
        let Dump { variable, mode, shown, measurements, sample, has_means, .. } = dump;
        Self {
            variable: variable.clone(),
            mode: *mode,
            at: *shown,
            has_resident: dump.check_resident().is_ok(),
            has_means: *has_means,
            measurements: measurements.clone(),
            sample: *sample,
        }
    }
}

/// The records of a dump, or of the difference of two dumps.
#[derive(Debug)]
pub struct Analysis {
    pub(crate) invocations: Vec<DumpInvocation>,
    pub(crate) sections: Vec<KindSection>,
    /// The whole heap, without filters.
    pub(crate) total: BlockSums,
    /// Whether the total is an estimate.
    pub(crate) estimated: bool,
    pub(crate) stacks: CutStackTable,
    pub(crate) texts: FrameTexts,
    /// The type of the blocks of each stack. Empty unless the options request types.
    types: Vec<Option<Arc<TypeVerdict>>>,
    /// The reporters, each with its reported amount and its measured amount.
    pub(crate) reporters: Vec<ReporterAmounts>,
    /// Reported pointers that do not point to the start of a live block. A difference has the pointers of the later dump.
    pub(crate) faults: Vec<ReportFault>,
}

impl Analysis {
    /// Groups the blocks of a dump.
    pub fn new(dump: Dump, options: &AnalyzeOptions) -> Self {
        let mut grouping = BlockGrouping::new(dump.mode, options);
        let invocation = DumpInvocation::new(&dump);
        grouping.add(dump, 1);
        grouping.finish(vec![invocation])
    }

    /// Returns the analysis of a dump, and the stack of each of the dump's blocks.
    pub(crate) fn with_block_stacks(mut dump: Dump, options: &AnalyzeOptions) -> (Self, Vec<CutStackId>) {
        let mut grouping = BlockGrouping::new(dump.mode, options);
        let (cut, _, no_stack) = grouping.add_stacks(&mut dump);
        let stack = |block: &DumpBlock| block.alloc.index().map_or(no_stack, |index| cut.stacks[index]);
        let of_blocks = dump.blocks.iter().map(stack).collect();
        (grouping.finish(vec![DumpInvocation::new(&dump)]), of_blocks)
    }

    /// Groups the blocks of `second` minus the blocks of `first`.
    ///
    /// # Errors
    ///
    /// Returns an error if the dumps have different modes (live and scan count as the same).
    pub fn difference(first: Dump, second: Dump, options: &AnalyzeOptions) -> Result<Self, AnalyzeError> {
        // At the peak, one dump may have reports and the other dump may have none. Then compare them without reports.
        let is_peak = [&first, &second].iter().any(|dump| dump.shown == DumpTime::Peak);
        let (first, second) = match is_peak && first.mode != second.mode {
            true => (first.without_reports(), second.without_reports()),
            false => (first, second),
        };
        let as_live = |mode| if mode == Mode::Scan { Mode::Live } else { mode };
        if as_live(first.mode) != as_live(second.mode) {
            return Err(AnalyzeError::DifferentModes(first.mode, second.mode));
        }
        let invocations = vec![DumpInvocation::new(&first), DumpInvocation::new(&second)];
        let mut grouping = BlockGrouping::new(first.mode, options);
        grouping.add(first, -1);
        grouping.add(second, 1);
        Ok(grouping.finish(invocations))
    }

    /// The sample by bytes; `None` for a dump that is not a sample, and for a difference.
    pub(crate) fn sample(&self) -> Option<&ByteSample> {
        match &*self.invocations {
            [only] => only.sample.as_ref(),
            _ => None,
        }
    }

    /// Whether only the mean size of a stack's blocks is known.
    pub(crate) fn has_means(&self) -> bool {
        self.invocations.iter().any(|invocation| invocation.has_means)
    }

    /// Whether a dump shows the peak.
    pub(crate) fn is_at_peak(&self) -> bool {
        self.invocations.iter().any(|invocation| invocation.at == DumpTime::Peak)
    }

    /// Whether the resident bytes of all blocks are known.
    pub(crate) fn has_resident(&self) -> bool {
        self.invocations.iter().all(|invocation| invocation.has_resident)
    }

    /// Blocks and bytes of the whole heap, without filters.
    pub fn total(&self) -> BlockSums {
        self.total
    }

    /// Blocks and bytes of a kind that pass the filters.
    pub fn sums(&self, kind: RecordKind) -> BlockSums {
        self.sections.iter().find(|section| section.kind == kind).map(|s| s.sums).unwrap_or_default()
    }

    /// Whether no record passes the filters, for example because the dump is empty, or because a difference has no
    /// changes.
    pub fn is_empty(&self) -> bool {
        self.sections.iter().all(|section| section.kept == 0)
    }

    /// The type of a stack's blocks. `None` if the options did not request types, or if the stack was not recorded.
    pub(crate) fn type_of(&self, stack: CutStackId) -> Option<&TypeVerdict> {
        self.types.get(stack.index())?.as_deref()
    }

    pub(crate) fn has_types(&self) -> bool {
        !self.types.is_empty()
    }

    pub(crate) fn frames(&self, stack: CutStackId) -> impl Iterator<Item = FrameText<'_>> {
        self.stacks.get(stack).iter().map(|text| self.texts.get(*text))
    }
}

//! Groups blocks by the texts of their stacks. A record is one group.
//!
//! A difference is the second dump minus the first: the blocks of the first dump count negative. All else is the
//! same.

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

use crate::dump::{At, Block, Dump, FrameText, Measurements, Reporter, Sample, Texts};
use crate::error::AnalyzeError;
use crate::names::Verdict;
use grouping::Grouping;
use stacks::Stacks;

pub use blocks::Blocks;
pub use options::{AnalyzeOptions, By, Filter, SortBy};
pub use report_faults::ReportFault;

pub(crate) use claims::ReporterClaims;
pub(crate) use grouping::NO_STACK;
pub(crate) use reporter_names::{SMALL, kind_name, reporter, reporter_name};
pub(crate) use stacks::StackId;
pub(crate) use tables::{Row, Table};

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

    pub(crate) fn of_mode(mode: Mode) -> &'static [Self] {
        match mode {
            Mode::Cumulative => &[Self::Cumulative],
            Mode::DarkMatter => &[Self::TwiceReported, Self::Unreported, Self::OnceReported],
            _ => &[Self::Live],
        }
    }
}

/// Numbers of blocks and bytes. They are negative if a difference has fewer than before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sums {
    /// The number of blocks.
    pub num: i128,
    /// Requested bytes.
    pub req: i128,
    /// Usable bytes that were not requested.
    pub slop: i128,
}

impl Sums {
    /// Requested bytes and slop.
    pub fn usable(&self) -> i128 {
        self.req + self.slop
    }

    /// The sums of all blocks of an entry.
    pub(crate) fn of(block: &Block) -> Self {
        let num = i128::from(block.num);
        if block.weight == 1.0 {
            return Self { num, req: num * i128::from(block.req), slop: num * i128::from(block.slop) };
        }
        let weighed = block.num as f64 * block.weight;
        let rounded = |size: u64| (weighed * size as f64).round() as i128;
        Self { num: rounded(1), req: rounded(block.req), slop: rounded(block.slop) }
    }

    fn times(self, factor: i128) -> Self {
        Self { num: factor * self.num, req: factor * self.req, slop: factor * self.slop }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.num += other.num;
        self.req += other.req;
        self.slop += other.slop;
    }
}

/// Blocks with the same stacks.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) sums: Sums,
    /// The amounts are estimates.
    pub(crate) estimated: bool,
    pub(crate) alloc: StackId,
    pub(crate) reps: [StackId; 2],
    /// The indices of the reporters in [`Analysis::reporters`], if the options keep them apart.
    pub(crate) reporters: [u32; 2],
    /// Usable sizes with their counts, descending by size. A size with fewer blocks than before is negative.
    pub(crate) sizes: Vec<(i128, i128)>,
    /// The addresses of all blocks. Scan mode only.
    pub(crate) addresses: Vec<u64>,
}

/// All records of a kind.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) kind: RecordKind,
    /// Sorted; at most [`AnalyzeOptions::limit`] records.
    pub(crate) records: Vec<Record>,
    /// The number of records without filters and limit.
    pub(crate) all: usize,
    /// The number of records without the limit.
    pub(crate) kept: usize,
    /// The sums of all records that the filters keep.
    pub(crate) sums: Sums,
    /// The sums are estimates.
    pub(crate) estimated: bool,
    /// The tables that the options request.
    pub(crate) tables: Vec<Table>,
}

/// A dump's `$DMD` and mode, and its measurements of DMD itself.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) variable: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) at: At,
    pub(crate) measurements: Measurements,
    pub(crate) sample: Option<Sample>,
}

impl Invocation {
    fn of(dump: &Dump) -> Self {
        let Dump { variable, mode, shown, measurements, sample, .. } = dump;
        Self {
            variable: variable.clone(),
            mode: *mode,
            at: *shown,
            measurements: measurements.clone(),
            sample: *sample,
        }
    }
}

/// The records of a dump, or of the difference of two.
#[derive(Debug)]
pub struct Analysis {
    pub(crate) invocations: Vec<Invocation>,
    pub(crate) sections: Vec<Section>,
    /// The whole heap, without filters.
    pub(crate) total: Sums,
    /// The total is an estimate.
    pub(crate) estimated: bool,
    pub(crate) stacks: Stacks,
    pub(crate) texts: Texts,
    /// The type of the blocks of each stack. Empty unless the options request types.
    types: Vec<Option<Arc<Verdict>>>,
    /// The reporters, with the amounts that they said and measured.
    pub(crate) reporters: Vec<Reporter>,
    /// Reports of pointers that are not those of live blocks. A difference has those of the later dump.
    pub(crate) faults: Vec<ReportFault>,
}

impl Analysis {
    /// Groups the blocks of a dump.
    pub fn new(dump: Dump, options: &AnalyzeOptions) -> Self {
        let mut grouping = Grouping::new(dump.mode, options);
        let invocation = Invocation::of(&dump);
        grouping.add(dump, 1);
        grouping.finish(vec![invocation])
    }

    /// The stacks of a dump, and which of them each block of the dump has.
    pub(crate) fn of_stacks(mut dump: Dump, options: &AnalyzeOptions) -> (Self, Vec<StackId>) {
        let mut grouping = Grouping::new(dump.mode, options);
        let (cut, _, no_stack) = grouping.add_stacks(&mut dump);
        let stack = |block: &Block| block.alloc.index().map_or(no_stack, |index| cut.stacks[index]);
        let of_blocks = dump.blocks.iter().map(stack).collect();
        (grouping.finish(vec![Invocation::of(&dump)]), of_blocks)
    }

    /// Groups the blocks of `second` minus those of `first`.
    ///
    /// # Errors
    ///
    /// If the dumps have different modes (live and scan count as the same).
    pub fn difference(first: Dump, second: Dump, options: &AnalyzeOptions) -> Result<Self, AnalyzeError> {
        let as_live = |mode| if mode == Mode::Scan { Mode::Live } else { mode };
        if as_live(first.mode) != as_live(second.mode) {
            return Err(AnalyzeError::DifferentModes(first.mode, second.mode));
        }
        let invocations = vec![Invocation::of(&first), Invocation::of(&second)];
        let mut grouping = Grouping::new(first.mode, options);
        grouping.add(first, -1);
        grouping.add(second, 1);
        Ok(grouping.finish(invocations))
    }

    /// The sample that the dump is, if DMD recorded with `--sample-bytes`; `None` for a difference.
    pub(crate) fn sample(&self) -> Option<&Sample> {
        match &*self.invocations {
            [only] => only.sample.as_ref(),
            _ => None,
        }
    }

    /// Blocks and bytes of the whole heap, without filters.
    pub fn total(&self) -> Sums {
        self.total
    }

    /// Blocks and bytes of a kind that the filters keep.
    pub fn sums(&self, kind: RecordKind) -> Sums {
        self.sections.iter().find(|section| section.kind == kind).map(|s| s.sums).unwrap_or_default()
    }

    /// Whether there is no record: the dump has no blocks, or a difference no changes.
    pub fn is_empty(&self) -> bool {
        self.sections.iter().all(|section| section.kept == 0)
    }

    /// The type of a stack's blocks, if the options requested types and the stack was recorded.
    pub(crate) fn type_of(&self, stack: StackId) -> Option<&Verdict> {
        self.types.get(stack.index())?.as_deref()
    }

    pub(crate) fn has_types(&self) -> bool {
        !self.types.is_empty()
    }

    pub(crate) fn frames(&self, stack: StackId) -> impl Iterator<Item = FrameText<'_>> {
        self.stacks.get(stack).iter().map(|text| self.texts.get(*text))
    }
}

//! Blocks grouped by the texts of their stacks, as records are shown.
//!
//! A difference is the second dump minus the first: the blocks of the first count negative, all else
//! is the same.

mod estimate;
mod grouping;
mod tables;

use super::dump::{Dump, Mode};
use super::error::AnalyzeError;
use super::measurements::Measurements;
use super::options::AnalyzeOptions;
use super::stacks::{StackId, Stacks};
use super::texts::{FrameId, Texts};
use grouping::Grouping;

pub(super) use grouping::NO_STACK;
pub(super) use tables::{Row, Table};

/// What a section of records is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RecordKind {
    /// Live blocks.
    Live,
    /// All blocks ever allocated.
    Cumulative,
    /// Blocks reported twice or more.
    TwiceReported,
    /// Blocks that nobody reported.
    Unreported,
    /// Blocks reported once.
    OnceReported,
}

impl RecordKind {
    /// As a section is headed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "Live",
            Self::Cumulative => "Cumulative",
            Self::TwiceReported => "Twice-reported",
            Self::Unreported => "Unreported",
            Self::OnceReported => "Once-reported",
        }
    }

    pub(super) fn of_mode(mode: Mode) -> &'static [Self] {
        match mode {
            Mode::Live | Mode::Scan => &[Self::Live],
            Mode::Cumulative => &[Self::Cumulative],
            Mode::DarkMatter => &[Self::TwiceReported, Self::Unreported, Self::OnceReported],
        }
    }
}

/// Blocks and bytes; negative where a difference took some away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sums {
    /// Blocks.
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

    pub(super) fn add(&mut self, other: Self) {
        self.num += other.num;
        self.req += other.req;
        self.slop += other.slop;
    }
}

/// Blocks with the same stacks.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) sums: Sums,
    /// Its amounts are estimates.
    pub(super) estimated: bool,
    pub(super) alloc: StackId,
    pub(super) reps: [StackId; 2],
    /// Usable size and count, descending by size; a size with fewer blocks than before is negative.
    pub(super) sizes: Vec<(i128, i128)>,
    /// Scan mode only: of all blocks.
    pub(super) addresses: Vec<u64>,
}

/// All records of a kind.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) kind: RecordKind,
    /// Sorted, no more than the limit.
    pub(super) records: Vec<Record>,
    /// How many there are without filters and limit.
    pub(super) all: usize,
    /// How many there are without limit.
    pub(super) kept: usize,
    /// Of all that filters keep.
    pub(super) sums: Sums,
    /// The sums are estimates.
    pub(super) estimated: bool,
    /// As asked for.
    pub(super) tables: Vec<Table>,
}

/// Blocks with the same stacks, without what only a shown record has.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) sums: Sums,
    pub(super) estimated: bool,
    /// Stand-ins for smaller blocks are in it.
    pub(super) sampled: bool,
    pub(super) alloc: StackId,
    pub(super) reps: [StackId; 2],
}

/// A dump's `$DMD` and mode, and what it says of DMD itself.
#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) variable: Option<String>,
    pub(super) mode: Mode,
    pub(super) measurements: Measurements,
}

impl Invocation {
    fn of(dump: &Dump) -> Self {
        let Dump { variable, mode, measurements, .. } = dump;
        Self { variable: variable.clone(), mode: *mode, measurements: measurements.clone() }
    }
}

/// The records of a dump, or of the difference of two.
#[derive(Debug)]
pub struct Analysis {
    pub(super) invocations: Vec<Invocation>,
    pub(super) sections: Vec<Section>,
    /// The whole heap, whatever filters say.
    pub(super) total: Sums,
    /// The total is an estimate.
    pub(super) estimated: bool,
    pub(super) stacks: Stacks,
    pub(super) texts: Texts,
}

impl Analysis {
    /// Groups the blocks of a dump.
    pub fn new(dump: Dump, options: &AnalyzeOptions) -> Self {
        let mut grouping = Grouping::new(dump.mode, options);
        let invocation = Invocation::of(&dump);
        grouping.add(dump, 1);
        grouping.finish(vec![invocation])
    }

    /// Groups the blocks of `second`, and takes those of `first` away.
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

    /// Blocks and bytes of the whole heap, whatever filters say.
    pub fn total(&self) -> Sums {
        self.total
    }

    /// Blocks and bytes of a kind, as far as filters keep them.
    pub fn sums(&self, kind: RecordKind) -> Sums {
        self.sections.iter().find(|section| section.kind == kind).map(|s| s.sums).unwrap_or_default()
    }

    pub(super) fn frames(&self, stack: StackId) -> impl Iterator<Item = &str> {
        self.stacks.get(stack).iter().map(|frame: &FrameId| self.texts.get(*frame))
    }
}

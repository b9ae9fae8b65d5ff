//! A dump for the author of a Rust program: each record starts at the place in the program, frames that say nothing
//! about the program are folded, and names are short.
//!
//! Firefox's dumps are shown with the text of `dmd.py` instead.

mod alike;
mod black_box;
mod change;
mod chart;
mod closure;
mod growth;
mod heap_blocks;
mod history;
mod holder;
mod leaks;
mod line;
mod mapping_caller;
mod node;
mod overview;
mod resident_memory;
mod short_name;
mod stack_path;
mod stack_rows;
mod stack_text;
mod summary;
mod text;
mod timeline;
mod tree;

pub use crate::dump::{MemoryArea, MemoryByOwner, MemoryOwner};
pub use crate::names::{FoldReason, FoldRules, Workspace};
pub use change::{BeforeAfter, HeapChange};
pub use growth::{GrowthJson, GrowthText, HeapGrowth};
pub use heap_blocks::{BlocksOfKind, BlocksOfReporter, HeapBlocks};
pub use history::{HistoryJson, HistoryText, UsageHistory};
pub use holder::HolderKey;
pub use leaks::{LeakOptions, Leaks, LeaksJson, LeaksText, OneTime};
pub use line::bytes;
pub use overview::HeapOverview;
pub use resident_memory::{ResidentMemory, ResidentOwner, ResidentRow, UntouchedSite};
pub use stack_rows::{RowFrame, StackRow, StackRows};
pub use summary::{HeapSummary, SummaryRow, SummaryTable};
pub use text::ProgramText;
pub use timeline::{TimeCell, TimeStep, Timeline, TimelineOptions};
pub use tree::HolderTree;

/// Options of a view that shows a dump to the author of the program.
#[derive(Debug)]
pub struct ProgramOptions {
    pub(crate) folds: FoldRules,
    pub(crate) all_frames: bool,
    pub(crate) verbose: bool,
    pub(crate) resident: bool,
    pub(crate) colour: bool,
    pub(crate) width: usize,
}

impl Default for ProgramOptions {
    fn default() -> Self {
        Self {
            folds: FoldRules::new(),
            all_frames: false,
            verbose: false,
            resident: false,
            colour: false,
            width: 100,
        }
    }
}

impl ProgramOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the rules for folded frames. Default: the built-in rules.
    #[must_use]
    pub fn folds(mut self, folds: FoldRules) -> Self {
        self.folds = folds;
        self
    }

    /// Sets whether to also show folded frames. Default: no.
    #[must_use]
    pub fn all_frames(mut self, all_frames: bool) -> Self {
        self.all_frames = all_frames;
        self
    }

    /// Sets whether to show whole names and paths, whatever the length of the line. Default: no.
    #[must_use]
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }

    /// Sets whether to show the resident, swapped and untouched bytes of blocks, if the dump has them. Default: no.
    #[must_use]
    pub fn resident(mut self, resident: bool) -> Self {
        self.resident = resident;
        self
    }

    /// Sets whether to use a terminal's colours. Default: no.
    #[must_use]
    pub fn colour(mut self, colour: bool) -> Self {
        self.colour = colour;
        self
    }

    /// Sets the number of columns of a line. Default: 100.
    #[must_use]
    pub fn width(mut self, width: usize) -> Self {
        self.width = width;
        self
    }
}

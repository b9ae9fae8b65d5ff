//! A dump as the author of a Rust program reads it: each record starts at the place in the program, frames that say
//! nothing about the program are folded, and names are short.
//!
//! Firefox's dumps have the text of `dmd.py` instead.

mod change;
mod chart;
mod closure;
mod heap_blocks;
mod history;
mod holder;
mod leaks;
mod line;
mod node;
mod overview;
mod short_name;
mod stack_path;
mod stack_rows;
mod stack_text;
mod summary;
mod text;
mod timeline;
mod tree;

pub use crate::names::{FoldReason, FoldRules, Workspace};
pub use change::{BeforeAfter, HeapChange};
pub use heap_blocks::{BlocksOfKind, BlocksOfReporter, HeapBlocks};
pub use history::{HistoryJson, HistoryText, UsageHistory};
pub use holder::HolderKey;
pub use leaks::{LeakOptions, Leaks, LeaksJson, LeaksText, OneTime};
pub use line::bytes;
pub use overview::HeapOverview;
pub use stack_rows::{RowFrame, StackRow, StackRows};
pub use summary::{HeapSummary, SummaryRow, SummaryTable};
pub use text::ProgramText;
pub use timeline::{TimeCell, TimeStep, Timeline, TimelineOptions};
pub use tree::HolderTree;

/// How a view shows a dump to the author of the program.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProgramOptions {
    /// The frames that the view folds. Default: those of the table.
    pub folds: FoldRules,
    /// Show folded frames too. Default: no.
    pub all_frames: bool,
    /// Show whole names and paths, however long a line gets. Default: no.
    pub verbose: bool,
    /// Use a terminal's colours. Default: no.
    pub colour: bool,
    /// The number of columns of a line. Default: 100.
    pub width: usize,
}

impl Default for ProgramOptions {
    fn default() -> Self {
        Self { folds: FoldRules::new(), all_frames: false, verbose: false, colour: false, width: 100 }
    }
}

impl ProgramOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
}

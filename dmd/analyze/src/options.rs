//! What is asked of an analysis.

use crate::frame::FrameText;

/// What records are sorted by, descending by absolute value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SortBy {
    /// Usable bytes: requested ones and slop.
    #[default]
    Usable,
    /// Requested bytes.
    Req,
    /// Bytes that nobody requested.
    Slop,
    /// Blocks, then usable bytes.
    NumBlocks,
}

/// What blocks are grouped by in a table, besides in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum By {
    /// Each frame of their allocation stack: a block counts once for each. The records of 2013.
    Frame,
    /// The crate (or, without its name, the file) of the innermost frame that is no allocator's.
    Module,
    /// The path of who reported them, or, where a dump names none, the function that did.
    Reporter,
    /// Their usable size, up to the next power of two.
    Size,
}

/// A text that must be, or must not be, in a line of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    text: String,
    without: bool,
}

impl Filter {
    /// As `dmd.py` writes it: `!TEXT` is for stacks without it, and `\TEXT` takes the text as it is.
    pub fn new(filter: &str) -> Self {
        let (text, without) = match (filter.strip_prefix('!'), filter.strip_prefix('\\')) {
            (Some(text), _) => (text, true),
            (None, Some(text)) => (text, false),
            (None, None) => (filter, false),
        };
        Self { text: text.to_owned(), without }
    }

    /// Whether it keeps the stacks with these frames, each with its number in its stack. Their lines are
    /// looked at as they are printed.
    pub(crate) fn keeps<'t>(&self, mut frames: impl Iterator<Item = (usize, FrameText<'t>)>) -> bool {
        let text = &*self.text;
        // Otherwise no number can be a part of it.
        let with_number = text.starts_with(|c: char| c == ' ' || c == '#' || c.is_ascii_digit());
        let has = |(number, frame): (usize, FrameText<'_>)| {
            let rest = frame.without_stand_in();
            rest.contains(text) || (with_number && format!("    #{number:02}{rest}").contains(text))
        };
        frames.any(has) != self.without
    }
}

/// How a dump is analyzed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnalyzeOptions {
    /// What records are sorted by. Default: usable bytes.
    pub sort_by: SortBy,
    /// Frames kept of each stack. Records are compared by these. Default: 8.
    pub max_frames: usize,
    /// Frames of allocators are dropped from the start of each stack, before it is cut: those that
    /// `dmd.py` knows, and in a dump of this crate also those of Rust's libraries. Default: no.
    pub ignore_alloc_fns: bool,
    /// Records are kept whose allocation stack all of these keep. Default: none.
    pub filters: Vec<Filter>,
    /// Records are kept whose report stacks, taken together, all of these keep. Default: none.
    pub report_filters: Vec<Filter>,
    /// Records of each kind that are shown. Default: 999, as `dmd.py` has it.
    pub limit: usize,
    /// What differs from run to run is replaced: a stack with three frames of DMD is one line, and
    /// addresses are all the same. Default: no.
    pub for_testing: bool,
    /// Tables that are made besides the records. Default: none.
    pub by: Vec<By>,
    /// Rows of each table that are shown. Default: 999.
    pub row_limit: usize,
    /// Blocks without a stack (partial mode records one for a part of the small blocks only) are added to
    /// the records of blocks with one: of the same reports, and of about the same size. Default: no.
    pub estimate: bool,
}

impl Default for AnalyzeOptions {
    fn default() -> Self {
        Self {
            sort_by: SortBy::Usable,
            max_frames: 8,
            ignore_alloc_fns: false,
            filters: Vec::new(),
            report_filters: Vec::new(),
            limit: 999,
            for_testing: false,
            by: Vec::new(),
            row_limit: 999,
            estimate: false,
        }
    }
}

impl AnalyzeOptions {
    /// The defaults of `dmd.py`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`sort_by`](Self::sort_by).
    #[must_use]
    pub fn sort_by(mut self, sort_by: SortBy) -> Self {
        self.sort_by = sort_by;
        self
    }

    /// Sets [`max_frames`](Self::max_frames).
    #[must_use]
    pub fn max_frames(mut self, frames: usize) -> Self {
        self.max_frames = frames;
        self
    }

    /// Sets [`ignore_alloc_fns`](Self::ignore_alloc_fns).
    #[must_use]
    pub fn ignore_alloc_fns(mut self, ignore: bool) -> Self {
        self.ignore_alloc_fns = ignore;
        self
    }

    /// Adds to [`filters`](Self::filters).
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }

    /// Adds to [`report_filters`](Self::report_filters).
    #[must_use]
    pub fn report_filter(mut self, filter: Filter) -> Self {
        self.report_filters.push(filter);
        self
    }

    /// Sets [`limit`](Self::limit).
    #[must_use]
    pub fn limit(mut self, records: usize) -> Self {
        self.limit = records;
        self
    }

    /// Adds to [`by`](Self::by).
    #[must_use]
    pub fn by(mut self, by: By) -> Self {
        self.by.push(by);
        self
    }

    /// Sets [`row_limit`](Self::row_limit).
    #[must_use]
    pub fn row_limit(mut self, rows: usize) -> Self {
        self.row_limit = rows;
        self
    }

    /// Sets [`estimate`](Self::estimate).
    #[must_use]
    pub fn estimate(mut self, estimate: bool) -> Self {
        self.estimate = estimate;
        self
    }
}

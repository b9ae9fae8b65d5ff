//! Options of an analysis.

use crate::dump::FrameText;

/// The sort key of records. Records are sorted descending by the absolute value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordOrder {
    /// Usable bytes: requested bytes and slop.
    #[default]
    Usable,
    /// Requested bytes.
    Req,
    /// Slop: usable bytes that the program did not request.
    Slop,
    /// The number of blocks, then usable bytes.
    NumBlocks,
    /// Usable bytes in memory.
    Resident,
    /// Usable bytes that are swapped out.
    Swapped,
    /// Usable bytes without memory.
    Untouched,
}

/// The key by which a table groups blocks. The records themselves are grouped by stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableKey {
    /// Each frame of the allocation stack: a block counts for each of its frames. DMD wrote such records in 2013.
    Frame,
    /// The crate of the innermost function that [`FoldRules`](crate::program::FoldRules) do not fold. If the crate is
    /// unknown, the name of the source file or module.
    Module,
    /// The path of the reporter or, if the dump has no paths, the reporting function.
    Reporter,
    /// The usable size, rounded up to the next power of two.
    Size,
    /// The type of the block. If the stack does not name the type, the function that allocated the block.
    Type,
}

/// A text that at least one line of a stack must contain, or that no line of a stack may contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackFilter {
    text: String,
    without: bool,
}

impl StackFilter {
    /// Parses a filter in the syntax of `dmd.py`: `!TEXT` keeps stacks that do not contain the text; `\TEXT` takes the
    /// text literally.
    pub fn new(filter: &str) -> Self {
        let (text, without) = match (filter.strip_prefix('!'), filter.strip_prefix('\\')) {
            (Some(text), _) => (text, true),
            (None, Some(text)) => (text, false),
            (None, None) => (filter, false),
        };
        Self { text: text.to_owned(), without }
    }

    /// Whether the filter keeps a stack with these frames. Each frame comes with its number in the stack. The filter
    /// searches the lines that an analysis prints.
    pub(crate) fn keeps<'t>(&self, mut frames: impl Iterator<Item = (usize, FrameText<'t>)>) -> bool {
        let text = &*self.text;
        // Only a text that starts with a space, `#` or a digit can match a part of the frame's number.
        let with_number = text.starts_with(|c: char| c == ' ' || c == '#' || c.is_ascii_digit());
        let has = |(number, frame): (usize, FrameText<'_>)| {
            let rest = frame.without_stand_in();
            rest.contains(text) || (with_number && format!("    #{number:02}{rest}").contains(text))
        };
        frames.any(has) != self.without
    }
}

/// Options of an [`Analysis`](crate::Analysis).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnalyzeOptions {
    pub(crate) sort_by: RecordOrder,
    pub(crate) max_frames: usize,
    pub(crate) ignore_alloc_fns: bool,
    pub(crate) fold: bool,
    pub(crate) without_lines: bool,
    pub(crate) types: bool,
    pub(crate) type_frames: bool,
    pub(crate) filters: Vec<StackFilter>,
    pub(crate) report_filters: Vec<StackFilter>,
    pub(crate) limit: usize,
    pub(crate) for_testing: bool,
    pub(crate) by: Vec<TableKey>,
    pub(crate) row_limit: usize,
    pub(crate) estimate: bool,
    pub(crate) reporters: bool,
    pub(crate) resident: bool,
}

impl Default for AnalyzeOptions {
    fn default() -> Self {
        Self {
            sort_by: RecordOrder::Usable,
            max_frames: Self::MAX_FRAMES,
            ignore_alloc_fns: false,
            fold: false,
            without_lines: false,
            types: false,
            type_frames: false,
            filters: Vec::new(),
            report_filters: Vec::new(),
            limit: 999,
            for_testing: false,
            by: Vec::new(),
            row_limit: 999,
            estimate: false,
            reporters: false,
            resident: false,
        }
    }
}

impl AnalyzeOptions {
    /// The default of [`max_frames`](Self::max_frames).
    pub const MAX_FRAMES: usize = 8;

    /// The defaults of `dmd.py`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the sort key of records. Default: usable bytes.
    #[must_use]
    pub fn sort_by(mut self, sort_by: RecordOrder) -> Self {
        self.sort_by = sort_by;
        self
    }

    /// Sets the maximum number of frames of each stack. Records are compared by these frames. Default: 8.
    #[must_use]
    pub fn max_frames(mut self, frames: usize) -> Self {
        self.max_frames = frames;
        self
    }

    /// Sets whether to drop allocator frames from the start of each stack, before the stack is cut: the frames in the
    /// list of `dmd.py` and, in a dump of the crate `dmd`, the frames of Rust's libraries. Default: no.
    #[must_use]
    pub fn ignore_alloc_fns(mut self, ignore: bool) -> Self {
        self.ignore_alloc_fns = ignore;
        self
    }

    /// Sets whether to drop, in a dump of the crate `dmd`, every frame that says nothing about the program, before the
    /// stack is cut: frames of allocators and libraries, and frames through which threads and `main` start. A stack
    /// that consists only of such frames keeps one frame. See [`FoldRules`](crate::program::FoldRules). Default: no.
    #[must_use]
    pub fn fold(mut self, fold: bool) -> Self {
        self.fold = fold;
        self
    }

    /// Sets whether to compare stacks by functions and files only. Lines are ignored, and so are the offsets of known
    /// functions. Then stacks of two builds of a program are equal. Default: no.
    #[must_use]
    pub fn without_lines(mut self, without_lines: bool) -> Self {
        self.without_lines = without_lines;
        self
    }

    /// Sets whether to put the type of the blocks before the innermost frame of each stack, if the stack names it. Then
    /// blocks of different types have different records. Default: no.
    #[must_use]
    pub fn type_frames(mut self, type_frames: bool) -> Self {
        self.type_frames = type_frames;
        self
    }

    /// Sets whether to find the type of each record's blocks, for views that show it. Default: no.
    #[must_use]
    pub fn types(mut self, types: bool) -> Self {
        self.types = types;
        self
    }

    /// Adds a filter: only records whose allocation stack passes all filters are kept. Default: none.
    #[must_use]
    pub fn filter(mut self, filter: StackFilter) -> Self {
        self.filters.push(filter);
        self
    }

    /// Adds a filter: only records whose report stacks together pass all filters are kept. Default: none.
    #[must_use]
    pub fn report_filter(mut self, filter: StackFilter) -> Self {
        self.report_filters.push(filter);
        self
    }

    /// Sets the maximum number of records of each kind. Default: 999, as in `dmd.py`.
    #[must_use]
    pub fn limit(mut self, records: usize) -> Self {
        self.limit = records;
        self
    }

    /// Adds a table to make in addition to the records. Default: none.
    #[must_use]
    pub fn by(mut self, by: TableKey) -> Self {
        self.by.push(by);
        self
    }

    /// Sets the maximum number of rows of each table. Default: 999.
    #[must_use]
    pub fn row_limit(mut self, rows: usize) -> Self {
        self.row_limit = rows;
        self
    }

    /// Sets whether to distribute blocks without a stack over the records of blocks with a stack that have the same
    /// reports and a similar size. In partial mode, DMD records stacks only for a part of the small blocks. Default:
    /// no.
    #[must_use]
    pub fn estimate(mut self, estimate: bool) -> Self {
        self.estimate = estimate;
        self
    }

    /// Sets whether blocks of different reporters, by the reporters' paths, have separate records, even if their stacks
    /// are the same. Default: no.
    #[must_use]
    pub fn reporters(mut self, reporters: bool) -> Self {
        self.reporters = reporters;
        self
    }

    /// Sets whether a difference also has the records whose blocks are the same but whose resident bytes changed.
    /// Records of equal bytes are then sorted by their resident bytes. Default: no.
    #[must_use]
    pub fn resident(mut self, resident: bool) -> Self {
        self.resident = resident;
        self
    }

    /// Sets whether to replace parts that differ from run to run: a stack with three frames of DMD becomes one line,
    /// and all addresses become equal. Default: no.
    #[must_use]
    pub fn for_testing(mut self, for_testing: bool) -> Self {
        self.for_testing = for_testing;
        self
    }
}

//! Advice about unreported memory: its owners, the functions that allocated it, and the code to write so that it is
//! reported.

mod advice;
mod crates;
mod owner;
mod site;

use core::fmt::{self, Display};
use std::collections::BTreeSet;

use dmd_format::Mode;

use crate::dump::{Dump, DumpTime, FrameText};
use crate::error::AnalyzeError;
use crate::names::Workspace;
use crate::print::{CleanText, blocks, mark, number, share};
use crate::records::{Analysis, AnalyzeOptions, BlockSums, NO_STACK, RecordKind, StackFilter};
use owner::{MemoryOwner, OwnerGroups};
use site::{SiteFinder, base_name};

/// The maximum number of functions that a suggestion lists.
const SITES: usize = 4;

/// Suggestions, sorted descending by bytes.
///
/// Its `Display` writes the text that `about-memory dmd --suggest` prints.
#[derive(Debug)]
#[non_exhaustive]
pub struct Suggestions {
    /// One suggestion for each owner of memory.
    pub suggestions: Vec<Suggestion>,
    /// All unreported blocks that pass the filters. In a dump of live mode, every block counts as unreported.
    pub unreported: BlockSums,
    /// The time whose blocks a dump of live mode contains. Such a dump contains no reports, so the program's reporters
    /// may report some of the blocks. `None` for a dump of dark-matter mode.
    pub before_reports: Option<DumpTime>,
    /// The number of suggestions that the limit leaves out.
    pub more: usize,
    /// Unreported blocks without a recorded stack.
    pub without_stack: BlockSums,
    workspace: Workspace,
}

/// Unreported memory of one owner: a type or a function of the program, or a library that the program calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Suggestion {
    /// The sums of the blocks.
    pub sums: BlockSums,
    /// Whether the sums contain estimated shares of blocks without a stack.
    pub estimated: bool,
    /// The sites, sorted descending by bytes. Each has one function and at most one type. There is at least one site.
    pub sites: Vec<SuggestedSite>,
    owner: MemoryOwner,
}

/// Unreported memory of one type, allocated by one function.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SuggestedSite {
    /// The sums of the blocks.
    pub sums: BlockSums,
    /// Whether the sums contain estimated shares of blocks without a stack.
    pub estimated: bool,
    /// The type of the blocks, such as `Vec<app::Entry>`, if the names of functions contain it.
    pub type_name: Option<String>,
    /// The innermost function on the allocation stack. Functions that [`FoldRules`](crate::program::FoldRules) fold do
    /// not count.
    pub function: String,
    /// The function's file and line or, if they are unknown, its module and offset. If the function allocates at
    /// several lines, the line with the most bytes.
    pub place: String,
    /// The function's crate.
    pub module: String,
    /// Whether the function belongs to another package.
    pub dependency: bool,
    /// For a dependency: the function of the program that called it, and the place of that function.
    pub caller: Option<(String, String)>,
}

impl Suggestions {
    /// Makes at most `limit` suggestions. For a dump of dark-matter mode, the suggestions cover the unreported blocks.
    /// For a dump of live mode, such as [the state at the peak](Dump::at), the suggestions cover all blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if the mode of the dump is scan or cumulative.
    pub fn new(dump: Dump, limit: usize) -> Result<Self, AnalyzeError> {
        Self::filtered(dump, limit, &[])
    }

    /// Makes at most `limit` suggestions for the blocks whose whole allocation stack passes all filters; see
    /// [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// Returns an error if the mode of the dump is scan or cumulative.
    pub fn filtered(dump: Dump, limit: usize, filters: &[StackFilter]) -> Result<Self, AnalyzeError> {
        let (kind, before_reports) = match dump.mode() {
            Mode::DarkMatter => (RecordKind::Unreported, None),
            Mode::Live => (RecordKind::Live, Some(dump.shown)),
            mode => return Err(AnalyzeError::NotDarkMatter(mode)),
        };
        let mut options =
            AnalyzeOptions::new().estimate(true).max_frames(usize::MAX).limit(usize::MAX).types(true);
        options.filters = filters.to_vec();
        let workspace = Workspace::from_frames(dump.stacks().flatten());
        let analysis = Analysis::new(dump, &options);
        let finder = SiteFinder::new(&analysis);
        let unreported = analysis.sums(kind);
        let mut without_stack = BlockSums::default();
        let (mut groups, mut in_arcs) = (OwnerGroups::default(), BTreeSet::new());
        for section in &analysis.sections {
            for record in &section.records {
                in_arcs.extend(finder.type_in_arc(record));
                if section.kind != kind {
                    continue;
                }
                let frames: Vec<FrameText<'_>> = analysis.frames(record.alloc).collect();
                if frames.is_empty() || matches!(frames[..], [only] if only.as_str() == NO_STACK) {
                    without_stack.add(record.sums);
                    continue;
                }
                groups.add(finder.site(record));
            }
        }
        let mut suggestions = groups.suggestions(&in_arcs, &workspace);
        suggestions.sort_by_key(|suggestion| core::cmp::Reverse(suggestion.sums.usable()));
        let more = suggestions.len().saturating_sub(limit);
        suggestions.truncate(limit);
        Ok(Self { suggestions, unreported, before_reports, more, without_stack, workspace })
    }
}

impl Suggestion {
    /// The site with the most bytes.
    pub fn largest(&self) -> &SuggestedSite {
        &self.sites[0]
    }

    /// The code to write so that a reporter or a tag reports the memory, in several lines. [`Suggestions`] shows the
    /// same lines.
    pub fn advice(&self) -> String {
        struct SuggestionAdvice<'a>(&'a Suggestion);
        impl Display for SuggestionAdvice<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.owner.write_advice(f)
            }
        }
        SuggestionAdvice(self).to_string()
    }
}

impl Display for Suggestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.unreported.usable();
        let all = format!("{} bytes in {}", number(whole), blocks(self.unreported.num));
        match self.before_reports {
            None => writeln!(f, "{all} are not reported.\n")?,
            Some(DumpTime::Peak) => {
                writeln!(f, "The program holds {all} at the peak (--at end shows the end).\n")?;
            }
            Some(DumpTime::End) => writeln!(f, "The program holds {all} at the end.\n")?,
            Some(DumpTime::Time(time)) => {
                writeln!(f, "The program holds {all} {:.2} s after the start.\n", time.as_secs_f64())?;
            }
            Some(DumpTime::Window(from, to)) => {
                let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
                writeln!(
                    f,
                    "The program allocated {all} between {from:.2} and {to:.2} s, and holds them at {to:.2} s.\n"
                )?;
            }
        }
        for (index, suggestion) in self.suggestions.iter().enumerate() {
            let mark = mark(suggestion.estimated);
            let share = share(suggestion.sums.usable(), whole);
            let bytes = number(suggestion.sums.usable());
            let blocks = blocks(suggestion.sums.num);
            let owner = suggestion.owner.title();
            writeln!(f, "{}. {mark}{bytes} bytes ({share:.2}%) in {mark}{blocks}{owner}", index + 1)?;
            let bytes = |site: &SuggestedSite| number(site.sums.usable());
            let width = suggestion.sites.iter().map(|site| bytes(site).len()).max().unwrap_or(0);
            for site in suggestion.sites.iter().take(SITES) {
                self.write_site(f, site, &format!("{:>width$}", bytes(site)))?;
            }
            if let Some(rest @ [_, ..]) = suggestion.sites.get(SITES..) {
                let sum = number(rest.iter().map(|site| site.sums.usable()).sum());
                writeln!(f, "   {sum:>width$} bytes in {} more functions or types", rest.len())?;
            }
            if suggestion.largest().lacks_debug_information() {
                f.write_str(
                    "   to see the type and the line, build with debug information (lines are enough)\n",
                )?;
            }
            suggestion.owner.write_advice(f)?;
            f.write_str("\n")?;
        }
        if self.more > 0 {
            writeln!(f, "{} more are not shown.", number(self.more as i128))?;
        }
        if self.suggestions.iter().any(|one| one.owner.has_tag()) {
            f.write_str(
                "A tag counts the blocks of the allocator that the program declares:\n   \
                 memory_reporter::global_allocator!(std::alloc::System);\n",
            )?;
        }
        if self.without_stack.num > 0 {
            let BlockSums { num, .. } = self.without_stack;
            let bytes = number(self.without_stack.usable());
            writeln!(f, "No stack is recorded for {bytes} bytes in {}.", blocks(num))?;
        }
        Ok(())
    }
}

impl Suggestions {
    fn write_site(&self, f: &mut fmt::Formatter<'_>, site: &SuggestedSite, bytes: &str) -> fmt::Result {
        write!(f, "   {}{bytes} bytes", mark(site.estimated))?;
        if let Some(name) = &site.type_name {
            write!(f, " of {}", CleanText(name))?;
        }
        let place = self.workspace.short(&site.place);
        let place = if place.is_empty() { "an unknown place" } else { &*place };
        let is_rust = place.contains(".rs:");
        let function = if is_rust { base_name(&site.function) } else { site.function.clone() };
        writeln!(f, ", allocated by {} at {}", CleanText(&function), CleanText(place))
    }
}

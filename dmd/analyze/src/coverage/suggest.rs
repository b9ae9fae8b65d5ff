//! Advice about unreported memory: its type, the function that allocated it, and the reporter to write.

mod advice;

use core::fmt::{self, Display};
use std::collections::{BTreeMap, BTreeSet};

use dmd_format::Mode;

use crate::dump::{CallFrame, Dump, DumpTime, FrameText};
use crate::error::AnalyzeError;
use crate::names::{BlockShape, FoldReason, FoldRules, FoldedStack, TypeVerdict, container_of};
use crate::print::{CleanText, blocks, mark, number, share};
use crate::records::{Analysis, AnalyzeOptions, BlockSums, NO_STACK, RecordKind, StackFilter, StackRecord};
use advice::feature_for;

/// Suggestions, sorted descending by bytes.
///
/// Its `Display` writes the text that `about-memory dmd --suggest` prints.
#[derive(Debug)]
#[non_exhaustive]
pub struct Suggestions {
    /// One suggestion for each function, type and caller.
    pub suggestions: Vec<Suggestion>,
    /// All unreported blocks that pass the filters. In a dump of live mode, and at the peak, every block counts as
    /// unreported.
    pub unreported: BlockSums,
    /// The time whose blocks a dump of live mode contains. No reporter had run at that time, so the program's reporters
    /// may report some of the blocks. `None` for a dump of dark-matter mode.
    pub before_reports: Option<DumpTime>,
    /// The number of suggestions that the limit leaves out.
    pub more: usize,
    /// Unreported blocks without a recorded stack.
    pub without_stack: BlockSums,
}

/// Unreported memory of one type, allocated by one function.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Suggestion {
    /// The sums of the blocks.
    pub sums: BlockSums,
    /// Whether the sums contain estimated shares of blocks without a stack.
    pub estimated: bool,
    /// The type of the blocks, such as `Vec<app::Entry>`, if the names of functions contain it.
    pub type_name: Option<String>,
    /// The innermost function on the allocation stack. Functions of allocators, of collections, and of Rust's or C's
    /// library do not count.
    pub function: String,
    /// The function's file and line or, if they are unknown, its module and offset.
    pub place: String,
    /// The function's crate.
    pub module: String,
    /// Whether the function belongs to another package.
    pub dependency: bool,
    /// For a dependency: the function of the program that called it, and the place of that function.
    pub caller: Option<(String, String)>,
    /// The crate of the type that the collection contains, if that crate belongs to another package.
    foreign: Option<String>,
}

/// Blocks with equal keys share a suggestion: function, type and caller.
type SuggestionKey = (String, Option<String>, Option<(String, String)>);

impl Suggestions {
    /// Makes at most `limit` suggestions. From a dump of dark-matter mode, they are for the unreported blocks. From a
    /// dump of live mode, such as [the state at the peak](Dump::at), they are for all blocks.
    ///
    /// # Errors
    ///
    /// If the mode of the dump is scan or cumulative.
    pub fn new(dump: Dump, limit: usize) -> Result<Self, AnalyzeError> {
        Self::filtered(dump, limit, &[])
    }

    /// Makes at most `limit` suggestions for the blocks whose whole allocation stack passes all filters; see
    /// [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// If the mode of the dump is scan or cumulative.
    pub fn filtered(dump: Dump, limit: usize, filters: &[StackFilter]) -> Result<Self, AnalyzeError> {
        let (kind, before_reports) = match dump.mode() {
            Mode::DarkMatter => (RecordKind::Unreported, None),
            Mode::Live => (RecordKind::Live, Some(dump.shown)),
            mode => return Err(AnalyzeError::NotDarkMatter(mode)),
        };
        let mut options =
            AnalyzeOptions::new().estimate(true).max_frames(usize::MAX).limit(usize::MAX).types(true);
        options.filters = filters.to_vec();
        let analysis = Analysis::new(dump, &options);
        let finder = CallerFinder::new(&analysis);
        let unreported = analysis.sums(kind);
        let mut without_stack = BlockSums::default();
        // Each suggestion with the bytes by place: the place with the most bytes is shown.
        let mut found: BTreeMap<SuggestionKey, (Suggestion, BTreeMap<String, i128>)> = BTreeMap::new();
        let sections = analysis.sections.iter().filter(|section| section.kind == kind);
        for record in sections.flat_map(|section| &section.records) {
            let frames: Vec<FrameText<'_>> = analysis.frames(record.alloc).collect();
            if frames.is_empty() || matches!(frames[..], [only] if only.as_str() == NO_STACK) {
                without_stack.add(record.sums);
                continue;
            }
            let suggestion = finder.suggestion(record);
            let key = (suggestion.function.clone(), suggestion.type_name.clone(), suggestion.caller.clone());
            let place = suggestion.place.clone();
            let (known, places) = found.entry(key).or_insert_with(|| (suggestion, BTreeMap::new()));
            known.sums.add(record.sums);
            known.estimated |= record.estimated;
            *places.entry(place).or_default() += record.sums.usable();
        }
        let mut suggestions: Vec<Suggestion> = found
            .into_values()
            .map(|(mut suggestion, places)| {
                if let Some((place, _)) = places.into_iter().max_by_key(|(_, bytes)| *bytes) {
                    suggestion.place = place;
                }
                suggestion
            })
            .collect();
        suggestions.sort_by_key(|suggestion| core::cmp::Reverse(suggestion.sums.usable()));
        let more = suggestions.len().saturating_sub(limit);
        suggestions.truncate(limit);
        Ok(Self { suggestions, unreported, before_reports, more, without_stack })
    }
}

impl Suggestion {
    /// The code to write so that a reporter reports the memory, in several lines. [`Suggestions`] shows the same lines.
    pub fn advice(&self) -> String {
        struct SuggestionAdvice<'a>(&'a Suggestion);
        impl Display for SuggestionAdvice<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write_advice(f)
            }
        }
        SuggestionAdvice(self).to_string()
    }
}

/// Finds the function that allocated, and the function of the program that called it.
struct CallerFinder<'a> {
    analysis: &'a Analysis,
    /// The reason why each frame is folded, by the id of the frame's text.
    folds: Vec<Option<FoldReason>>,
    /// The crates whose source files belong to other packages. The set misses crates without functions on any stack.
    foreign: BTreeSet<String>,
}

impl<'a> CallerFinder<'a> {
    fn new(analysis: &'a Analysis) -> Self {
        let of = FoldRules::new();
        let folds: Vec<Option<FoldReason>> =
            analysis.texts.iter().map(|text| of.reason(&text.frame())).collect();
        let of_packages = analysis
            .texts
            .iter()
            .map(|text| text.frame())
            .filter(|frame| frame.file.is_some_and(|file| file.ends_with(".rs")) && is_dependency(frame));
        let foreign = of_packages.map(|frame| frame.crate_name().into_owned()).collect();
        Self { analysis, folds, foreign }
    }

    fn suggestion(&self, record: &StackRecord) -> Suggestion {
        let ids = self.analysis.stacks.get(record.alloc);
        let texts: Vec<FrameText<'_>> = self.analysis.frames(record.alloc).collect();
        let frames: Vec<CallFrame<'_>> = texts.iter().map(|text| text.frame()).collect();
        let fold = |at: usize| self.folds[ids[at].index()];
        let site = FoldedStack::with_reasons(frames.len(), fold).site().unwrap_or(0);
        let type_name = type_name(&frames[..=site], self.analysis.type_of(record.alloc));
        let dependency = is_dependency(&frames[site]);
        let caller = (site + 1..frames.len())
            .find(|at| fold(*at).is_none() && !is_dependency(&frames[*at]))
            .map(|at| (frames[at].name().to_owned(), texts[at].place().to_owned()));
        let mut suggestion = Suggestion {
            sums: BlockSums::default(),
            estimated: false,
            type_name,
            function: frames[site].name().to_owned(),
            place: texts[site].place().to_owned(),
            module: frames[site].crate_name().into_owned(),
            dependency,
            caller: caller.filter(|_| dependency),
            foreign: None,
        };
        let kept = suggestion.kept().and_then(|kept| kept.split("::").next());
        suggestion.foreign = kept
            .filter(|name| self.foreign.contains(*name) || feature_for(name).is_some())
            .map(str::to_owned);
        suggestion
    }
}

/// The collection whose function is outermost in `frames`. Without a collection, the type that the stack names.
fn type_name(frames: &[CallFrame<'_>], verdict: Option<&TypeVerdict>) -> Option<String> {
    match verdict {
        // The outermost collection would be the vector from which the box was made.
        Some(TypeVerdict::Typed { shape: BlockShape::BoxedSlice, name, .. }) => Some(format!("Box<{name}>")),
        verdict => {
            frames.iter().rev().find_map(container_of).or_else(|| verdict.and_then(TypeVerdict::type_name))
        }
    }
}

/// Whether the function of a frame belongs to another package. The path of its source file decides: cargo and the
/// compiler keep foreign sources in these folders, and libraries of the system have relative paths or no files. Without
/// lines, only the crate with the program's name counts as the program's own.
fn is_dependency(frame: &CallFrame<'_>) -> bool {
    let Some(file) = frame.file else {
        let Some(module) = frame.module else { return false };
        let name = module.rsplit('/').next().unwrap_or(module);
        let name = name.split_once(".so").map_or(name, |(name, _)| name.strip_prefix("lib").unwrap_or(name));
        return name.replace('-', "_") != frame.crate_name();
    };
    ["/rustc/", "./", "../"].iter().any(|start| file.starts_with(start))
        || ["/registry/src/", "/git/checkouts/", "/vendor/", "/rustlib/src/"]
            .iter()
            .any(|part| file.contains(part))
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
                    "The program allocated {all} between {from:.2} and {to:.2} s, and holds them then.\n"
                )?;
            }
        }
        for (index, suggestion) in self.suggestions.iter().enumerate() {
            let Suggestion { sums, estimated, type_name, function, place, module, .. } = suggestion;
            let mark = mark(*estimated);
            let share = share(sums.usable(), whole);
            let bytes = number(sums.usable());
            writeln!(f, "{}. {mark}{bytes} bytes ({share:.2}%) in {mark}{}", index + 1, blocks(sums.num))?;
            if let Some(name) = type_name {
                writeln!(f, "   {}", CleanText(name))?;
            }
            let place = if place.is_empty() { "an unknown place" } else { place };
            writeln!(f, "   allocated by {} at {}", CleanText(function), CleanText(place))?;
            if suggestion.dependency {
                if function.contains("::") {
                    writeln!(f, "   in {}, which is a dependency", CleanText(module))?;
                } else {
                    f.write_str("   in a system library\n")?;
                }
            }
            if let Some((function, place)) = &suggestion.caller {
                writeln!(f, "   for {} at {}", CleanText(function), CleanText(place))?;
            }
            if suggestion.lacks_debug_information() {
                f.write_str(
                    "   to see its type and line, build with debug information (lines are enough)\n",
                )?;
            }
            suggestion.write_advice(f)?;
            f.write_str("\n")?;
        }
        if self.more > 0 {
            writeln!(f, "{} more are not shown.", number(self.more as i128))?;
        }
        if self.without_stack.num > 0 {
            let BlockSums { num, .. } = self.without_stack;
            let bytes = number(self.without_stack.usable());
            writeln!(f, "No stack is recorded for {bytes} bytes in {}.", blocks(num))?;
        }
        Ok(())
    }
}

//! Advice about unreported memory: the type, the place of the allocation, and the reporter to write.

use core::fmt::{self, Display};
use std::collections::BTreeMap;

use crate::amounts::{blocks, mark, number, share};
use crate::clean::Clean;
use crate::container::{container_of, segments};
use crate::dump::Dump;
use crate::error::AnalyzeError;
use crate::frame::{Frame, FrameText};
use crate::mode::Mode;
use crate::options::{AnalyzeOptions, Filter};
use crate::records::{Analysis, NO_STACK, RecordKind, Sums};

/// Suggestions, sorted descending by bytes.
///
/// Its `Display` is what `about-memory dmd --suggest` prints.
#[derive(Debug)]
#[non_exhaustive]
pub struct Suggestions {
    /// One for each type and function.
    pub suggestions: Vec<Suggestion>,
    /// All unreported blocks that the filters keep.
    pub unreported: Sums,
    /// The number of suggestions above the limit.
    pub more: usize,
    /// Unreported blocks without a recorded stack.
    pub without_stack: Sums,
}

/// Unreported memory of one type, allocated by one function.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Suggestion {
    /// Blocks and bytes.
    pub sums: Sums,
    /// The sums include an estimate of blocks without a stack.
    pub estimated: bool,
    /// The collection, such as `Vec<app::Entry>`, if the names of functions show it.
    pub type_name: Option<String>,
    /// The innermost function that is not an allocator's or a collection's.
    pub function: String,
    /// The function's file and line or, if they are unknown, its module and offset.
    pub place: String,
    /// The function's crate.
    pub module: String,
    /// The function belongs to another package.
    pub dependency: bool,
    /// For a dependency: the function of the program that called it, and the place of that function.
    pub caller: Option<(String, String)>,
}

/// Blocks with an equal key make one suggestion: function, type and caller.
type Key = (String, Option<String>, Option<(String, String)>);

impl Suggestions {
    /// Makes at most `limit` suggestions from a dump of dark-matter mode.
    ///
    /// # Errors
    ///
    /// If the dump is of another mode.
    pub fn new(dump: Dump, limit: usize) -> Result<Self, AnalyzeError> {
        Self::filtered(dump, limit, &[])
    }

    /// As [`new`](Self::new), but only for blocks whose whole allocation stack passes all filters.
    ///
    /// # Errors
    ///
    /// If the dump is of another mode.
    pub fn filtered(dump: Dump, limit: usize, filters: &[Filter]) -> Result<Self, AnalyzeError> {
        if dump.mode() != Mode::DarkMatter {
            return Err(AnalyzeError::NotDarkMatter(dump.mode()));
        }
        let mut options = AnalyzeOptions::new().estimate(true).max_frames(usize::MAX).limit(usize::MAX);
        options.filters = filters.to_vec();
        let analysis = Analysis::new(dump, &options);
        let unreported = analysis.sums(RecordKind::Unreported);
        let mut without_stack = Sums::default();
        // Each with the bytes of its places, to find the place with the most.
        let mut found: BTreeMap<Key, (Suggestion, BTreeMap<String, i128>)> = BTreeMap::new();
        let sections = analysis.sections.iter().filter(|section| section.kind == RecordKind::Unreported);
        for record in sections.flat_map(|section| &section.records) {
            let frames: Vec<FrameText<'_>> = analysis.frames(record.alloc).collect();
            if frames.is_empty() || matches!(frames[..], [only] if only.as_str() == NO_STACK) {
                without_stack.add(record.sums);
                continue;
            }
            let suggestion = suggestion(&frames);
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
        Ok(Self { suggestions, unreported, more, without_stack })
    }
}

fn suggestion(texts: &[FrameText<'_>]) -> Suggestion {
    let frames: Vec<Frame<'_>> = texts.iter().map(|text| text.frame()).collect();
    let owner = frames.iter().position(|frame| !frame.is_of_allocator()).unwrap_or(0);
    // The collection whose function is nearest to its user's.
    let type_name = frames[..=owner].iter().rev().find_map(container_of);
    let dependency = is_dependency(&frames[owner]);
    let is_of_program =
        |frame: &Frame<'_>| !is_dependency(frame) && !frame.is_of_allocator() && !is_start(frame.name());
    let caller = (owner + 1..frames.len())
        .find(|at| is_of_program(&frames[*at]))
        .map(|at| (frames[at].name().to_owned(), texts[at].place().to_owned()));
    Suggestion {
        sums: Sums::default(),
        estimated: false,
        type_name,
        function: frames[owner].name().to_owned(),
        place: texts[owner].place().to_owned(),
        module: frames[owner].crate_name().into_owned(),
        dependency,
        caller: caller.filter(|_| dependency),
    }
}

/// Whether a function runs before or around the program's own functions.
fn is_start(function: &str) -> bool {
    ["std::", "<std::", "test::"].iter().any(|name| function.starts_with(name))
}

/// Whether a frame is of another package. Cargo keeps the sources of other packages in these folders, and the
/// compiler those of its libraries; libraries of the system have relative files or no files. Without lines, only the
/// crate with the program's name is known to be its own.
fn is_dependency(frame: &Frame<'_>) -> bool {
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

impl Suggestion {
    /// The function of the program that uses the memory.
    fn of_program(&self) -> &str {
        self.caller.as_ref().map_or(&self.function, |(function, _)| function)
    }

    /// Whether only a symbol gives the name of the program's function. Most symbols contain no types.
    fn lacks_debug_information(&self) -> bool {
        let is_ours = !self.dependency && self.function != "???";
        is_ours && self.type_name.is_none() && self.place.contains(" +0x")
    }

    /// The type of the program's function, if it is a method.
    fn owner(&self) -> Option<&str> {
        let function = self.of_program();
        let path = function.strip_prefix('<').map_or(function, |rest| {
            let end = rest.find(" as ").or(rest.find('>')).unwrap_or(rest.len());
            &rest[..end]
        });
        let parts = segments(path);
        let is_type = |part: &&&str| part.starts_with(|c: char| c.is_ascii_uppercase());
        let part = parts.iter().rev().find(is_type)?;
        Some(part.split('<').next().unwrap_or(part))
    }

    /// The program's type that the collection contains.
    fn kept(&self) -> Option<&str> {
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        self.type_name.as_deref()?.split(|c| !is_path(c)).find(|path| path.contains("::"))
    }

    /// A path for the report: from the module of the contained type or, without one, of the allocating function.
    fn report_path(&self) -> String {
        let function = self.of_program().trim_start_matches(['<', '&']);
        let parts = segments(self.kept().unwrap_or(function));
        let module = parts.get(1).filter(|part| {
            parts.len() > 2 && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        });
        let name = match (module, self.owner()) {
            (Some(module), _) => (*module).to_owned(),
            (None, Some(owner)) => kebab(owner),
            (None, None) => parts.first().map_or_else(|| self.module.clone(), |part| (*part).to_owned()),
        };
        format!("explicit/{}", name.replace('_', "-"))
    }
}

fn kebab(name: &str) -> String {
    let mut text = String::new();
    for (at, c) in name.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            text.push('-');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

impl Display for Suggestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.unreported.usable();
        writeln!(f, "{} bytes in {} are not reported.\n", number(whole), blocks(self.unreported.num))?;
        for (index, suggestion) in self.suggestions.iter().enumerate() {
            let Suggestion { sums, estimated, type_name, function, place, module, .. } = suggestion;
            let mark = mark(*estimated);
            let share = share(sums.usable(), whole);
            let bytes = number(sums.usable());
            writeln!(f, "{}. {mark}{bytes} bytes ({share:.2}%) in {mark}{}", index + 1, blocks(sums.num))?;
            if let Some(name) = type_name {
                writeln!(f, "   {}", Clean(name))?;
            }
            let place = if place.is_empty() { "an unknown place" } else { place };
            writeln!(f, "   allocated by {} at {}", Clean(function), Clean(place))?;
            if suggestion.dependency {
                if function.contains("::") {
                    writeln!(f, "   in {}, which is a dependency", Clean(module))?;
                } else {
                    f.write_str("   in a library of the system\n")?;
                }
            }
            if let Some((function, place)) = &suggestion.caller {
                writeln!(f, "   for {} at {}", Clean(function), Clean(place))?;
            }
            if suggestion.lacks_debug_information() {
                f.write_str(
                    "   built with debug information, even of lines only, it would tell its type and line\n",
                )?;
            }
            suggestion.advice(f)?;
            f.write_str("\n")?;
        }
        if self.more > 0 {
            writeln!(f, "{} more are not shown.", number(self.more as i128))?;
        }
        if self.without_stack.num > 0 {
            let Sums { num, .. } = self.without_stack;
            let bytes = number(self.without_stack.usable());
            writeln!(f, "Of {bytes} bytes in {} no stack is known.", blocks(num))?;
        }
        Ok(())
    }
}

impl Suggestion {
    fn advice(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.function == "???" {
            return f
                .write_str("   no symbols: build with debug information, or name its folder by --symbols\n");
        }
        let path = self.report_path();
        let what = self.type_name.as_deref().unwrap_or("it");
        if self.dependency && self.caller.is_none() {
            return writeln!(
                f,
                "   report the value of yours that keeps {} alive, or register a reporter for {}",
                Clean(what),
                Clean(&self.module)
            );
        }
        let what = match (self.kept(), self.owner()) {
            (Some(kept), _) => format!("{kept} and for the value that keeps it"),
            (None, Some(owner)) => owner.to_owned(),
            (None, None) => format!("the type that keeps {what}"),
        };
        writeln!(f, "   derive MallocSizeOf for {}, and register a reporter:", Clean(&what))?;
        writeln!(
            f,
            "   memory_reporter::define_reporter!(\"{}\", Heap, &VALUE, \"Memory used by {}.\");",
            Clean(&path),
            Clean(path.trim_start_matches("explicit/").replace('-', " ").as_str())
        )
    }
}

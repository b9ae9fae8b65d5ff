//! Finds the holders of memory: the site, type and crate of each record.

use rustc_hash::{FxHashMap, FxHashSet};

use super::ProgramOptions;
use super::closure::FunctionNames;
use super::line::{middle, name, place};
use super::short_name::{self, KeptParts};
use crate::names::{FoldedStack, TypeVerdict, Workspace};
use crate::print::CleanText;
use crate::records::{Analysis, CutStackId, NO_STACK, StackRecord};

/// The key by which a view groups memory. A group's holder is a site, a type or a crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HolderKey {
    /// The innermost function on the allocation stack that the view does not fold.
    Site,
    /// The Rust type of the blocks, from their allocation stack. If the stack names no type, the function that
    /// allocated the blocks.
    Type,
    /// The crate of the site.
    Crate,
}

impl HolderKey {
    /// The key's name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Type => "type",
            Self::Crate => "crate",
        }
    }
}

/// The form of a holder's name, which decides how the name is shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum NameForm {
    #[default]
    Plain,
    Function,
    Type,
    /// `in`, followed by the path of a function.
    In,
}

/// One holder under one key. Holders with equal whole names are equal, unless functions share the name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct BlockHolder {
    whole: String,
    form: NameForm,
    /// The line, if functions share the name.
    line: Option<u32>,
}

/// The maximum number of additional path parts in names that would otherwise look equal. Types in brackets get the
/// additional parts first.
const FURTHER: usize = 6;

impl BlockHolder {
    pub(super) fn plain(name: impl Into<String>) -> Self {
        Self { whole: name.into(), ..Self::default() }
    }

    /// The holder under [`HolderKey::Type`], from the verdict about a stack's blocks.
    pub(super) fn typed(verdict: &TypeVerdict, stack: CutStackId, named: &FunctionNames<'_>) -> Self {
        match verdict {
            TypeVerdict::In { function: Some(function) } => {
                Self { whole: format!("in {}", named.path(stack, function)), form: NameForm::In, line: None }
            }
            TypeVerdict::In { function: None } | TypeVerdict::Chunk { .. } => {
                Self::plain(verdict.to_string())
            }
            TypeVerdict::Typed { .. } => {
                Self { whole: verdict.to_string(), form: NameForm::Type, line: None }
            }
        }
    }

    /// The whole name.
    pub(super) fn whole(&self) -> String {
        CleanText(&self.whole).to_string()
    }

    /// The name in at most `width` characters, or the whole name if the options request whole names.
    pub(super) fn name(&self, width: usize, options: &ProgramOptions) -> String {
        if options.verbose { CleanText(&self.whole).to_string() } else { self.short(0, 0, width) }
    }

    /// The short name with additional path parts outside of brackets (`outer`) and inside (`inner`).
    fn short(&self, outer: usize, inner: usize, width: usize) -> String {
        let longer = |parts: KeptParts| KeptParts { outer: parts.outer + outer, inner: parts.inner + inner };
        let name = match self.form {
            NameForm::Plain => middle(&self.whole, width),
            NameForm::Function => short_name::short(&self.whole, longer(KeptParts::FUNCTION), width),
            NameForm::Type => short_name::short(&self.whole, longer(KeptParts::TYPE), width),
            // No place follows this name, so the name includes the crate.
            NameForm::In => {
                let parts = longer(KeptParts::FUNCTION);
                let end = short_name::short(&self.whole, parts, usize::MAX);
                let end = end.strip_prefix("in ").unwrap_or(&end);
                let all =
                    short_name::short(&self.whole, KeptParts { outer: usize::MAX, ..parts }, usize::MAX);
                let first = all.split("::").next().unwrap_or_default();
                let is_short = all.len() <= first.len() + "::".len() + end.len();
                middle(&if is_short { all.clone() } else { format!("{first}::…::{end}") }, width)
            }
        };
        CleanText(&name).to_string()
    }
}

/// The names of holders that a view shows together, each in at most `width` characters. Names that would look equal get
/// up to `room` characters, and more parts of their paths.
pub(super) fn names(
    holders: &[&BlockHolder],
    width: usize,
    room: usize,
    options: &ProgramOptions,
) -> Vec<String> {
    let mut names: Vec<String> = holders.iter().map(|holder| holder.name(width, options)).collect();
    if options.verbose {
        return names;
    }
    let mut alike: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    for (at, name) in names.iter().enumerate() {
        alike.entry(name).or_default().push(at);
    }
    let mut longer = Vec::new();
    let groups = alike.into_values().filter(|group| group.len() > 1);
    groups.for_each(|group| {
        let of_group: Vec<&BlockHolder> = group.iter().map(|at| holders[*at]).collect();
        longer.extend(group.into_iter().zip(told_apart(&of_group, width, room)));
    });
    for (at, name) in longer {
        names[at] = name;
    }
    names
}

fn told_apart(holders: &[&BlockHolder], width: usize, room: usize) -> Vec<String> {
    let further = (1..=FURTHER)
        .flat_map(|further| [(0, further), (further, 0), (further, further)])
        .collect::<Vec<_>>();
    let all = |width: usize| further.iter().map(move |(outer, inner)| (*outer, *inner, width));
    let attempts = [(0, 0, room)].into_iter().chain(all(width)).chain(all(room)).chain(all(usize::MAX));
    for (outer, inner, width) in attempts {
        let names: Vec<String> = holders.iter().map(|holder| holder.short(outer, inner, width)).collect();
        let different: FxHashSet<&String> = names.iter().collect();
        if different.len() == names.len() {
            return names
                .iter()
                .map(|name| middle(&short_name::without_owner_generics(name, room), room))
                .collect();
        }
    }
    holders.iter().map(|holder| middle(&CleanText(&holder.whole).to_string(), room)).collect()
}

/// Finds the holders of the records of an analysis.
pub(super) struct HolderFinder<'a> {
    analysis: &'a Analysis,
    options: &'a ProgramOptions,
    named: FunctionNames<'a>,
    workspace: Workspace,
}

impl<'a> HolderFinder<'a> {
    pub(super) fn new(analysis: &'a Analysis, options: &'a ProgramOptions) -> Self {
        let workspace = Workspace::from_frames(analysis.texts.iter().map(|text| text.frame()));
        Self { analysis, options, named: FunctionNames::new(analysis), workspace }
    }

    /// The holder of a record under each key, and the place of a site.
    pub(super) fn find(&self, record: &StackRecord, keys: &[HolderKey]) -> Vec<(BlockHolder, String)> {
        self.find_for_stack(record.alloc, keys)
    }

    /// The holder of a stack's blocks under each key, and the place of a site.
    pub(super) fn find_for_stack(&self, stack: CutStackId, keys: &[HolderKey]) -> Vec<(BlockHolder, String)> {
        let has_stack = self.analysis.frames(stack).next().is_some_and(|text| text.as_str() != NO_STACK);
        let frames = self.named.frames(stack);
        let site = FoldedStack::fold(&frames, &self.options.folds).site().filter(|_| has_stack);
        let site = site.map(|site| &frames[site]);
        let plain = |name: String| (BlockHolder::plain(name), String::new());
        let of_key = |key: &HolderKey| match (site, key) {
            (None, _) => plain("(no stack)".to_owned()),
            (Some(site), HolderKey::Site) => {
                let holder = match site.function {
                    Some(function) => BlockHolder {
                        whole: function.to_owned(),
                        form: NameForm::Function,
                        line: site.line.filter(|_| FunctionNames::is_shared(site)),
                    },
                    // Sites without a name differ by their place in the module.
                    None => BlockHolder::plain(name(site, usize::MAX, self.options)),
                };
                (holder, place(site, &self.workspace, self.options))
            }
            (Some(site), HolderKey::Crate) => plain(site.project().into_owned()),
            (Some(_), HolderKey::Type) => match self.analysis.type_of(stack) {
                Some(verdict) => (BlockHolder::typed(verdict, stack, &self.named), String::new()),
                None => plain("?".to_owned()),
            },
        };
        keys.iter().map(of_key).collect()
    }
}

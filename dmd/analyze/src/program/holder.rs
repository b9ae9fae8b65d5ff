//! Who holds memory: the site, type and crate of each record.

use rustc_hash::{FxHashMap, FxHashSet};

use super::ProgramOptions;
use super::closure::Named;
use super::line::{middle, name, place};
use super::short_name::{self, Parts};
use crate::names::{Sited, Verdict, Workspace};
use crate::print::Clean;
use crate::records::{Analysis, NO_STACK, Record, StackId};

/// The key by which a view tells holders of memory apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HolderKey {
    /// The innermost function on the allocation stack that the view does not fold.
    Site,
    /// The Rust type of the blocks, from their allocation stack; without one, the function that allocated.
    Type,
    /// The crate of the site.
    Crate,
}

impl HolderKey {
    /// The word for the key.
    pub fn name(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Type => "type",
            Self::Crate => "crate",
        }
    }
}

/// How the name of a holder becomes short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Form {
    #[default]
    Plain,
    Function,
    Type,
    /// `in`, and the path of a function.
    In,
}

/// One holder, under one key. The whole name tells holders apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Holder {
    whole: String,
    form: Form,
}

/// The parts that names keep beyond the usual ones, until they differ: at first of the types in brackets.
const FURTHER: usize = 6;

impl Holder {
    pub(super) fn plain(name: impl Into<String>) -> Self {
        Self { whole: name.into(), form: Form::Plain }
    }

    /// What is known about the type of a stack's blocks.
    pub(super) fn of_type(verdict: &Verdict, stack: StackId, named: &Named<'_>) -> Self {
        match verdict {
            Verdict::In { function: Some(function) } => {
                Self { whole: format!("in {}", named.path(stack, function)), form: Form::In }
            }
            Verdict::In { function: None } => Self::plain(verdict.to_string()),
            Verdict::Typed { .. } => Self { whole: verdict.to_string(), form: Form::Type },
        }
    }

    /// The whole name.
    pub(super) fn whole(&self) -> String {
        Clean(&self.whole).to_string()
    }

    /// The name in at most `width` characters, or the whole name if the view shows those.
    pub(super) fn name(&self, width: usize, options: &ProgramOptions) -> String {
        if options.verbose { Clean(&self.whole).to_string() } else { self.short(0, 0, width) }
    }

    /// The short name, with some more parts outside of and in brackets.
    fn short(&self, outer: usize, inner: usize, width: usize) -> String {
        let longer = |parts: Parts| Parts { outer: parts.outer + outer, inner: parts.inner + inner };
        let name = match self.form {
            Form::Plain => middle(&self.whole, width),
            Form::Function => short_name::short(&self.whole, longer(Parts::FUNCTION), width),
            Form::Type => short_name::short(&self.whole, longer(Parts::TYPE), width),
            // Without a place beside it, the name keeps the crate.
            Form::In => {
                let parts = longer(Parts::FUNCTION);
                let end = short_name::short(&self.whole, parts, usize::MAX);
                let end = end.strip_prefix("in ").unwrap_or(&end);
                let all = short_name::short(&self.whole, Parts { outer: usize::MAX, ..parts }, usize::MAX);
                let first = all.split("::").next().unwrap_or_default();
                let is_short = all.len() <= first.len() + "::".len() + end.len();
                middle(&if is_short { all.clone() } else { format!("{first}::…::{end}") }, width)
            }
        };
        Clean(&name).to_string()
    }
}

/// The names of holders that a view shows together, in at most `width` characters. Names that look equal get up to
/// `room` characters, and more of their paths.
pub(super) fn names(holders: &[&Holder], width: usize, room: usize, options: &ProgramOptions) -> Vec<String> {
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
        let of_group: Vec<&Holder> = group.iter().map(|at| holders[*at]).collect();
        longer.extend(group.into_iter().zip(told_apart(&of_group, width, room)));
    });
    for (at, name) in longer {
        names[at] = name;
    }
    names
}

fn told_apart(holders: &[&Holder], width: usize, room: usize) -> Vec<String> {
    let further = (1..=FURTHER)
        .flat_map(|further| [(0, further), (further, 0), (further, further)])
        .collect::<Vec<_>>();
    let all = |width: usize| further.iter().map(move |(outer, inner)| (*outer, *inner, width));
    let attempts = [(0, 0, room)].into_iter().chain(all(width)).chain(all(room)).chain(all(usize::MAX));
    for (outer, inner, width) in attempts {
        let names: Vec<String> = holders.iter().map(|holder| holder.short(outer, inner, width)).collect();
        let different: FxHashSet<&String> = names.iter().collect();
        if different.len() == names.len() {
            return names.iter().map(|name| middle(name, room)).collect();
        }
    }
    holders.iter().map(|holder| middle(&Clean(&holder.whole).to_string(), room)).collect()
}

/// Finds the holders of an analysis.
pub(super) struct Holders<'a> {
    analysis: &'a Analysis,
    options: &'a ProgramOptions,
    named: Named<'a>,
    workspace: Workspace,
}

impl<'a> Holders<'a> {
    pub(super) fn new(analysis: &'a Analysis, options: &'a ProgramOptions) -> Self {
        let workspace = Workspace::of(analysis.texts.iter().map(|text| text.frame()));
        Self { analysis, options, named: Named::of(analysis), workspace }
    }

    /// The holder of a record under each key, and the place of a site.
    pub(super) fn of(&self, record: &Record, keys: &[HolderKey]) -> Vec<(Holder, String)> {
        self.of_stack(record.alloc, keys)
    }

    /// The holder of a stack's blocks under each key, and the place of a site.
    pub(super) fn of_stack(&self, stack: StackId, keys: &[HolderKey]) -> Vec<(Holder, String)> {
        let has_stack = self.analysis.frames(stack).next().is_some_and(|text| text.as_str() != NO_STACK);
        let frames = self.named.frames(stack);
        let site = Sited::of(&frames, &self.options.folds).site().filter(|_| has_stack);
        let site = site.map(|site| &frames[site]);
        let plain = |name: String| (Holder::plain(name), String::new());
        let of_key = |key: &HolderKey| match (site, key) {
            (None, _) => plain("(no stack)".to_owned()),
            (Some(site), HolderKey::Site) => {
                let holder = match site.function {
                    Some(function) => Holder { whole: function.to_owned(), form: Form::Function },
                    // Without a name, the place in the module tells sites apart.
                    None => Holder::plain(name(site, usize::MAX, self.options)),
                };
                (holder, place(site, &self.workspace, self.options))
            }
            (Some(site), HolderKey::Crate) => plain(site.project().into_owned()),
            (Some(_), HolderKey::Type) => match self.analysis.type_of(stack) {
                Some(verdict) => (Holder::of_type(verdict, stack, &self.named), String::new()),
                None => plain("?".to_owned()),
            },
        };
        keys.iter().map(of_key).collect()
    }
}

//! The facts about one allocation stack: the function that allocated, its caller in the program, and the crates of the
//! blocks' type.

use std::collections::BTreeSet;

use super::SuggestedSite;
use super::crates::feature_for;
use crate::dump::{CallFrame, FrameText};
use crate::names::{
    BlockShape, FoldReason, FoldRules, FoldedStack, FrameworkSources, TypeVerdict, container_of, segments,
};
use crate::records::{Analysis, StackRecord};

/// The owner of memory, as far as stacks show it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OwnerKey {
    /// A type of the program: the blocks hold its values in an `Arc`, `Rc` or `Box`, or its methods allocated.
    Type(String),
    /// A function of the program that is not a method.
    Function(String),
    /// A crate of another package: the program calls it, or keeps values of its types.
    Library(String),
    /// A function of C in the program.
    C(String),
    /// A library of the system.
    System(String),
    /// A place without a known function.
    Unknown(String),
}

/// One allocation stack.
#[derive(Debug)]
pub(super) struct StackFacts {
    pub(super) site: SuggestedSite,
    pub(super) key: OwnerKey,
    /// The function of the program that the advice names, and its place.
    pub(super) call: Option<(String, String)>,
    /// The program's types that the blocks contain.
    pub(super) types: Vec<String>,
    /// The feature of memory-reporter that measures the blocks' type.
    pub(super) feature: Option<&'static str>,
    /// Whether the program's function runs in a future.
    pub(super) in_future: bool,
    /// Whether outer frames are missing.
    pub(super) is_cut: bool,
}

/// Finds the function that allocated, and the function of the program that called it.
pub(super) struct SiteFinder<'a> {
    analysis: &'a Analysis,
    /// The reason why each frame is folded, by the id of the frame's text.
    folds: Vec<Option<FoldReason>>,
    framework: FrameworkSources,
    /// The program's crates. A crate without functions on any stack is missing.
    own: BTreeSet<String>,
    /// The other crates with functions on stacks.
    others: BTreeSet<String>,
}

impl<'a> SiteFinder<'a> {
    pub(super) fn new(analysis: &'a Analysis) -> Self {
        let of = FoldRules::new();
        let folds: Vec<Option<FoldReason>> =
            analysis.texts.iter().map(|text| of.reason(&text.frame())).collect();
        let mut framework = FrameworkSources::default();
        analysis.texts.iter().for_each(|text| framework.learn(&text.frame()));
        let (own, others) = (BTreeSet::new(), BTreeSet::new());
        let mut finder = Self { analysis, folds, framework, own, others };
        for (id, text) in analysis.texts.iter().enumerate() {
            let (frame, name) = (text.frame(), text.frame().crate_name().into_owned());
            if finder.is_library(&frame) {
                finder.others.insert(name);
            } else if finder.folds[id].is_none() {
                finder.own.insert(name);
            }
        }
        finder
    }

    /// Whether the function of a frame belongs to another package, or to memory-reporter.
    fn is_library(&self, frame: &CallFrame<'_>) -> bool {
        is_dependency(frame) || self.framework.has(frame)
    }

    pub(super) fn site(&self, record: &StackRecord) -> StackFacts {
        let ids = self.analysis.stacks.get(record.alloc);
        let texts: Vec<FrameText<'_>> = self.analysis.frames(record.alloc).collect();
        let frames: Vec<CallFrame<'_>> = texts.iter().map(|text| text.frame()).collect();
        let fold = |at: usize| self.folds[ids[at].index()];
        let at = FoldedStack::with_reasons(frames.len(), fold).site().unwrap_or(0);
        let type_name = type_name(&frames[..=at], self.analysis.type_of(record.alloc));
        let dependency = self.is_library(&frames[at]);
        let named = |at: usize| (frames[at].name().to_owned(), texts[at].place().to_owned());
        let caller = (at + 1..frames.len())
            .find(|at| fold(*at).is_none() && !self.is_library(&frames[*at]))
            .filter(|_| dependency);
        let site = SuggestedSite {
            sums: record.sums,
            estimated: record.estimated,
            type_name,
            function: frames[at].name().to_owned(),
            place: texts[at].place().to_owned(),
            module: frames[at].crate_name().into_owned(),
            dependency,
            caller: caller.map(named),
        };
        let own_at = if dependency { caller } else { Some(at) };
        let call = own_at.map(named);
        // The called crate is the crate of the outermost library function that the program's function called. If no
        // function of the program is on the stack, the called crate is the crate that runs the thread.
        let is_library = |at: &usize| fold(*at).is_none() && self.is_library(&frames[*at]);
        let called = (at..own_at.unwrap_or(frames.len())).rev().find(is_library);
        let called = called.map_or_else(|| site.module.clone(), |at| frames[at].crate_name().into_owned());
        let (types, mut foreign) = self.types_in(site.type_name.as_deref().unwrap_or_default());
        if let Some(TypeVerdict::Chunk { arena }) = self.analysis.type_of(record.alloc)
            && !self.own.contains(arena)
        {
            foreign.push(arena.clone());
        }
        // If a dependency allocated, the called crate replaces the crates of the types: the types belong to the called
        // crate, or are private.
        let foreign = if dependency { vec![called.clone()] } else { foreign };
        let feature = foreign.first().and_then(|name| feature_for(name));
        let feature = feature.filter(|_| !dependency || called == site.module);
        let key = match (&call, foreign.iter().find(|name| feature_for(name).is_none())) {
            _ if site.function == "???" => OwnerKey::Unknown(site.place.clone()),
            _ if dependency && !site.function.contains("::") => OwnerKey::System(site.module.clone()),
            (Some((function, place)), _) if is_c(function, place) => OwnerKey::C(function.clone()),
            (_, Some(name)) => OwnerKey::Library(name.clone()),
            (None, _) => OwnerKey::Library(called),
            _ if dependency && feature.is_none() => OwnerKey::Library(called),
            (Some((function, _)), None) => {
                let name = site.type_name.as_deref().unwrap_or_default();
                let behind = |pointer| self.type_behind(name, pointer);
                let method =
                    || self.method_type(function).or_else(|| behind("Rc<")).or_else(|| behind("Box<"));
                match behind("Arc<").or_else(method) {
                    Some(name) => OwnerKey::Type(name),
                    None => OwnerKey::Function(base_name(function)),
                }
            }
        };
        let in_closure = call.as_ref().is_some_and(|(function, _)| function.ends_with('}'));
        let polls = |frame: &CallFrame<'_>| base_name(frame.name()).ends_with("::poll");
        let in_future = in_closure && own_at.is_some_and(|own| frames[own..].iter().any(polls));
        let is_cut = !(0..frames.len()).any(|at| fold(at) == Some(FoldReason::Start));
        StackFacts { site, key, call, types, feature, in_future, is_cut }
    }

    /// The program's type that the blocks hold in an `Arc`, directly or behind a lock.
    pub(super) fn type_in_arc(&self, record: &StackRecord) -> Option<String> {
        self.type_behind(&self.analysis.type_of(record.alloc)?.type_name()?, "ArcInner<")
    }

    /// The program's type behind a pointer, directly or behind a lock.
    fn type_behind(&self, name: &str, pointer: &str) -> Option<String> {
        let mut inner = name.strip_prefix(pointer)?;
        while let Some((outer, rest)) = inner.split_once('<')
            && ["Mutex", "RwLock", "RefCell"].contains(&outer.rsplit("::").next().unwrap_or(outer))
        {
            inner = rest;
        }
        let path: String = inner.chars().take_while(|c| is_path(*c)).collect();
        let is_own = path.split_once("::").is_some_and(|(name, _)| self.own.contains(name));
        is_own.then_some(path)
    }

    /// The program's types in the name of a type, and the crates of its other types.
    fn types_in(&self, name: &str) -> (Vec<String>, Vec<String>) {
        let (mut types, mut foreign) = (Vec::new(), Vec::new());
        for path in name.split(|c| !is_path(c)).filter(|path| !path.starts_with(':') && !path.ends_with(':'))
        {
            let Some((crate_name, rest)) = path.split_once("::") else { continue };
            // The first name may be a module of std: a type with a common name keeps its module (`lifecycle::Packet`).
            let is_crate =
                rest.contains("::") || self.own.contains(crate_name) || self.others.contains(crate_name);
            if !is_crate && feature_for(crate_name).is_none() {
                continue;
            }
            let (list, one) = match self.own.contains(crate_name) {
                true => (&mut types, path),
                false => (&mut foreign, crate_name),
            };
            if !list.iter().any(|known| known == one) {
                list.push(one.to_owned());
            }
        }
        (types, foreign)
    }

    /// The type of the program to which a method belongs.
    fn method_type(&self, function: &str) -> Option<String> {
        let path = base_name(function);
        let parts: Vec<&str> = path.split("::").collect();
        let is_type = |part: &&str| part.starts_with(|c: char| c.is_ascii_uppercase());
        let last = parts.iter().rposition(is_type)?;
        self.own.contains(parts[0]).then(|| parts[..=last].join("::"))
    }
}

fn is_path(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == ':'
}

/// The path of a function without type arguments, traits and closures: `app::Cache::fill` for
/// `<app::Cache<u8> as app::Fill>::fill::{{closure}}`.
pub(super) fn base_name(function: &str) -> String {
    let mut path: Vec<&str> = Vec::new();
    for part in segments(function) {
        if let Some(owner) = part.strip_prefix("<impl ").and_then(|part| part.strip_suffix('>')) {
            path = segments(owner.split_once(" for ").map_or(owner, |(_, owner)| owner));
        } else if let Some(owner) = part.strip_prefix('<') {
            let end = owner.find(" as ").unwrap_or(owner.len() - usize::from(owner.ends_with('>')));
            path.extend(segments(&owner[..end]));
        } else if !part.starts_with('{') {
            path.push(part);
        }
    }
    let names = path.iter().map(|part| part.split('<').next().unwrap_or(part));
    names.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("::")
}

/// Whether a function of the program is written in C or C++: its name has no crate, or its source file is not a Rust
/// file.
fn is_c(function: &str, place: &str) -> bool {
    let has_source = !place.is_empty() && !place.contains(" +0x");
    if has_source { !place.contains(".rs") } else { !function.contains("::") }
}

/// The container whose function is outermost in `frames`. Without a container, the type that the stack names.
fn type_name(frames: &[CallFrame<'_>], verdict: Option<&TypeVerdict>) -> Option<String> {
    if let Some(TypeVerdict::Typed { shape, name, .. }) = verdict {
        // The outermost container does not count here: it is the vector from which the program made the box.
        if *shape == BlockShape::BoxedSlice {
            return Some(format!("Box<{name}>"));
        }
        // The names of the functions of `Arc<[u8]>` may contain only `u8`.
        for (block, pointer) in [("ArcInner<", "Arc<"), ("RcInner<", "Rc<")] {
            if let Some(rest) = name.strip_prefix(block) {
                return Some(format!("{pointer}{rest}"));
            }
        }
    }
    frames.iter().rev().find_map(container_of).or_else(|| verdict.and_then(TypeVerdict::type_name))
}

/// Whether the function of a frame belongs to another package. The path of its source file decides: cargo and the
/// compiler keep foreign sources in certain folders, and libraries of the system have relative paths. If the source
/// file is unknown, only a crate with the same name as the frame's module counts as the program's own.
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

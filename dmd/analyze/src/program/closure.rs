//! Finds the function that contains a closure.
//!
//! Debug information with only lines names a closure by its number, with the module of its file:
//! `boa_gc::{closure#0}<T>`. The stack often shows the function that contains the closure, in one of two ways:
//!
//! - A frame that calls the closure has the closure among its types:
//!   `try_with<boa_gc::alloc_gc::{closure_env#0}<T>>`.
//! - Only library functions are between the closure and a function of the same file. This function passed the closure
//!   to the library functions.
//!
//! If the stack does not show the function, the closure keeps its name.
//!
//! The code of async functions and blocks also has such names: `app::{async_fn#0}`. The functions of the runtime that
//! poll the code have it among their types.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::dump::{CallFrame, FrameTextId};
use crate::names::{CrateFolders, FoldReason, FoldRules, FunctionName, segments};
use crate::records::{Analysis, CutStackId};

/// The frames of an analysis. Its closures have the names of the functions that contain them.
pub(super) struct FunctionNames<'a> {
    analysis: &'a Analysis,
    /// The full names of closures. A closure has one name in all stacks.
    closures: FxHashMap<FrameTextId, String>,
}

impl<'a> FunctionNames<'a> {
    pub(super) fn new(analysis: &'a Analysis) -> Self {
        let alone: Vec<Option<BareClosure<'_>>> =
            analysis.texts.iter().map(|text| BareClosure::parse(&text.frame())).collect();
        let mut closures: FxHashMap<FrameTextId, String> = FxHashMap::default();
        if alone.iter().all(Option::is_none) {
            return Self { analysis, closures };
        }
        let folds = FoldRules::new();
        let mut by_text: FxHashMap<FrameTextId, OuterFunctions> = FxHashMap::default();
        let mut by_name: FxHashMap<(&str, &str), OuterFunctions> = FxHashMap::default();
        for stack in analysis.stacks.ids() {
            let texts = analysis.stacks.get(stack);
            for (at, text) in texts.iter().enumerate() {
                let Some(closure) = &alone[text.index()] else { continue };
                let outer = texts[at + 1..].iter().map(|text| {
                    let frame = analysis.texts.get(*text).frame();
                    (frame, alone[text.index()].is_some())
                });
                let found = closure.around(outer, &folds);
                by_name.entry((closure.name, closure.file)).or_default().add(&found);
                by_text.entry(*text).or_default().add(&found);
            }
        }
        closures.extend(by_text.into_iter().filter_map(|(text, around)| {
            let closure = alone[text.index()].as_ref()?;
            // Another line of the same closure may be on a stack that shows the function that contains the closure.
            let of_name = by_name.get(&(closure.name, closure.file));
            let around = if around.is_unknown() { of_name? } else { &around };
            let function = around.function()?;
            Some((
                text,
                match closure.kind {
                    "async_fn" => function.clone(),
                    _ => format!("{function}::{}", closure.own),
                },
            ))
        }));
        Self { analysis, closures }
    }

    /// The frames of a stack, innermost first.
    pub(super) fn frames(&self, stack: CutStackId) -> Vec<CallFrame<'_>> {
        let texts = self.analysis.stacks.get(stack).iter();
        let frame = |text: &FrameTextId| {
            let frame = self.analysis.texts.get(*text).frame();
            CallFrame { function: self.closures.get(text).map(String::as_str).or(frame.function), ..frame }
        };
        texts.map(frame).collect()
    }

    /// Whether a frame's function shares its name with other functions of the file: code of an async function or block
    /// whose function is unknown.
    pub(super) fn is_shared(frame: &CallFrame<'_>) -> bool {
        BareClosure::parse(frame).is_some_and(|closure| closure.kind.starts_with("async"))
    }

    /// The path of a function on a stack. A closure's path includes the function that contains it.
    pub(super) fn path(&self, stack: CutStackId, path: &str) -> String {
        let of_name = |name: &str| FunctionName::parse(name).map(|name| name.path.join("::"));
        let closure = self.analysis.stacks.get(stack).iter().find_map(|text| {
            let name = self.closures.get(text)?;
            let before = self.analysis.texts.get(*text).frame().function?;
            (of_name(before)? == path).then(|| of_name(name)).flatten()
        });
        closure.unwrap_or_else(|| path.to_owned())
    }
}

/// The functions that may contain a closure.
#[derive(Default)]
struct OuterFunctions {
    /// Functions whose names are in the types of the closure's callers.
    named: BTreeSet<String>,
    /// Functions on the stack whose source file is the closure's file.
    near: BTreeSet<String>,
}

impl OuterFunctions {
    fn add(&mut self, found: &OuterName) {
        match found {
            OuterName::Named(function) => self.named.insert(function.clone()),
            OuterName::Near(function) => self.near.insert(function.clone()),
            OuterName::Unknown => false,
        };
    }

    fn is_unknown(&self) -> bool {
        self.named.is_empty() && self.near.is_empty()
    }

    /// The function that contains the closure; `None` if no function is known, or if several functions may contain it.
    fn function(&self) -> Option<&String> {
        let best = if self.named.is_empty() { &self.near } else { &self.named };
        best.first().filter(|_| best.len() == 1)
    }
}

enum OuterName {
    Named(String),
    Near(String),
    Unknown,
}

/// A closure whose name has only the module of its file.
struct BareClosure<'t> {
    name: &'t str,
    file: &'t str,
    /// `boa_gc`
    module: &'t str,
    /// `{closure#0}<T>`
    own: &'t str,
    /// `closure`
    kind: &'t str,
    /// `0`
    number: &'t str,
}

/// The kinds of code that have a number in place of a name.
const KINDS: &[&str] = &["closure", "async_fn", "async_block", "async_closure"];

impl<'t> BareClosure<'t> {
    fn parse(frame: &CallFrame<'t>) -> Option<Self> {
        let (name, file) = (frame.function?, frame.file?);
        if !name.contains('#') {
            return None;
        }
        let parts = segments(name);
        let (own, before) = parts.split_last()?;
        let (kind, number) = own.strip_prefix('{')?.split('}').next()?.split_once('#')?;
        if !KINDS.contains(&kind) {
            return None;
        }
        let module = name[..name.len() - own.len()].strip_suffix("::")?;
        // A crate's name may differ from its folder's name.
        let of_file = CrateFolders::default().module(file)?;
        (of_file.split("::").skip(1).eq(before.iter().copied().skip(1))).then_some(Self {
            name,
            file,
            module,
            own,
            kind,
            number,
        })
    }

    /// Finds the function that contains the closure among the outer frames. `outer` has a flag for each frame: whether
    /// the frame is a closure whose name does not contain a function.
    fn around<'f>(&self, outer: impl Iterator<Item = (CallFrame<'f>, bool)>, folds: &FoldRules) -> OuterName {
        for (frame, is_alone) in outer {
            let Some(function) = frame.function else { return OuterName::Unknown };
            let named = self.environments(function);
            match named.first() {
                Some(only) if named.len() == 1 => return OuterName::Named(only.clone()),
                Some(_) => return OuterName::Unknown,
                None => {}
            }
            let is_async = self.kind.starts_with("async");
            if is_async && segments(function).last().is_some_and(|last| last.starts_with("{async")) {
                // The runtime polls the outer async function, and the outer function polls this function. So the types
                // of the runtime name the outer function.
                return OuterName::Unknown;
            }
            let is_near = frame.file == Some(self.file) && !is_async;
            let is_closure = is_alone || segments(function).last().is_some_and(|last| last.starts_with('{'));
            if is_near && !is_closure {
                return OuterName::Near(without_types(function).to_owned());
            }
            let fold = folds.reason(&frame);
            // Functions of libraries and collections call closures of their callers, so the search continues with the
            // caller.
            if !is_near
                && matches!(
                    fold,
                    None | Some(
                        FoldReason::Allocator | FoldReason::Executor | FoldReason::Start | FoldReason::User
                    )
                )
            {
                return OuterName::Unknown;
            }
        }
        OuterName::Unknown
    }

    /// The functions that contain a closure with this number, according to the types in a caller's name.
    fn environments(&self, function: &str) -> BTreeSet<String> {
        let environment = format!("::{{{}_env#", self.kind);
        let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '{' | '}' | '#');
        let path = |(at, _): (usize, &str)| {
            let number = function[at + environment.len()..].split('}').next();
            let before = &function[..at];
            let start = before
                .rfind(|c| !is_path(c))
                .map_or(0, |other| other + before[other..].chars().next().map_or(0, char::len_utf8));
            let path = &before[start..];
            let is_of_module = path.strip_prefix(self.module).is_some_and(|below| below.starts_with("::"));
            let parts = path.split("::").filter(|part| !part.starts_with("{impl#"));
            (number == Some(self.number) && is_of_module).then(|| parts.collect::<Vec<_>>().join("::"))
        };
        function.match_indices(&environment).filter_map(path).collect()
    }
}

/// A function's name without the types at its end.
fn without_types(function: &str) -> &str {
    let last = *segments(function).last().unwrap_or(&function);
    let before = &function[..function.len() - last.len()];
    match last.find('<') {
        Some(0) => before.strip_suffix("::").unwrap_or(function),
        Some(at) => &function[..before.len() + at],
        None => function,
    }
}

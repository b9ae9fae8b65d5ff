//! Functions that the compiler or the linker merged: of several functions with equal code one is left, with its name.
//!
//! A function that allocates for a type depends on the type's size and alignment, and often on nothing else. The stack of
//! a block then names a type of the same layout as the block's own. This excuses a pointer that contradicts the stack, so
//! it needs proof, or a wrong type could hide behind it. The stack itself has the proof: functions further out
//! are instances for the pointer's type, and call one for the other type.

use dmd_analyze::{CallFrame, Dump, FunctionName};
use hashbrown::HashMap;

use crate::debug_info::{DebugInfo, TypeId};

/// The stacks of a dump, and what is known about merged functions on them.
#[derive(Debug)]
pub(crate) struct MergedFunctions<'d> {
    dump: &'d Dump,
    /// By the stack, the type that it names and the type that a pointer names.
    known: HashMap<(usize, TypeId, TypeId), bool>,
}

impl<'d> MergedFunctions<'d> {
    pub(crate) fn new(dump: &'d Dump) -> Self {
        Self { dump, known: HashMap::new() }
    }

    /// Whether a stack that names a type proves that it has the name of a merged function, and that the block is of
    /// another type.
    pub(crate) fn explain(&mut self, stack: usize, named: TypeId, owned: TypeId, info: &DebugInfo) -> bool {
        let key = (stack, info.same_as(named), info.same_as(owned));
        *self.known.entry(key).or_insert_with(|| {
            let functions: Vec<_> = self.dump.stack(stack).map(StackFunction::new).collect();
            info.same_layout(named, owned) && callers_name(&functions, info.name(named), info.name(owned))
        })
    }
}

/// A function on a stack.
struct StackFunction<'d> {
    name: &'d str,
    parts: FunctionName<'d>,
    inlined: bool,
}

impl<'d> StackFunction<'d> {
    fn new(frame: CallFrame<'d>) -> Self {
        let name = frame.name();
        Self { name, parts: FunctionName::parse(name).unwrap_or_default(), inlined: frame.inlined }
    }

    /// Whether it is an instance for a type, for a part of it, or for a type that contains it. Numbers and the standard
    /// allocator are parts of many types, and prove nothing.
    fn is_for(&self, of: &str) -> bool {
        let is_own = |part: &str| part.contains("::") && part != "alloc::alloc::Global";
        has_word(self.name, of) || self.parts.arguments.iter().any(|part| is_own(part) && has_word(of, part))
    }

    /// The path of the function that has it, if it is a closure. The name of a closure has no types.
    fn closure_of(&self) -> Option<&[&'d str]> {
        let path = &self.parts.path;
        let closure = path.iter().position(|part| part.trim_start_matches('{').starts_with("closure"));
        closure.map(|at| &path[..at])
    }
}

/// Whether a function for the type `named` was called by one that is for the type `owned` and not for `named`. No other
/// function of its own may be between them, but a closure of the latter. Inlined ones may: the compiler inlines merged
/// functions, too.
fn callers_name(functions: &[StackFunction<'_>], named: &str, owned: &str) -> bool {
    let mut is_merged = false;
    let mut closure_of: Option<&[&str]> = None;
    for function in functions {
        match (function.is_for(named), function.is_for(owned)) {
            (true, _) => is_merged = true,
            (false, true) if is_merged => return closure_of.is_none_or(|path| path == function.parts.path),
            (false, false) if is_merged && !function.inlined => match (closure_of, function.closure_of()) {
                (None, Some(path)) => closure_of = Some(path),
                _ => return false,
            },
            (false, _) => {}
        }
    }
    false
}

/// Whether a text has a word, such as a type's name in the name of another type.
fn has_word(text: &str, word: &str) -> bool {
    if word.is_empty() {
        return false;
    }
    let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !before.ends_with(in_word) && !after.starts_with(in_word)
    })
}

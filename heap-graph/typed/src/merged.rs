//! Functions that the compiler or the linker merged. If several functions have equal code, only one function remains,
//! under its own name.
//!
//! A function that allocates for a type often depends only on the type's size and alignment. After a merge, the stack
//! of a block names a type with the same layout as the block's real type. So a pointer may contradict the stack and
//! still be right. A merge needs proof: without it, the assumption of a merge could hide a wrong type. The stack itself
//! contains the proof: outer functions are instances for the pointer's type, and call a function for the type that the
//! stack names.

use dmd_analyze::{CallFrame, Dump, FunctionName};
use hashbrown::HashMap;

use crate::debug_info::{DebugInfo, TypeId};

/// The stacks of a dump, and the results about merged functions on them.
#[derive(Debug)]
pub(crate) struct MergedFunctions<'d> {
    dump: &'d Dump,
    /// The results, by the stack, the type that the stack names and the type that a pointer names.
    known: HashMap<(usize, TypeId, TypeId), bool>,
}

impl<'d> MergedFunctions<'d> {
    pub(crate) fn new(dump: &'d Dump) -> Self {
        Self { dump, known: HashMap::new() }
    }

    /// Whether the stack proves that its function was merged, so that the block has the type `owned` instead of
    /// `named`.
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

    /// Whether the function is an instance for a type, for a part of the type, or for a type that contains it.
    /// Numbers and the standard allocator are parts of many types, so they do not count.
    fn is_for(&self, of: &str) -> bool {
        let is_own = |part: &str| part.contains("::") && part != "alloc::alloc::Global";
        has_word(self.name, of) || self.parts.arguments.iter().any(|part| is_own(part) && has_word(of, part))
    }

    /// For a closure: the path of the enclosing function. The name of a closure contains no types.
    fn closure_of(&self) -> Option<&[&'d str]> {
        let path = &self.parts.path;
        let closure = path.iter().position(|part| part.trim_start_matches('{').starts_with("closure"));
        closure.map(|at| &path[..at])
    }
}

/// Whether a function for the type `owned`, and not for `named`, has called a function for the type `named`. Between
/// the two functions, only a closure of the caller and inlined functions are allowed: the compiler also inlines merged
/// functions.
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

/// Whether a text contains a word, such as a type's name in the name of another type.
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

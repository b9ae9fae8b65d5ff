//! The role of a frame in the allocation of a block.

use super::BlockShape;
use super::generics::{FunctionName, is_stand_in, split};
use super::rules::{
    ALLOCATORS, ArgumentRule, ENTRIES, ENTRY_MODULE, ENTRY_SYMBOLS, IN_C, INNER, OF_REFERENCES, RULES,
    TypeRule, TypeSource,
};
use super::spelling::shorten;
use crate::dump::CallFrame;

/// The role of a frame.
#[derive(Clone, Debug)]
pub(super) enum FrameRole {
    /// The entry to an allocator: inner calls belong to the allocator.
    Entry,
    /// Passes a call on to the allocator. The name does not contain the type.
    Passes,
    /// Allocates blocks of this type.
    Typed(FrameType),
    /// Anything else.
    Other,
}

/// The type that a frame's name contains.
#[derive(Clone, Debug)]
pub(super) struct FrameType {
    pub(super) shape: BlockShape,
    pub(super) name: String,
    /// The generic arguments from which the name follows.
    pub(super) arguments: Vec<String>,
}

impl PartialEq for FrameType {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.name == other.name
    }
}

/// The facts about a frame that verdicts need, computed once for each frame of a dump.
#[derive(Clone, Debug)]
pub(super) struct FrameFacts {
    pub(super) role: FrameRole,
    pub(super) inlined: bool,
    /// The function's own generic arguments.
    arguments: Vec<String>,
}

impl FrameFacts {
    pub(super) fn new(frame: &CallFrame<'_>) -> Self {
        let Some(name) = FunctionName::parse(frame.name()) else {
            return Self { role: FrameRole::Other, inlined: frame.inlined, arguments: Vec::new() };
        };
        // Without a line, the call may represent several merged calls, whose inlined frames are lost. A frame that is
        // known only by its symbol also lacks its inlined frames.
        let role = role(&name, frame.name(), frame.line.is_some());
        let arguments = name.arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Self { role, inlined: frame.inlined, arguments }
    }

    /// Whether the function is an instance for one of the types in `typed`. The linker may have merged this instance
    /// with the instance for another type of the same layout. The merged function has the name of one of the instances.
    pub(super) fn is_instance_for(&self, typed: &FrameType) -> bool {
        typed.arguments.iter().any(|one| self.arguments.iter().any(|argument| mentions(argument, one)))
    }
}

fn role(name: &FunctionName<'_>, text: &str, line_known: bool) -> FrameRole {
    let Some((function, before)) = name.path.split_last() else { return FrameRole::Other };
    let module = before.join("::");
    if ENTRY_SYMBOLS.split(' ').any(|start| function.starts_with(start)) && matches!(&*module, "" | "__rustc")
    {
        return FrameRole::Entry;
    }
    if module == ENTRY_MODULE && has(ENTRIES, function) {
        return FrameRole::Entry;
    }
    let within = |parent: &str| {
        module.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let of_reference = || text.starts_with("<&") && text.contains(OF_REFERENCES);
    if (module.is_empty() && (has(IN_C, function) || of_reference())) || ALLOCATORS.split(' ').any(within) {
        return FrameRole::Passes;
    }
    let mut fitting = RULES.iter().filter(|rule| line_known || !rule.runs_others);
    if let Some(typed) = fitting.find_map(|rule| apply(rule, name, before, function)) {
        return FrameRole::Typed(typed);
    }
    let is_closure = function.starts_with("{closure") || function.starts_with("{{closure");
    let passes = INNER.iter().any(|(parent, functions)| {
        // An empty list means functions with at most one generic argument. A function with more arguments names the
        // block's type, but may also run the program's code.
        let any = functions.is_empty() && name.arguments.len() <= 1;
        within(parent) && (any || has(functions, function) || (is_closure && has(functions, "{closure}")))
    });
    if passes { FrameRole::Passes } else { FrameRole::Other }
}

/// Whether `word` is in a list of words.
fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// The type that a rule finds; `None` if the rule does not match the function.
fn apply(rule: &TypeRule, name: &FunctionName<'_>, before: &[&str], function: &str) -> Option<FrameType> {
    if !(rule.functions.is_empty() || has(rule.functions, function)) {
        return None;
    }
    let is_module =
        |path: &[&str]| rule.modules.split(' ').any(|module| module.split("::").eq(path.iter().copied()));
    let (last, above) = before.split_last()?;
    let has_owner = match is_module(before) {
        true => *last == rule.owner,
        false if is_module(above) && *last == rule.owner => true,
        false if is_module(above) && last.starts_with("{impl#") => false,
        false => return None,
    };
    let given = &name.arguments;
    let fits = match rule.arguments {
        ArgumentRule::AtLeast(count) => given.len() >= count || has_owner,
        ArgumentRule::OfOwner => has_owner && name.of_owner,
        ArgumentRule::One => given.len() == 1,
    };
    if !fits {
        return None;
    }
    let first = || given.first().copied().filter(|argument| is_concrete(argument));
    let slice = |element: &str| if is_unsized(element) { element.to_owned() } else { format!("[{element}]") };
    let (arguments, full) = match rule.gives {
        TypeSource::Always(fixed) => (Vec::new(), fixed.to_owned()),
        TypeSource::First => (vec![first()?], first()?.to_owned()),
        TypeSource::Slice => (vec![first()?], slice(first()?)),
        TypeSource::SliceOfArray => {
            let inside = first()?.strip_prefix('[')?.strip_suffix(']')?;
            let parts = split(inside, ";")?;
            let [element, _] = &parts[..] else { return None };
            (vec![*element], format!("[{element}]"))
        }
        TypeSource::Pair => {
            let second = given.get(1).copied().filter(|argument| is_concrete(argument))?;
            (vec![first()?, second], format!("({}, {second})", first()?))
        }
        TypeSource::FourWithin(outer) => {
            let four = given.get(..4).filter(|four| four.iter().all(|argument| is_concrete(argument)))?;
            (four.to_vec(), format!("{outer}<{}>", four.join(", ")))
        }
        TypeSource::FirstAndUnit => (vec![first()?], format!("({}, ())", first()?)),
        TypeSource::Within(outer) => (vec![first()?], format!("{outer}<{}>", first()?)),
        TypeSource::SliceWithin(outer) => (vec![first()?], format!("{outer}<{}>", slice(first()?))),
    };
    let arguments = arguments.into_iter().map(str::to_owned).collect();
    let shape = match rule.shape {
        BlockShape::One if is_unsized(&full) => BlockShape::BoxedSlice,
        shape => shape,
    };
    Some(FrameType { shape, name: shorten(&full), arguments })
}

/// Whether a type is a slice or `str`.
fn is_unsized(name: &str) -> bool {
    let inside = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    name == "str" || inside.and_then(|inside| split(inside, ";")).is_some_and(|parts| parts.len() == 1)
}

/// Whether an argument is a real type: neither an allocator nor a parameter's name.
fn is_concrete(argument: &str) -> bool {
    !argument.ends_with("::Global") && !is_stand_in(argument)
}

/// Whether the text of a type contains `word` as a whole word.
fn mentions(text: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !before.ends_with(is_word) && !after.starts_with(is_word)
    })
}

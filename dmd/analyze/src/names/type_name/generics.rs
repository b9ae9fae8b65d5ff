//! Splits a function's name, as symbols and debug information print it, into its path and its types.
//!
//! Names have one of four forms: `<alloc::vec::Vec<T> as Trait>::f::<U>` (v0 symbols),
//! `alloc::vec::Vec<T,A>::f<app::Job, Global>` (older symbols, where `T` is the function's first type),
//! `alloc::vec::{impl#3}::f<app::Job, Global>` (debug information), and `alloc::vec::f<app::Job, Global>` (debug
//! information with only lines, where the module comes from the file).
//!
//! Names are untrusted: a name with unbalanced brackets has no parts. The parser visits each byte a constant number of
//! times.

/// A function's name in parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionName<'t> {
    /// The path of the function without types: the modules, the owner type if the name contains it, and the function.
    pub path: Vec<&'t str>,
    /// The generic arguments of the owner type, without lifetimes. If the owner has no arguments, or if they contain a
    /// parameter's name such as `T`, the arguments of the function.
    pub arguments: Vec<&'t str>,
    /// Whether the arguments belong to the owner type.
    pub of_owner: bool,
}

impl<'t> FunctionName<'t> {
    /// The parts of a name. `None` if its brackets are unbalanced.
    pub fn parse(name: &'t str) -> Option<Self> {
        let name = name.trim();
        let mut parts = split(name, "::")?.into_iter();
        let first = parts.next()?;
        let mut path = Vec::new();
        let mut of_owner = Vec::new();
        if let Some(inside) = first.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
            let owner = split(inside, " as ")?.into_iter().next()?.trim();
            add_path(owner, &mut path, &mut of_owner)?;
        } else {
            add_segment(first, &mut path, &mut of_owner)?;
        }
        let mut of_function = Vec::new();
        for part in parts {
            if !of_function.is_empty() {
                // Types before the last segment belong to the owner type.
                of_owner = core::mem::take(&mut of_function);
            }
            add_segment(part, &mut path, &mut of_function)?;
        }
        if path.len() == 1 && of_function.is_empty() {
            of_function = core::mem::take(&mut of_owner);
        }
        let known = !of_owner.is_empty() && !of_owner.iter().any(|argument| is_stand_in(argument));
        Some(Self { path, arguments: if known { of_owner } else { of_function }, of_owner: known })
    }
}

/// Adds the segments of a type's path, and the arguments of its last segment that has arguments. A slice has the
/// segment `[]`. Other types that are not paths have no segment.
fn add_path<'t>(text: &'t str, path: &mut Vec<&'t str>, arguments: &mut Vec<&'t str>) -> Option<()> {
    if let Some(element) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        path.push("[]");
        arguments.push(element);
    }
    if !text.starts_with(|c: char| c.is_alphabetic() || c == '_') || text.starts_with("dyn ") {
        return Some(());
    }
    for part in split(text, "::")? {
        add_segment(part, path, arguments)?;
    }
    Some(())
}

/// Adds a segment such as `Vec<T, A>`. A segment `<T, A>` belongs to the segment before it.
fn add_segment<'t>(part: &'t str, path: &mut Vec<&'t str>, arguments: &mut Vec<&'t str>) -> Option<()> {
    let (name, inside) = match part.find('<').filter(|_| part.ends_with('>')) {
        // `Vec<T>` and `{closure_env#0}<T>` are names with arguments; `<impl Trait for T>` contains no name.
        Some(open) => (&part[..open], Some(&part[open + 1..part.len() - 1])),
        None => (part, None),
    };
    if !name.is_empty() {
        path.push(name);
    }
    let Some(inside) = inside.filter(|inside| !inside.starts_with("impl ")) else { return Some(()) };
    let types = split(inside, ",")?.into_iter().map(str::trim);
    let types: Vec<&str> = types.filter(|text| !text.is_empty() && !text.starts_with('\'')).collect();
    if !types.is_empty() {
        *arguments = types;
    }
    Some(())
}

/// Whether a type contains the name of a generic parameter, such as `T` in `RawVec<T,A>`. Real types have a path, or a
/// name in lower case.
pub(super) fn is_stand_in(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    while let Some(start) = text[at..].find(is_word).map(|len| at + len) {
        let end = text[start..].find(|c| !is_word(c)).map_or(text.len(), |len| start + len);
        let (before, word, after) = (&text[..start], &text[start..end], &text[end..]);
        let alone = !before.ends_with("::") && !after.starts_with("::");
        let is_name = word == "_" || word.starts_with(|c: char| c.is_ascii_uppercase());
        // `Output = i32` names an associated type.
        if alone && is_name && !after.trim_start().starts_with('=') {
            return true;
        }
        at = end;
    }
    false
}

/// Splits a text at separators outside of brackets. `None` if the brackets are unbalanced.
pub(super) fn split<'t>(text: &'t str, separator: &str) -> Option<Vec<&'t str>> {
    let bytes = text.as_bytes();
    let separator = separator.as_bytes();
    let mut open = Vec::new();
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            byte @ (b'<' | b'(' | b'[' | b'{') => open.push(byte),
            // The arrow before a function's result.
            b'>' if at > 0 && matches!(bytes[at - 1], b'-' | b'=') => {}
            byte @ (b'>' | b')' | b']' | b'}') => {
                (open.pop() == Some(opening(byte))).then_some(())?;
            }
            _ => {}
        }
        if open.is_empty() && bytes[at..].starts_with(separator) {
            parts.push(&text[start..at]);
            at += separator.len();
            start = at;
        } else {
            at += 1;
        }
    }
    parts.push(&text[start..]);
    open.is_empty().then_some(parts)
}

fn opening(closing: u8) -> u8 {
    match closing {
        b'>' => b'<',
        b')' => b'(',
        b']' => b'[',
        _ => b'{',
    }
}

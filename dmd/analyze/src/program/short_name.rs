//! Short names of functions and types: `Vec<String>`, `<VecWriter as TerminatingWrite>::terminate_ref`,
//! `index::run::{closure}`.
//!
//! A name keeps the parts that distinguish it from other names in a view: the last part of a type's path, the last two
//! parts of a function's path. The full name and the source file are still available to views.

/// Generic arguments that are the default allocator or hasher.
const USUAL: &[&str] = &["Global", "RandomState", "System"];

/// The maximum depth of generics. Deeper generics are elided, so that a name cannot exhaust the stack.
const DEEPEST: usize = 24;

/// The number of parts of each path that a short name keeps, counted from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptParts {
    /// For paths outside of brackets.
    pub(crate) outer: usize,
    /// For paths in brackets.
    pub(crate) inner: usize,
}

impl KeptParts {
    /// The number of parts that the short name of a function keeps.
    pub(crate) const FUNCTION: Self = Self { outer: 2, inner: 1 };
    /// The number of parts that a type's short name keeps.
    pub(crate) const TYPE: Self = Self { outer: 1, inner: 1 };
}

/// Shortens a function's name. If the name exceeds `width` characters, the innermost generics are elided first, and its
/// end is cut last.
pub(crate) fn function(name: &str, width: usize) -> String {
    short(name, KeptParts::FUNCTION, width)
}

/// Shortens any name, or a text that contains a name, keeping the given parts; see [`function`].
pub(crate) fn short(name: &str, parts: KeptParts, width: usize) -> String {
    fitting(&shortened(name, parts), width)
}

fn shortened(name: &str, parts: KeptParts) -> String {
    let mut reader = NameReader { rest: name, depth: 0, inner: parts.inner };
    let mut short = reader.sequence(parts.outer, "");
    if !reader.rest.is_empty() {
        // A closing bracket without an opening bracket: no compiler wrote this name, so it stays unchanged.
        short = name.to_owned();
    }
    short
}

fn fitting(name: &str, width: usize) -> String {
    let deepest = |name: &str| {
        let mut depth = 0_usize;
        let mut most = 0;
        for c in angles(name) {
            match c.1 {
                '<' => depth += 1,
                _ => depth = depth.saturating_sub(1),
            }
            most = most.max(depth);
        }
        most
    };
    let mut name = name.to_owned();
    let mut depth = deepest(&name).min(DEEPEST);
    while name.chars().count() > width && depth > 0 {
        name = elide(&name, depth);
        depth -= 1;
    }
    // The type is more useful than the trait.
    if name.chars().count() > width
        && let Some((owner, rest)) = name.strip_prefix('<').and_then(|inner| inner.split_once(" as "))
        && let Some((_, rest)) = rest.split_once(">::")
    {
        name = format!("{owner}::{rest}");
    }
    if name.chars().count() <= width {
        return name;
    }
    let mut cut: String = name.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Elides the generics of the type before a method's name, if the name exceeds `width` characters: the method and its own
/// generics are more useful.
pub(crate) fn without_owner_generics(name: &str, width: usize) -> String {
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, c) in angles(name) {
        if c == '<' {
            start = if depth == 0 { at } else { start };
            depth += 1;
            continue;
        }
        depth = depth.saturating_sub(1);
        if depth == 0 && start > 0 && name[at..].starts_with(">::") && name.chars().count() > width {
            return format!("{}<..{}", &name[..start], &name[at..]);
        }
    }
    name.to_owned()
}

/// The positions of the brackets of generics. The `>` of an arrow does not count.
fn angles(name: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let bytes = name.as_bytes();
    name.char_indices()
        .filter(move |(at, c)| *c == '<' || (*c == '>' && !(*at > 0 && matches!(bytes[at - 1], b'-' | b'='))))
}

/// Replaces the generics at a depth by `..`. The contents of `<T as Trait>` stay, because no name precedes the opening
/// bracket.
fn elide(name: &str, at_depth: usize) -> String {
    let mut out = String::with_capacity(name.len());
    let (mut depth, mut from, mut elided) = (0_usize, 0, false);
    for (at, c) in angles(name) {
        if c == '<' {
            depth += 1;
            if depth == at_depth && !elided {
                let is_type =
                    at > 0 && name[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '}');
                if is_type {
                    out.push_str(&name[from..=at]);
                    elided = true;
                }
            }
        } else {
            if depth == at_depth && elided {
                out.push_str("..");
                from = at;
                elided = false;
            }
            depth = depth.saturating_sub(1);
        }
    }
    if !elided {
        out.push_str(&name[from..]);
    } else {
        out.push_str("..");
    }
    out
}

struct NameReader<'n> {
    rest: &'n str,
    depth: usize,
    /// The parts that paths in brackets keep.
    inner: usize,
}

impl NameReader<'_> {
    /// Reads up to the end, or up to a closing bracket, which is not consumed. Paths keep their last `parts` parts.
    fn sequence(&mut self, parts: usize, end: &str) -> String {
        let mut out = String::new();
        while let Some(c) = self.rest.chars().next() {
            if end.contains(c) && !end.is_empty() {
                break;
            }
            if is_word(c) || c == '{' {
                let path = self.path(parts);
                out.push_str(&path);
                continue;
            }
            if self.rest.starts_with("->") || self.rest.starts_with("=>") {
                out.push_str(&self.rest[..2]);
                self.rest = &self.rest[2..];
                continue;
            }
            match closing(c) {
                // An expression such as `<T as Trait>`, `[T; 4]` or `(A, B)`. A path may follow.
                Some(close) => {
                    let inner = self.bracketed(c, close);
                    out.push_str(&inner);
                    if self.rest.starts_with("::") {
                        self.rest = &self.rest[2..];
                        out.push_str("::");
                        out.push_str(&self.path(usize::MAX));
                    }
                }
                None if c == '>' || c == ']' || c == ')' => break,
                None => {
                    out.push(c);
                    self.rest = &self.rest[c.len_utf8()..];
                }
            }
        }
        out
    }

    /// Reads brackets with their contents.
    fn bracketed(&mut self, open: char, close: char) -> String {
        self.rest = &self.rest[open.len_utf8()..];
        self.depth += 1;
        let mut out = String::from(open);
        if self.depth > DEEPEST {
            self.skip(open, close);
            out.push_str("..");
        } else {
            let inner = self.sequence(self.inner, &close.to_string());
            out.push_str(&without_usual(&inner));
            if self.rest.starts_with(close) {
                self.rest = &self.rest[close.len_utf8()..];
            }
        }
        self.depth -= 1;
        out.push(close);
        if out == "<>" { String::new() } else { out }
    }

    /// Skips everything up to the matching closing bracket, and the bracket itself.
    fn skip(&mut self, open: char, close: char) {
        let mut depth = 1_usize;
        let mut last = ' ';
        for (at, c) in self.rest.char_indices() {
            if c == open {
                depth += 1;
            } else if c == close && !(c == '>' && matches!(last, '-' | '=')) {
                depth -= 1;
                if depth == 0 {
                    self.rest = &self.rest[at + c.len_utf8()..];
                    return;
                }
            }
            last = c;
        }
        self.rest = "";
    }

    /// Reads `a::b::<T>::C<U>::f`, and keeps the last `parts` parts.
    fn path(&mut self, parts: usize) -> String {
        let mut all: Vec<String> = Vec::new();
        loop {
            let mut part = self.word();
            if self.rest.starts_with("::<") && !self.rest.starts_with("::<impl ") {
                self.rest = &self.rest[2..];
            }
            if self.rest.starts_with('<') {
                part.push_str(&self.bracketed('<', '>'));
            }
            if !part.is_empty() {
                all.push(part);
            }
            match self.rest.strip_prefix("::") {
                Some(rest) => self.rest = rest,
                None => break,
            }
            if self.rest.starts_with('<') {
                // `core::ptr::<impl Trait for T>::f`
                all.push(self.bracketed('<', '>'));
                match self.rest.strip_prefix("::") {
                    Some(rest) => self.rest = rest,
                    None => break,
                }
            }
        }
        // Legacy symbols end in a hash.
        if all.len() > 1 && all.last().is_some_and(|last| is_hash(last)) {
            all.pop();
        }
        all.dedup_by(|a, b| a == b && a.starts_with('{'));
        // Items inside of an async function belong to the function: drop `{async_fn#0}` before such items.
        let last = all.len().saturating_sub(1);
        let mut at = 0;
        all.retain(|part| {
            at += 1;
            !(part.starts_with("{async_fn") && (2..=last).contains(&at))
        });
        // A closure, or another part in braces, is not a name by itself.
        let named = |part: &String| !part.starts_with('{');
        let mut left = parts;
        let mut from = all.len();
        while from > 0 && left > 0 {
            from -= 1;
            if named(&all[from]) {
                left -= 1;
            }
        }
        all[from..].join("::")
    }

    /// Reads an identifier, or a part in braces such as `{closure#0}` or `{{closure}}`.
    fn word(&mut self) -> String {
        if self.rest.starts_with('{') {
            let mut depth = 0_usize;
            let end = self.rest.char_indices().find_map(|(at, c)| {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    _ => {}
                }
                (depth == 0).then_some(at + 1)
            });
            let (part, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
            self.rest = rest;
            return braces(part);
        }
        let end = self.rest.find(|c: char| !is_word(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        // In `&mut T` and `dyn Trait`, a keyword precedes the path.
        if ["mut", "dyn", "impl", "const", "for", "as", "unsafe", "extern", "fn"].contains(&word)
            && let Some(after) = self.rest.strip_prefix(' ')
            && self.depth < DEEPEST
        {
            self.rest = after;
            self.depth += 1;
            let path = self.path(self.inner);
            self.depth -= 1;
            return format!("{word} {path}");
        }
        word.to_owned()
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn closing(open: char) -> Option<char> {
    match open {
        '<' => Some('>'),
        '(' => Some(')'),
        '[' => Some(']'),
        _ => None,
    }
}

fn is_hash(part: &str) -> bool {
    part.len() == 17 && part.strip_prefix('h').is_some_and(|hash| hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// `{closure}` for `{{closure}}`, `{closure#1}` and `{closure_env#0}`; an empty text for `{impl#3}`, which is only a
/// number.
fn braces(part: &str) -> String {
    let inner = part.trim_matches(['{', '}']);
    let name = inner.split('#').next().unwrap_or(inner);
    match name {
        "closure_env" | "closure" => "{closure}".to_owned(),
        "impl" => String::new(),
        _ => format!("{{{name}}}"),
    }
}

/// Drops the default parameters.
fn without_usual(inner: &str) -> String {
    let mut rest = inner;
    while let Some((before, last)) = rest.rsplit_once(", ") {
        if !is_usual(last) {
            break;
        }
        rest = before;
    }
    if is_usual(rest) { String::new() } else { rest.to_owned() }
}

fn is_usual(parameter: &str) -> bool {
    parameter.rsplit("::").next().is_some_and(|last| USUAL.contains(&last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_what_tells_them_apart() {
        for (name, short) in [
            ("tv::main", "tv::main"),
            ("main", "main"),
            ("tantivy::indexer::segment_writer::index_documents", "segment_writer::index_documents"),
            ("<alloc::vec::Vec<u8> as std::io::Write>::write_all", "<Vec<u8> as Write>::write_all"),
            (
                "<tantivy::directory::ram_directory::VecWriter as tantivy_common::TerminatingWrite>::terminate_ref",
                "<VecWriter as TerminatingWrite>::terminate_ref",
            ),
            ("alloc::vec::Vec<alloc::string::String>::push", "Vec<String>::push"),
            (
                "alloc::raw_vec::RawVec<T,A>::grow_one<own::Job, alloc::alloc::Global>",
                "RawVec<T,A>::grow_one<Job>",
            ),
            ("tv::index::run::{{closure}}::{{closure}}", "index::run::{closure}"),
            ("tv::index::run::{closure#1}", "index::run::{closure}"),
            ("boa_gc::{impl#4}::alloc_gc::{closure#0}<a::B>", "boa_gc::alloc_gc::{closure}<B>"),
            ("core::ops::function::FnOnce::call_once::h0123456789abcdef", "FnOnce::call_once"),
            ("own::{impl#3}::fill", "own::fill"),
            ("<&mut a::b::C as a::D>::e", "<&mut C as D>::e"),
            ("<dyn a::b::C as a::D>::e", "<dyn C as D>::e"),
            ("core::ptr::drop_in_place::<a::b::C>", "ptr::drop_in_place<C>"),
            ("f<fn(a::B) -> a::c::D>", "f<fn(B) -> D>"),
            ("operator new(unsigned long)", "operator new(unsigned long)"),
            ("a::b::<impl c::d::E for f::g::H>::i", "<impl E for H>::i"),
        ] {
            assert_eq!(function(name, 200), short);
        }
        assert_eq!(
            shortened("std::collections::HashMap<a::B, c::D, std::hash::RandomState>", KeptParts::TYPE),
            "HashMap<B, D>"
        );
        assert_eq!(shortened("a::b::C<d::e::F>", KeptParts { outer: 2, inner: 2 }), "b::C<e::F>");
        assert_eq!(without_owner_generics("Parser<Config>::alloc<js::Id>", 20), "Parser<..>::alloc<js::Id>");
        assert_eq!(
            without_owner_generics("Parser<Config>::alloc<js::Id>", 29),
            "Parser<Config>::alloc<js::Id>"
        );
        assert_eq!(without_owner_generics("<A as B<C>>::d", 3), "<A as B<C>>::d");
        assert_eq!(without_owner_generics("alloc<js::Id>", 3), "alloc<js::Id>");
    }

    #[test]
    fn long_names_lose_their_generics() {
        let name = "a::Map<b::Vec<c::String>, d::E>::insert";
        assert_eq!(function(name, 40), "Map<Vec<String>, E>::insert");
        assert_eq!(function(name, 24), "Map<Vec<..>, E>::insert");
        assert_eq!(function(name, 18), "Map<..>::insert");
        assert_eq!(function(name, 8), "Map<..>…");
        assert_eq!(function("<a::VecWriter as b::TerminatingWrite>::end", 20), "VecWriter::end");
    }

    /// For any text, `short` returns soon and does not panic.
    #[test]
    fn hostile_names_are_kept() {
        for name in
            ["", "<", ">", "a>b", "<<<", "::", "a::", "{", "{{", "a::<", "->", "é::<é>", "(]", "a b c"]
        {
            function(name, 10);
        }
        for part in ["a<", "mut ", "a::mut ", "<", "(", "[", "{", "::", "]a<", "a::<", "&mut "] {
            assert!(function(&part.repeat(100_000), 50).chars().count() <= 50, "{part}");
            assert!(function(&format!("]{}", part.repeat(100_000)), 50).chars().count() <= 50, "{part}");
        }
        let mut random = 7_u64;
        let parts = ["<", ">", "::", "a", "{", "}", " as ", "->", "(", ")", "[", "]", "é", ", ", "mut ", "&"];
        for _ in 0..20_000 {
            let mut name = String::new();
            for _ in 0..12 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                name.push_str(parts[(random >> 40) as usize % parts.len()]);
            }
            assert!(function(&name, 20).chars().count() <= 20, "{name}");
        }
    }
}

//! Finds the function around a line of a source file.
//!
//! If debug information has only lines, an inlined function has its own name and no path: every async function of a
//! file is `{async_fn#0}`. The source file shows which function contains the line, if the file exists and is older than
//! the program.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::time::SystemTime;

/// The maximum size of a source file in bytes.
const LARGEST: u64 = 4 << 20;

/// The maximum number of source files that a thread reads.
const MOST_FILES: usize = 4096;

/// The maximum depth of braces.
const DEEPEST: usize = 256;

/// The functions of the source files that were read so far.
#[derive(Debug, Default)]
pub(super) struct SourceNames {
    /// The time at which the program was built; `None` if it is unknown.
    built: Option<SystemTime>,
    files: HashMap<String, Vec<SourceFunction>>,
}

/// A function in a source file.
#[derive(Debug, PartialEq, Eq)]
struct SourceFunction {
    /// The path in the file, such as `Sessions::open`.
    path: String,
    is_async: bool,
    first: u32,
    last: u32,
}

impl SourceNames {
    /// Makes names for the sources of the program at this path. Finds no names if the path is `None`.
    pub(super) fn new(program: Option<&Path>) -> Self {
        let built = program.and_then(|path| fs::metadata(path).ok()?.modified().ok());
        Self { built, files: HashMap::new() }
    }

    /// The path of the function around a line, without the module of the file. `own` is the function's name in debug
    /// information. `None` if no function of the source fits, or if several functions fit.
    pub(super) fn path(&mut self, file: &str, line: u32, own: &str) -> Option<String> {
        let built = self.built?;
        if !self.files.contains_key(file) {
            if self.files.len() >= MOST_FILES {
                return None;
            }
            let functions = read(file, built).map(|text| functions(&text)).unwrap_or_default();
            self.files.insert(file.to_owned(), functions);
        }
        let plain = own.split('<').next().unwrap_or(own);
        let around = || self.files[file].iter().filter(|one| (one.first..=one.last).contains(&line));
        let is_within = |inner: &SourceFunction, outer: &SourceFunction| {
            inner.first >= outer.first
                && inner.last <= outer.last
                && (inner.first, inner.last) != (outer.first, outer.last)
        };
        let is_inner = |one: &SourceFunction| !around().any(|other| is_within(other, one));
        let mut fitting = around().filter(|one| fits(one, plain) && is_inner(one));
        let found = fitting.next().filter(|_| fitting.next().is_none())?;
        Some(match plain.starts_with('{') {
            true => format!("{}::{own}", found.path),
            false => format!("{}{}", found.path, &own[plain.len()..]),
        })
    }
}

/// Whether a function may have this name in debug information.
fn fits(function: &SourceFunction, plain: &str) -> bool {
    match plain.strip_prefix('{') {
        Some(inner) if inner.starts_with("async_fn#") => function.is_async,
        Some(inner) => {
            ["async_block#", "async_closure#", "closure#"].iter().any(|one| inner.starts_with(one))
        }
        None => function.path.rsplit("::").next() == Some(plain),
    }
}

/// The text of a source file that is not newer than the program.
fn read(file: &str, built: SystemTime) -> Option<String> {
    if !(file.starts_with('/') && file.ends_with(".rs")) {
        return None;
    }
    let metadata = fs::metadata(file).ok()?;
    let is_readable = metadata.is_file() && metadata.len() <= LARGEST && metadata.modified().ok()? <= built;
    if !is_readable {
        return None;
    }
    let mut text = String::new();
    // The file may have grown since its length was checked.
    File::open(file).ok()?.take(LARGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// An open pair of braces.
enum SourceScope {
    /// A module, an implementation or a trait, with its name.
    Named(String),
    Function {
        name: String,
        is_async: bool,
        first: u32,
    },
    Other,
}

/// The functions of a source file.
fn functions(text: &str) -> Vec<SourceFunction> {
    let mut tokens = SourceTokens { rest: text, line: 1 };
    let mut found = Vec::new();
    let mut open: Vec<SourceScope> = Vec::new();
    let mut next = None;
    let mut depth = 0_usize;
    let mut is_async = false;
    let mut last = "";
    while let Some((token, line)) = tokens.next() {
        match token {
            "async" => is_async = true,
            "impl" if next.is_none() && depth == 0 => next = tokens.implemented().map(SourceScope::Named),
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "{" => {
                if open.len() >= DEEPEST {
                    return found;
                }
                open.push(if depth == 0 { next.take() } else { None }.unwrap_or(SourceScope::Other));
                is_async = false;
            }
            "}" => {
                if let Some(SourceScope::Function { name, is_async, first }) = open.pop() {
                    let path = path(&open, &name);
                    found.push(SourceFunction { path, is_async, first, last: line });
                }
                is_async = false;
            }
            ";" if depth == 0 => (next, is_async) = (None, false),
            _ if last == "fn" && is_word(token) => {
                next = Some(SourceScope::Function { name: token.to_owned(), is_async, first: line });
            }
            _ if matches!(last, "mod" | "trait") && is_word(token) && next.is_none() => {
                next = Some(SourceScope::Named(token.to_owned()));
            }
            _ => {}
        }
        last = token;
    }
    found
}

fn path(open: &[SourceScope], name: &str) -> String {
    let around = open.iter().filter_map(|scope| match scope {
        SourceScope::Named(name) | SourceScope::Function { name, .. } => Some(name.as_str()),
        SourceScope::Other => None,
    });
    around.chain([name]).collect::<Vec<_>>().join("::")
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The words of a source, and each other character as its own token. Comments and texts are left out.
struct SourceTokens<'s> {
    rest: &'s str,
    line: u32,
}

impl<'s> SourceTokens<'s> {
    fn next(&mut self) -> Option<(&'s str, u32)> {
        loop {
            let blank = self.rest.find(|c: char| !c.is_whitespace()).unwrap_or(self.rest.len());
            self.skip(blank);
            let skipped = self.comment().or_else(|| self.text())?;
            if skipped == 0 {
                break;
            }
            self.skip(skipped);
        }
        let first = self.rest.chars().next()?;
        let len = match first.is_alphanumeric() || first == '_' {
            true => self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest.len()),
            false => first.len_utf8(),
        };
        let (token, line) = (&self.rest[..len], self.line);
        self.skip(len);
        Some((token, line))
    }

    fn skip(&mut self, bytes: usize) {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line = self.line.saturating_add(skipped.bytes().filter(|byte| *byte == b'\n').count() as u32);
        self.rest = rest;
    }

    /// The length of the comment at the current position. `None` if no comment starts there.
    fn comment(&self) -> Option<usize> {
        let rest = self.rest;
        if rest.starts_with("//") {
            return Some(rest.find('\n').unwrap_or(rest.len()));
        }
        if !rest.starts_with("/*") {
            return None;
        }
        let (mut depth, mut at) = (0_usize, 0);
        let bytes = rest.as_bytes();
        while at < bytes.len() {
            match bytes.get(at..at + 2) {
                Some(b"/*") => (depth, at) = (depth + 1, at + 2),
                Some(b"*/") => (depth, at) = (depth - 1, at + 2),
                _ => at += 1,
            }
            if depth == 0 {
                break;
            }
        }
        Some(at)
    }

    /// The length of the string or character literal at the current position; 0 if no literal starts there. `None` at
    /// the end of the file.
    fn text(&self) -> Option<usize> {
        let rest = self.rest;
        let first = rest.chars().next()?;
        let raw = rest.trim_start_matches(['b', 'c']);
        let start = rest.len() - raw.len();
        if let Some(hashes) = raw.strip_prefix('r').filter(|_| start <= 1)
            && let inner = hashes.trim_start_matches('#')
            && inner.starts_with('"')
        {
            let end = format!("\"{}", &hashes[..hashes.len() - inner.len()]);
            let before = rest.len() - inner.len() + 1;
            return Some(inner[1..].find(&end).map_or(rest.len(), |at| before + at + end.len()));
        }
        if raw.starts_with('"') && start <= 1 {
            return Some(start + quoted(raw, b'"'));
        }
        if first == '\'' {
            // A lifetime has no second quote right after its first character.
            let mut following = rest[1..].chars();
            let is_character = following.next() == Some('\\') || following.next() == Some('\'');
            return Some(if is_character { quoted(rest, b'\'') } else { 1 });
        }
        Some(0)
    }

    /// The type of an implementation, from the text between `impl` and the opening brace. `None` if the type has no
    /// name.
    fn implemented(&mut self) -> Option<String> {
        let (mut depth, mut name, mut is_over) = (0_usize, None, false);
        let mut last = ' ';
        loop {
            let (at, line) = (self.rest, self.line);
            let (token, _) = self.next()?;
            match token {
                "{" | ";" if depth == 0 => {
                    (self.rest, self.line) = (at, line);
                    return name;
                }
                "<" | "(" | "[" => depth += 1,
                ">" if last == '-' => {}
                ">" | ")" | "]" => depth = depth.saturating_sub(1),
                "for" if depth == 0 => name = None,
                "where" if depth == 0 => is_over = true,
                _ if depth == 0 && !is_over && is_word(token) => name = Some(token.to_owned()),
                _ => {}
            }
            last = token.chars().next().unwrap_or(' ');
        }
    }
}

/// The length of a text in quotes.
fn quoted(text: &str, quote: u8) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    // If the last byte is a backslash, `at` is beyond the end.
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_around_each_line_is_found() {
        let text = r##"
            use a::b;
            /* { /* nested */ fn no() { */
            async fn load(id: [u8; 2]) -> &'static str { // }
                let open = '{'; let text = "} \" {"; let raw = r#"} " {"#;
                call(|x| { x }).await
            }
            mod inner {
                impl<T: Fn() -> u8> super::Trait for Sessions<T> where T: Copy {
                    pub async fn open<'a>(&'a self) { wait().await }
                    fn new() -> impl Iterator<Item = u8> {
                        fn nested() { deep() }
                        nested()
                    }
                }
                trait Store { fn get(&self); fn all(&self) { f() } }
            }
            fn a() {} fn b() {}
        "##;
        let found = functions(text);
        let all: Vec<_> = found.iter().map(|one| (&*one.path, one.is_async, one.first, one.last)).collect();
        assert_eq!(
            all,
            [
                ("load", true, 4, 7),
                ("inner::Sessions::open", true, 10, 10),
                ("inner::Sessions::new::nested", false, 12, 12),
                ("inner::Sessions::new", false, 11, 14),
                ("inner::Store::all", false, 16, 16),
                ("a", false, 18, 18),
                ("b", false, 18, 18),
            ]
        );
        let files = HashMap::from([("f.rs".to_owned(), found)]);
        let mut names = SourceNames { built: Some(SystemTime::now()), files };
        for (line, own, path) in [
            (6, "{async_fn#0}", Some("load::{async_fn#0}")),
            (6, "{closure#0}<u8>", Some("load::{closure#0}<u8>")),
            (6, "open", None),
            (10, "{async_fn#0}", Some("inner::Sessions::open::{async_fn#0}")),
            (12, "{async_fn#0}", None),
            (13, "new<u8>", Some("inner::Sessions::new<u8>")),
            (18, "b", Some("b")),
            (18, "{closure#0}", None),
            (20, "b", None),
        ] {
            assert_eq!(names.path("f.rs", line, own).as_deref(), path, "{line} {own}");
        }
    }

    /// The parser reaches the end of any text, without a panic.
    #[test]
    fn hostile_sources_are_read() {
        let parts = [
            "fn ", "a", "{", "}", "(", ")", "'", "\"", "r#\"", "\\", "/*", "*/", "//", "\n", "impl ", "é",
            "<", ">", "b", ";", "async ", " for ",
        ];
        let mut random = 7_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..16 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(parts[(random >> 40) as usize % parts.len()]);
            }
            functions(&text);
        }
        functions(&"fn f() {".repeat(100_000));
    }
}

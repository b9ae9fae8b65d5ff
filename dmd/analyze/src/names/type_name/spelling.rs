//! Writes types as Rust programmers do: without the paths of the standard library, default allocators and hashers, and
//! lifetimes.

/// The default arguments of collections.
const DEFAULTS: &[&str] = &[
    "alloc::alloc::Global",
    "allocator_api2::stable::alloc::global::Global",
    "hashbrown::alloc::inner::Global",
    "hashbrown::raw::alloc::inner::Global",
    "std::collections::hash::map::RandomState",
    "std::hash::random::RandomState",
];

/// Names that several modules of the standard library use. The short form of these names keeps the module.
const AMBIGUOUS: &[&str] = &[
    "Block", "Bucket", "Channel", "Counter", "Entry", "Error", "Inner", "IntoIter", "Iter", "Node", "Packet",
    "Slot", "State", "Storage", "Value", "Weak",
];

/// The short form of a type's name, as in [`TypeVerdict`](crate::TypeVerdict): `Vec<String>`.
pub fn shorten(name: &str) -> String {
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '{' | '}' | '#');
    let mut text = String::with_capacity(name.len());
    // For each open `<`: the start of the current argument in `name`, and its start in `text`, including the comma.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    while let Some(c) = name[at..].chars().next() {
        if is_path(c) {
            let end = name[at..].find(|c| !is_path(c)).map_or(name.len(), |len| at + len);
            add_path(&name[at..end], &mut text);
            at = end;
            continue;
        }
        let arrow = c == '>' && at > 0 && matches!(name.as_bytes()[at - 1], b'-' | b'=');
        if (c == ',' || c == '>')
            && !arrow
            && let Some((from, to)) = open.last_mut()
        {
            let argument = name[*from..at].trim();
            if DEFAULTS.contains(&argument) || argument.starts_with('\'') {
                text.truncate(*to);
            }
            (*from, *to) = (at + c.len_utf8(), text.len());
        }
        at += c.len_utf8();
        match c {
            '<' => {
                text.push(c);
                open.push((at, text.len()));
            }
            '>' if !arrow => {
                open.pop();
                match text.ends_with('<') {
                    true => drop(text.pop()),
                    false => text.push(c),
                }
            }
            // Newer symbols and debug information differ in their spaces.
            ',' => text.push_str(if text.ends_with('<') { "" } else { ", " }),
            ' ' if text.ends_with([' ', '<']) => {}
            _ => text.push(c),
        }
    }
    text
}

fn add_path(path: &str, text: &mut String) {
    let of_library = ["alloc::", "core::", "std::"].iter().any(|name| path.starts_with(name));
    let Some((before, last)) = path.rsplit_once("::").filter(|_| of_library) else {
        // A closure's type and its function get the same name.
        text.push_str(&path.replace("_env#", "#"));
        return;
    };
    if last.starts_with('{') || AMBIGUOUS.contains(&last) {
        let module = before.rsplit("::").next().unwrap_or(before);
        text.push_str(module);
        text.push_str("::");
    }
    text.push_str(&last.replace("_env#", "#"));
}

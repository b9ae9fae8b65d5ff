//! Finds the container to which a library function belongs, such as `Vec<app::Entry>`, from the function's name.

use crate::dump::CallFrame;

/// Types that own memory, each with the name that suggestions use.
const CONTAINERS: &[(&str, &str)] = &[
    ("Vec", "Vec"),
    ("RawVec", "Vec"),
    ("VecDeque", "VecDeque"),
    ("BinaryHeap", "BinaryHeap"),
    ("LinkedList", "LinkedList"),
    ("String", "String"),
    ("CString", "CString"),
    ("OsString", "OsString"),
    ("PathBuf", "PathBuf"),
    ("Box", "Box"),
    ("Rc", "Rc"),
    ("Arc", "Arc"),
    ("HashMap", "HashMap"),
    ("HashSet", "HashSet"),
    ("IndexMap", "IndexMap"),
    ("IndexSet", "IndexSet"),
    ("SmallVec", "SmallVec"),
    ("RawTable", "RawTable"),
    ("BTreeMap", "BTreeMap"),
    ("BTreeSet", "BTreeSet"),
    ("Entry", "HashMap"),
    ("RustcEntry", "HashMap"),
    ("VacantEntry", "HashMap"),
    ("RustcVacantEntry", "HashMap"),
];

/// The type to which a frame's function belongs, such as `Vec<app::Entry>`. `None` if the type owns no memory, or if
/// the name does not contain the type arguments.
pub(crate) fn container_of(frame: &CallFrame<'_>) -> Option<String> {
    let (function, place) = (frame.name(), frame.place().unwrap_or_default());
    let path = segments(function);
    let (method, before) = path.split_last()?;
    let given = arguments(method);

    // `<alloc::vec::Vec<T> as Trait>::method` or `<alloc::vec::Vec<T>>::method`.
    let owner = match before.first()?.strip_prefix('<').and_then(|inner| inner.strip_suffix('>')) {
        Some(inner) => *segments(top_level(inner, " as ").first()?).last()?,
        None => before.last().copied().unwrap_or_default(),
    };
    let base = owner.split_once('<').map_or(owner, |(base, _)| base);
    let Some((_, mut name)) = CONTAINERS.iter().find(|(known, _)| *known == base).copied() else {
        return by_file(place, &given);
    };
    if base.ends_with("Entry") && function.contains("btree") {
        name = "BTreeMap";
    }
    let own = arguments(owner);
    if own.is_empty() && given.is_empty() {
        let plain = ["String", "CString", "OsString", "PathBuf"].contains(&name);
        return plain.then(|| name.to_owned());
    }
    if ["String", "CString", "OsString", "PathBuf"].contains(&name) {
        return Some(name.to_owned());
    }
    let is_stand_in = |name: &&str| name.len() <= 2 && name.starts_with(|c: char| c.is_ascii_uppercase());
    let types: Vec<&str> = if own.iter().any(is_stand_in) {
        // The first types of the method are the owner's, in the same order.
        if given.len() < own.len() {
            return None;
        }
        given.into_iter().take(own.len()).collect()
    } else if own.is_empty() {
        given
    } else {
        own
    };
    let mut types: Vec<String> = types.into_iter().filter(|name| !is_accessory(name)).map(shorten).collect();
    // A set is a map with empty values.
    if name == "HashMap" && types.get(1).is_some_and(|value| value == "()") {
        types.truncate(1);
        name = "HashSet";
    }
    if types.is_empty() || types.iter().any(|name| name.len() == 1) {
        return None;
    }
    Some(format!("{name}<{}>", types.join(", ")))
}

/// The type of a function without a path in its name, as in debug information with only lines.
fn by_file(place: &str, given: &[&str]) -> Option<String> {
    const FILES: &[(&str, &str, usize)] = &[
        ("alloc/src/vec/", "Vec", 1),
        ("alloc/src/raw_vec", "Vec", 1),
        ("alloc/src/string.rs", "String", 0),
        ("alloc/src/boxed", "Box", 1),
        ("alloc/src/rc.rs", "Rc", 1),
        ("alloc/src/sync.rs", "Arc", 1),
        ("alloc/src/collections/vec_deque", "VecDeque", 1),
        ("alloc/src/collections/linked_list", "LinkedList", 1),
        ("alloc/src/collections/btree/", "BTreeMap", 2),
        ("std/src/collections/hash/map", "HashMap", 2),
        ("std/src/collections/hash/set", "HashSet", 1),
        ("/src/rustc_entry.rs", "HashMap", 2),
        ("/src/map.rs", "HashMap", 2),
        ("/src/set.rs", "HashSet", 1),
        ("/src/raw", "RawTable", 1),
    ];
    let library = place.split_once("/library/").map(|(_, path)| path);
    let hashbrown = place.split_once("/hashbrown-").map(|(_, path)| path);
    let (_, name, types) = FILES.iter().find(|(file, ..)| match library {
        Some(path) => path.starts_with(file),
        None => hashbrown.is_some_and(|path| path.contains(file)),
    })?;
    if *types == 0 {
        return Some((*name).to_owned());
    }
    let types: Vec<String> = given.get(..*types)?.iter().map(|name| shorten(name)).collect();
    let odd = |name: &String| name.len() == 1 || is_accessory(name);
    (!types.iter().any(odd)).then(|| format!("{name}<{}>", types.join(", ")))
}

/// Whether a type is an allocator, a hasher or a closure. Such a type does not show the contents of the container.
fn is_accessory(name: &str) -> bool {
    ["Global", "RandomState", "System"].iter().any(|known| name.rsplit("::").next() == Some(*known))
        || name.contains("{closure")
        || name.contains("BuildHasherDefault")
}

/// A name without the paths of the standard library.
pub(crate) fn shorten(name: &str) -> String {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut text = String::new();
    let mut rest = name;
    while let Some(start) = rest.find(is_path) {
        text.push_str(&rest[..start]);
        let end = rest[start..].find(|c| !is_path(c)).map_or(rest.len(), |len| start + len);
        let path = &rest[start..end];
        let of_library =
            ["alloc::", "core::", "std::", "hashbrown::"].iter().any(|name| path.starts_with(name));
        text.push_str(if of_library { path.rsplit("::").next().unwrap_or(path) } else { path });
        rest = &rest[end..];
    }
    text.push_str(rest);
    text.replace(", Global", "").replace(", RandomState", "")
}

/// The segments of a path. Separators inside of brackets do not count.
pub(crate) fn segments(path: &str) -> Vec<&str> {
    top_level(path, "::")
}

fn top_level<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    let mut skip = 0;
    for (at, c) in text.char_indices() {
        if at < skip {
            continue;
        }
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if text[..at].ends_with('-') => {}
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && text[at..].starts_with(separator) {
            parts.push(&text[start..at]);
            start = at + separator.len();
            skip = start;
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The arguments `A` and `B<C>` of `Name<A, B<C>>`.
fn arguments(segment: &str) -> Vec<&str> {
    let inner = segment.split_once('<').and_then(|(_, rest)| rest.strip_suffix('>'));
    inner.map(|inner| top_level(inner, ",").into_iter().map(str::trim).collect()).unwrap_or_default()
}

//! Which crate a frame belongs to, and who is to be named for a stack.

use std::borrow::Cow;

use super::allocators::split_frame;
use crate::symbolize::source_path::{library, package};

/// The crate of a frame's function, by its name or else by where its source lies; else the file that it
/// lies in.
pub(super) fn module_of(text: &str) -> Cow<'_, str> {
    let (function, place) = split_frame(text);
    let name = function.trim_start_matches(['<', '&', '[', '(', '*']);
    let name =
        ["mut ", "const ", "dyn ", "impl "].iter().fold(name, |n, word| n.strip_prefix(word).unwrap_or(n));
    if let Some((first, _)) = name.split_once("::")
        && !first.is_empty()
        && first.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        return first.into();
    }
    match file_of(place) {
        "" | "???" if function.is_empty() => "???".into(),
        "" | "???" => function.into(),
        file => match library(file).or_else(|| package(file)) {
            Some((name, _)) => name.replace('-', "_").into(),
            None => file.rsplit('/').next().unwrap_or(file).into(),
        },
    }
}

/// The file of `(FILE:LINE)`, or of `[FILE +0xOFFSET]`.
pub(super) fn file_of(place: &str) -> &str {
    if let Some(inside) = place.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        return inside.rsplit_once(':').map_or(inside, |(file, _)| file);
    }
    let inside = place.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default();
    inside.rsplit_once(" +0x").map_or(inside, |(file, _)| file)
}

/// Whether a function only carries out what a reporter asked for.
pub(super) fn is_measuring(text: &str) -> bool {
    let (function, _) = split_frame(text);
    let owner = function.trim_start_matches(['<', '&', '[', '(']);
    ["dmd::", "mozilla::dmd::", "memory_reporter::", "core::", "alloc::", "std::", "hashbrown::", "???"]
        .iter()
        .any(|name| owner.starts_with(name))
        || function.contains(" as memory_reporter::")
}

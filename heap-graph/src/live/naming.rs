//! Names blocks: derives type, class and coarse type from the names of Rust types.

use std::borrow::Cow;

use crate::graph::CoarseType;

/// The types that describe a block, as returned by [`core::any::type_name`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BlockTypes<'a> {
    /// The type of the value that owns the block: `alloc::vec::Vec<u8>`, `alloc::boxed::Box<app::Entry>`.
    pub owner: &'a str,
    /// The type of the block's contents: `u8`, `app::Entry`. For contents of several types, the first type.
    pub content: &'a str,
}

/// Types that only wrap a value, and pointers whose block is the value.
const TRANSPARENT: [&str; 24] = [
    "core::option::Option<",
    "core::pin::Pin<",
    "core::cell::Cell<",
    "core::cell::RefCell<",
    "core::cell::UnsafeCell<",
    "core::cell::once::OnceCell<",
    "core::mem::manually_drop::ManuallyDrop<",
    "core::mem::ManuallyDrop<",
    "std::sync::poison::mutex::Mutex<",
    "std::sync::poison::rwlock::RwLock<",
    "std::sync::mutex::Mutex<",
    "std::sync::rwlock::RwLock<",
    "std::sync::once_lock::OnceLock<",
    "lock_api::mutex::Mutex<parking_lot::raw_mutex::RawMutex, ",
    "lock_api::rwlock::RwLock<parking_lot::raw_rwlock::RawRwLock, ",
    "alloc::boxed::Box<",
    "alloc::rc::Rc<",
    "alloc::sync::Arc<",
    "alloc::rc::Weak<",
    "alloc::sync::Weak<",
    "triomphe::arc::Arc<",
    "arc_swap::ArcSwapAny<",
    "&",
    "mut ",
];

impl<'a> BlockTypes<'a> {
    /// The type of the block's node. For a pointer or a wrapper such as `Option`, it is the type inside; for a
    /// container, the container's own type.
    pub fn type_name(&self) -> &'a str {
        let mut name = self.owner;
        while let Some(inner) = TRANSPARENT.iter().find_map(|outer| name.strip_prefix(outer)) {
            name = inner.strip_suffix('>').unwrap_or(inner);
        }
        name
    }

    /// The type without path and parameters: `Vec`, `Entry`. A slice, an array or a tuple keeps its brackets, and the
    /// types inside lose their paths: `[Entry]`, `(u64, Vec<Entry>)`. A closure includes its function:
    /// `parse::{{closure}}`.
    pub fn class_name(&self) -> Cow<'a, str> {
        let name = self.type_name();
        if name.starts_with(['[', '(']) {
            return Cow::Owned(without_paths(name));
        }
        let end = match name.find(['<', '(', '[', '{', ' ']) {
            // A name that starts with `<` is the name of an item of a trait, and stays whole.
            Some(0) | None => name.len(),
            Some(end) => end,
        };
        if let Some(function) = name[..end].strip_suffix("::") {
            // The function's name precedes the closure.
            let start = function.rfind("::").map_or(0, |path| path + 2);
            return Cow::Borrowed(&name[start..]);
        }
        Cow::Borrowed(match name[..end].rfind("::") {
            Some(path) => &name[path + 2..end],
            None if name[..end].is_empty() || name.starts_with("dyn ") => name,
            None => &name[..end],
        })
    }
}

/// Shortens each path in a name to its last part.
fn without_paths(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    // The start of the current name.
    let mut start = 0;
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        // An item of a trait keeps its type: `<A as B>::C`.
        if let Some(after) = rest.strip_prefix("::").filter(|_| !short.ends_with('>')) {
            short.truncate(start);
            rest = after;
            continue;
        }
        short.push(c);
        if !(c.is_alphanumeric() || c == '_') {
            start = short.len();
        }
        rest = &rest[c.len_utf8()..];
    }
    short
}

/// Types of text: complete names, and module paths that end in `::`.
const TEXT: [&str; 12] = [
    "alloc::string::String",
    "str",
    "std::ffi::os_str::OsString",
    "std::ffi::os_str::OsStr",
    "std::path::PathBuf",
    "std::path::Path",
    "alloc::ffi::c_str::CString",
    "core::ffi::c_str::CStr",
    "compact_str::CompactString",
    "smol_str::SmolStr",
    "url::Url",
    "bstr::",
];

/// The types of plain numbers, and `bool`.
const PLAIN: [&str; 15] = [
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
    "bool",
];

/// The default coarse type of a block. Text is a string, a closure is a script, and a buffer of plain numbers is
/// "other". Every other block is an object.
pub fn coarse_type(types: &BlockTypes<'_>) -> CoarseType {
    let name = types.type_name();
    if TEXT.iter().any(|text| name == *text || (text.ends_with("::") && name.starts_with(text))) {
        CoarseType::String
    } else if name.ends_with("{{closure}}") || name.starts_with("dyn core::ops::function::Fn") {
        CoarseType::Script
    } else if PLAIN.contains(&types.content) && is_buffer(name, types.content) {
        CoarseType::Other
    } else {
        CoarseType::Object
    }
}

/// Whether the type is `element`, or a container with elements of only this type.
fn is_buffer(name: &str, element: &str) -> bool {
    let inner = name.strip_suffix('>').map_or(name, |name| name.rsplit('<').next().unwrap_or(name));
    let inner =
        inner.strip_prefix('[').map_or(inner, |array| array.split([';', ']']).next().unwrap_or(array));
    inner == element
}

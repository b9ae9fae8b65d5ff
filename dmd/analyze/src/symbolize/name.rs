//! Mangled names, made readable.

use core::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// Bytes of a name that are kept, or that are read of one.
pub(super) const LONGEST_NAME: usize = 1 << 16;

/// The readable form of a mangled name of Rust or C++; `None` if the name is neither, or not one that is
/// understood.
///
/// The libraries take more for mangled: to them `f` is the C++ type `float`, and `RNvC1a1b` is a path of Rust.
/// But these are also names of functions in C, and what a compiler mangles starts with an underscore.
pub(super) fn demangle(raw: &str) -> Option<String> {
    let prefixes = ["_Z", "__Z", "___Z", "____Z", "_R", "__R", "_GLOBAL_"];
    if raw.len() > LONGEST_NAME || !prefixes.iter().any(|prefix| raw.starts_with(prefix)) {
        return None;
    }
    let mut name = Bounded(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(raw) {
        // Only a name that is too long is an error, and the start of that is kept.
        let _ = write!(name, "{rust:#}");
        return Some(name.0);
    }
    let symbol = Symbol::new(raw).ok()?;
    let written = symbol.structured_demangle(&mut name, &DemangleOptions::default());
    (written.is_ok() || is_cut(&name.0)).then_some(name.0)
}

/// The start and the end of a name that is longer than the longest.
pub(super) fn cut(mut name: String) -> String {
    if name.len() > LONGEST_NAME {
        let kept = (LONGEST_NAME - CUT.len()) / 2;
        let (head, tail) = (floor(&name, kept), floor(&name, name.len() - kept));
        name.replace_range(head..tail, CUT);
    }
    name
}

/// The last place up to `at` where a character starts.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Whether [`cut`] left something out: no name of a sound program comes near.
pub(super) fn is_cut(name: &str) -> bool {
    name.len() > LONGEST_NAME - 2 * CUT.len() - 4
}

/// Stands for what was left out.
const CUT: &str = "...";

/// A text that ends, with an error, at the longest name: a few bytes may stand for gigabytes.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() <= LONGEST_NAME {
            self.0.push_str(text);
            return Ok(());
        }
        let room = (LONGEST_NAME - self.0.len()).saturating_sub(CUT.len());
        self.0.push_str(&text[..floor(text, room)]);
        self.0.push_str(CUT);
        Err(fmt::Error)
    }
}

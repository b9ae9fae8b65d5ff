//! Makes mangled names readable.

use core::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// The maximum length of a name in bytes, for mangled and for readable names.
pub(super) const LONGEST_NAME: usize = 1 << 16;

/// The readable form of a mangled name of Rust or C++. `None` for other names, and if the libraries cannot parse the
/// name.
///
/// The libraries accept more names than compilers write: they parse `f` as the C++ type `float`, and `RNvC1a1b` as a
/// Rust path. But C functions may have these names, and compilers' mangled names start with an underscore.
pub(super) fn demangle(raw: &str) -> Option<String> {
    let prefixes = ["_Z", "__Z", "___Z", "____Z", "_R", "__R", "_GLOBAL_"];
    if raw.len() > LONGEST_NAME || !prefixes.iter().any(|prefix| raw.starts_with(prefix)) {
        return None;
    }
    let mut name = BoundedName(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(raw) {
        // The only possible error is a name that is too long. Its start is kept.
        let _ = write!(name, "{rust:#}");
        return Some(name.0);
    }
    let symbol = Symbol::new(raw).ok()?;
    let written = symbol.structured_demangle(&mut name, &DemangleOptions::default());
    (written.is_ok() || is_cut(&name.0)).then_some(name.0)
}

/// Shortens a name that exceeds the maximum length to its start and its end.
pub(super) fn cut(mut name: String) -> String {
    if name.len() > LONGEST_NAME {
        let kept = (LONGEST_NAME - CUT.len()) / 2;
        let (head, tail) = (floor(&name, kept), floor(&name, name.len() - kept));
        name.replace_range(head..tail, CUT);
    }
    name
}

/// The last character boundary up to `at`.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Whether [`cut`] or [`BoundedName`] shortened the name. Names in valid programs are far shorter than the maximum.
pub(super) fn is_cut(name: &str) -> bool {
    name.len() > LONGEST_NAME - 2 * CUT.len() - 4
}

/// The text that replaces the removed part.
const CUT: &str = "...";

/// A text that cannot grow beyond the maximum length. A mangled name of a few bytes may expand to gigabytes.
struct BoundedName(String);

impl Write for BoundedName {
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

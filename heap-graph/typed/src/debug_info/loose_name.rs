//! Loose names of closures and `async` functions: the part that Rust's v0 symbols and debug information have in
//! common.
//!
//! In a symbol, a name is `<app::Server>::run::{closure#0}`. In debug information, the same function is
//! `app::{impl#3}::run::{async_fn_env#0}<T>`. The loose name of both is `run::{closure#0}`. Several types may have
//! this name; the size of a block selects one of them.

/// The starts of closure names in debug information.
const FORMS: &[&str] = &["{async_fn#", "{async_block#", "{async_closure#", "{gen_block#", "{coroutine#"];

const CLOSURE: &str = "{closure#";

/// The loose form of a short name; `None` if the name contains no closure.
pub(super) fn loose(name: &str) -> Option<String> {
    if !FORMS.iter().any(|form| name.contains(form)) && !name.contains(CLOSURE) {
        return None;
    }
    let name = FORMS.iter().fold(name.to_owned(), |name, form| name.replace(form, CLOSURE));
    let mut text = String::with_capacity(name.len());
    let mut copied = 0;
    while let Some(found) = name[copied..].find(CLOSURE) {
        let first = copied + found;
        let end = end_of_closures(&name, first);
        let start = start_of_path(&name, copied, first);
        text.push_str(&name[copied..start]);
        text.push_str(function(&name[start..first]));
        text.push_str("::");
        text.push_str(&name[first..end]);
        copied = end + generics(&name[end..]);
    }
    text.push_str(&name[copied..]);
    Some(text)
}

/// The end of a chain such as `{closure#0}::{closure#1}`.
fn end_of_closures(name: &str, mut at: usize) -> usize {
    loop {
        at = name[at..].find('}').map_or(name.len(), |len| at + len + 1);
        match name[at..].strip_prefix("::") {
            Some(rest) if rest.starts_with(CLOSURE) => at += 2,
            _ => return at,
        }
    }
}

/// The start of the path that ends at a closure.
fn start_of_path(name: &str, least: usize, end: usize) -> usize {
    let bytes = name.as_bytes();
    let mut depth = 0_usize;
    for at in (least..end).rev() {
        match bytes[at] {
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' => depth += 1,
            b'<' if depth > 0 => depth -= 1,
            b'<' | b',' | b' ' | b'&' | b'*' | b'(' | b')' | b'[' | b']' | b';' if depth == 0 => {
                return at + 1;
            }
            _ => {}
        }
    }
    least
}

/// The function of a path such as `<app::Server>::run::<u8>::`: `run`.
fn function(path: &str) -> &str {
    let path = path.trim_end_matches(':');
    let path = match path.strip_suffix('>') {
        // Removes the generic arguments of the function.
        Some(_) => path.rfind("::<").map_or(path, |at| &path[..at]),
        None => path,
    };
    path.rsplit("::").next().unwrap_or(path)
}

/// The length of the generic arguments at the start of `rest`, including their angle brackets; 0 without arguments.
fn generics(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut last = b' ';
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if last != b'-' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return if at == 0 { 0 } else { at + 1 };
        }
        last = byte;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_debug_information_have_one_name() {
        for (symbol, short) in [
            ("app::f::{closure#0}", "app::f::{async_fn#0}"),
            ("<app::Server<u8>>::run::{closure#0}", "app::server::{impl#3}::run::{async_fn#0}<u8>"),
            ("<app::A as app::B<u8>>::f::{closure#1}", "app::{impl#0}::f::{closure#1}"),
            ("app::f::<u8, b::C<u16>>::{closure#2}", "app::f::{async_block#2}<u8, b::C<u16>>"),
            ("app::f::{closure#0}::{closure#1}", "app::f::{async_fn#0}::{closure#1}<fn() -> u8>"),
            (
                "Cell<<app::A>::f::{closure#0}, Arc<b::C>>",
                "Cell<app::{impl#1}::f::{async_fn#0}<u8>, Arc<b::C>>",
            ),
            ("(app::f::{closure#0}, app::g::{closure#0})", "(f::{async_fn#0}, app::g::{async_block#0})"),
        ] {
            assert_eq!(loose(symbol), loose(short), "{symbol}");
        }
        assert_ne!(loose("app::f::{closure#0}"), loose("app::f::{closure#1}"));
        assert_eq!(loose("app::f<u8>"), None);
    }

    #[test]
    fn damaged_names_end() {
        for name in [
            "{closure#",
            "{closure#0",
            "<<{closure#0}<",
            "::{closure#0}>>",
            "é{closure#é}é<é",
            "->{closure#0}<->",
        ] {
            loose(name);
        }
        let deep = format!("{}{{closure#0}}{}", "a<".repeat(1 << 15), ">".repeat(1 << 15));
        assert_eq!(loose(&deep).map(|text| text.len()), Some(deep.len() + 2));
    }
}

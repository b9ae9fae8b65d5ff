//! The spellings of a type: `[Visit]` for `[my_crate::model::Visit]`, as screens shorten it.

/// A part of a spelling. Spaces only separate parts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SpellingPart<'s> {
    /// The names of a path, which `::` separates.
    Path(Vec<&'s str>),
    Sign(char),
    /// A mark for elided parts, from a shortened name on a screen. It matches any parts.
    Elided,
}

/// A spelling of a type, as a user wrote it.
pub(super) struct TypeSpelling<'s>(Vec<SpellingPart<'s>>);

impl<'s> TypeSpelling<'s> {
    pub(super) fn new(text: &'s str) -> Self {
        Self(parts(text))
    }

    /// Whether this spelling fits the type with this full name. Each path in a spelling may lack its first names, and
    /// the spelling may lack a prefix such as `[16 bytes before]`.
    pub(super) fn fits(&self, name: &str) -> bool {
        let value = name.split_once(" bytes before] ").map(|(_, value)| value);
        [Some(name), value].into_iter().flatten().any(|name| fits(&self.0, &parts(name)))
    }
}

fn fits(wanted: &[SpellingPart<'_>], found: &[SpellingPart<'_>]) -> bool {
    match (wanted.split_first(), found.split_first()) {
        (None, None) => true,
        (Some((SpellingPart::Elided, rest)), _) => {
            (0..=found.len()).any(|elided| fits(rest, &found[elided..]))
        }
        (Some((SpellingPart::Path(short), rest)), Some((SpellingPart::Path(whole), others))) => {
            whole.ends_with(short) && fits(rest, others)
        }
        (Some((wanted, rest)), Some((found, others))) => wanted == found && fits(rest, others),
        _ => false,
    }
}

fn parts(text: &str) -> Vec<SpellingPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| !is_of_path(c)).unwrap_or(rest.len());
        rest = if length > 0 {
            parts.push(SpellingPart::Path(rest[..length].split("::").collect()));
            &rest[length..]
        } else {
            parts.push(if first == '…' { SpellingPart::Elided } else { SpellingPart::Sign(first) });
            &rest[first.len_utf8()..]
        };
        rest = rest.trim_start();
    }
    parts
}

/// Whether a path can contain this character. Paths in debug information also contain segments such as `{impl#0}`.
fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | ':' | '{' | '}' | '#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_lack_their_first_parts() {
        for (spelling, name, fit) in [
            ("[Visit]", "[app::model::Visit]", true),
            ("[model::Visit]", "[app::model::Visit]", true),
            ("[del::Visit]", "[app::model::Visit]", false),
            ("[Visit]", "app::model::Visit", false),
            ("[Visit]", "[app::Visits]", false),
            ("table (u32,Job)", "table (u32, app::Job)", true),
            ("Vec<…>", "alloc::vec::Vec<app::Job, 4>", true),
            ("Vec<…, 5>", "alloc::vec::Vec<app::Job, 4>", false),
            ("in run", "in app::run", true),
            ("Object<u8>", "[16 bytes before] app::Object<u8>", true),
            ("[16 bytes before] Object<u8>", "[16 bytes before] app::Object<u8>", true),
            ("[8 bytes before] Object<u8>", "[16 bytes before] app::Object<u8>", false),
            ("", "str", false),
        ] {
            assert_eq!(TypeSpelling::new(spelling).fits(name), fit, "{spelling} {name}");
        }
    }
}

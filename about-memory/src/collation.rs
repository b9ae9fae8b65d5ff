//! The order of names in the text. It is the order of `localeCompare` in the root locale, as in Firefox.
//!
//! With the feature `collation`, the crate `icu_collator` gives Unicode's order. Without it, names of ASCII and of
//! Latin letters with accents have the same order; other characters are sorted by code point.

use core::cmp::Ordering;

/// Compares names.
#[cfg(feature = "collation")]
#[derive(Debug)]
pub(crate) struct Collator(icu_collator::CollatorBorrowed<'static>);

#[cfg(feature = "collation")]
impl Collator {
    pub(crate) fn new() -> Self {
        let options = icu_collator::options::CollatorOptions::default();
        let collator = icu_collator::Collator::try_new(Default::default(), options);
        Self(collator.expect("the root collation is compiled in"))
    }

    pub(crate) fn compare(&self, a: &str, b: &str) -> Ordering {
        self.0.compare(a, b)
    }
}

/// Compares names.
#[cfg(not(feature = "collation"))]
#[derive(Debug)]
pub(crate) struct Collator;

#[cfg(not(feature = "collation"))]
impl Collator {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn compare(&self, a: &str, b: &str) -> Ordering {
        compare(a, b)
    }
}

/// The ASCII characters before letters, in Unicode's order. Other control characters have no weight.
#[cfg(any(test, not(feature = "collation")))]
const BEFORE_LETTERS: &[u8] = b"\t\n\x0b\x0c\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789";

/// The base letters of U+00C0 to U+017F, without accents. A dot marks a letter without a base.
#[cfg(any(test, not(feature = "collation")))]
const BASES: &[u8; 192] = b"\
    AAAAAA.CEEEEIIII.NOOOOO..UUUUY..aaaaaa.ceeeeiiii.nooooo..uuuuy.yAaAaAaCcCcCcCcDd..EeEeEeEeEeGgGg\
    GgGgHh..IiIiIiIiI...JjKk.LlLlLl....NnNnNn...OoOoOo..RrRrRrSsSsSsSsTtTt..UuUuUuUuUuUuWwYyYZzZzZz.";

/// The accents of the letters from U+00C0 to U+017F. `a` is the first accent in Unicode's order.
#[cfg(any(test, not(feature = "collation")))]
const ACCENTS: &[u8; 192] = b"\
    badigf.lbadgbadg.ibadig..badga..badigf.lbadgbadg.ibadig..badga.gmmcckkaaddjjeeee..mmccjjkkeeddcc\
    jjlldd..iimmcckkj...ddll.aallee....aallee...mmcchh..aalleeaaddlleellee..iimmccffhhkkddddgaajjee.";

/// The weight of a character. Names are compared by all their letters first, then by all their accents, then by their
/// capitals.
#[cfg(any(test, not(feature = "collation")))]
struct CharacterWeight {
    letter: u32,
    accent: Option<u8>,
    capital: bool,
}

#[cfg(any(test, not(feature = "collation")))]
impl CharacterWeight {
    /// Returns the weight of a character. `None` if the character is ignored.
    fn look_up(c: char) -> Option<Self> {
        let at = usize::try_from(u32::from(c)).ok()?.wrapping_sub(0xc0);
        let (c, accent) = match BASES.get(at) {
            Some(b'.') | None => (c, None),
            Some(base) => (char::from(*base), Some(ACCENTS[at])),
        };
        let place = |byte: u8| BEFORE_LETTERS.iter().position(|known| *known == byte);
        let letter = match u8::try_from(c) {
            Ok(byte) if byte.is_ascii_alphabetic() => 128 + u32::from(byte.to_ascii_lowercase()),
            Ok(byte) if byte.is_ascii() => place(byte)? as u32,
            _ => 256 + u32::from(c),
        };
        Some(Self { letter, accent, capital: c.is_ascii_uppercase() })
    }
}

/// Compares by letters, then by accents, then small letters before capitals. Each comparison ends at the first
/// difference.
#[cfg(any(test, not(feature = "collation")))]
fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (
        || a.chars().filter_map(CharacterWeight::look_up),
        || b.chars().filter_map(CharacterWeight::look_up),
    );
    // Each letter counts as 0, and its accent follows. So a letter without an accent is before its accented forms.
    let accents = |weight: CharacterWeight| core::iter::once(0).chain(weight.accent);
    let capitals =
        |weight: CharacterWeight| core::iter::once(weight.capital).chain(weight.accent.map(|_| false));
    let letters = a().map(|weight| weight.letter).cmp(b().map(|weight| weight.letter));
    letters
        .then_with(|| a().flat_map(accents).cmp(b().flat_map(accents)))
        .then_with(|| a().flat_map(capitals).cmp(b().flat_map(capitals)))
}

#[cfg(all(test, feature = "collation"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    #[test]
    fn characters_have_unicode_s_order() {
        let collator = super::Collator::new();
        let accented = (0xc0..0x180_u32).filter(|c| super::BASES[*c as usize - 0xc0] != b'.');
        let texts: Vec<String> =
            (0..128).chain(accented).map(|c| char::from_u32(c).unwrap().to_string()).collect();
        for a in &texts {
            for b in &texts {
                assert_eq!(super::compare(a, b), collator.compare(a, b), "{a:?} {b:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn names_have_unicode_s_order(
            a in "[ -~]{0,8}",
            b in "[ -~]{0,8}",
            c in "[aAb/1éÉèçñ-]{0,6}",
            d in "[aAb/1éÉèçñ-]{0,6}",
        ) {
            let collator = super::Collator::new();
            prop_assert_eq!(super::compare(&a, &b), collator.compare(&a, &b));
            prop_assert_eq!(super::compare(&c, &d), collator.compare(&c, &d));
        }
    }
}

//! The order of names in the text: that of `localeCompare` in the root locale, as in Firefox.
//!
//! With the feature `collation` it is Unicode's, by the crate `icu_collator`. Without it, it is the same for names of
//! ASCII, and names with other characters follow by code point.

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

/// ASCII in Unicode's order, except for letters. Other control characters have no weight.
#[cfg(any(test, not(feature = "collation")))]
const BEFORE_LETTERS: &[u8] = b"\t\n\x0b\x0c\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789";

/// The weight of a character: characters of other weight differ more than letters of other case. `None` if it has none.
#[cfg(any(test, not(feature = "collation")))]
fn weight(c: char) -> Option<u32> {
    const WEIGHTS: [u8; 128] = {
        let mut weights = [0; 128];
        let mut at = 0;
        while at < BEFORE_LETTERS.len() {
            weights[BEFORE_LETTERS[at] as usize] = at as u8 + 1;
            at += 1;
        }
        let mut letter = 0;
        while letter < 26 {
            let weight = BEFORE_LETTERS.len() as u8 + 1 + letter;
            weights[(b'a' + letter) as usize] = weight;
            weights[(b'A' + letter) as usize] = weight;
            letter += 1;
        }
        weights
    };
    match WEIGHTS.get(c as usize) {
        Some(0) => None,
        Some(weight) => Some(u32::from(*weight)),
        None => Some(c as u32),
    }
}

/// By weight; then small letters before capitals, at the first difference.
#[cfg(any(test, not(feature = "collation")))]
fn compare(a: &str, b: &str) -> Ordering {
    let weights = a.chars().filter_map(weight).cmp(b.chars().filter_map(weight));
    let is_capital = |c: char| weight(c).map(|_| c.is_ascii_uppercase());
    weights.then_with(|| a.chars().filter_map(is_capital).cmp(b.chars().filter_map(is_capital)))
}

#[cfg(all(test, feature = "collation"))]
mod tests {
    use proptest::prelude::*;

    #[test]
    fn ascii_characters_have_unicode_s_order() {
        let collator = super::Collator::new();
        let texts: Vec<String> = (0..128_u8).map(|byte| char::from(byte).to_string()).collect();
        for a in &texts {
            for b in &texts {
                assert_eq!(super::compare(a, b), collator.compare(a, b), "{a:?} {b:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn ascii_names_have_unicode_s_order(a in "[ -~]{0,8}", b in "[ -~]{0,8}", c in "[aAbB/1-]{0,6}", d in "[aAbB/1-]{0,6}") {
            let collator = super::Collator::new();
            prop_assert_eq!(super::compare(&a, &b), collator.compare(&a, &b));
            prop_assert_eq!(super::compare(&c, &d), collator.compare(&c, &d));
        }
    }
}

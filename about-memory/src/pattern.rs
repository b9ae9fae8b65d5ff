//! Regular expressions. With the feature `regex`, the crate `regex` evaluates them; without it, the crate `regex-lite`.
//! `regex-lite` has the same syntax without Unicode classes, and is slower.

#[cfg(feature = "regex")]
mod engine {
    pub(crate) use regex::bytes::Regex as BytesRegex;
    pub(crate) use regex::{Error, Regex, RegexBuilder};

    /// A set of patterns that are searched together.
    #[derive(Debug)]
    pub(crate) struct PatternSet(Option<regex::RegexSet>);

    impl PatternSet {
        pub(crate) fn new<'p>(patterns: impl Iterator<Item = &'p Regex>) -> Self {
            // If the set would be too large, there is no set, and any name may match.
            Self(regex::RegexSet::new(patterns.map(Regex::as_str)).ok())
        }

        /// Returns `false` only if no pattern matches.
        pub(crate) fn may_match(&self, text: &str) -> bool {
            self.0.as_ref().is_none_or(|any| any.is_match(text))
        }
    }

    /// Whether a pattern of a filter matches.
    pub(crate) fn is_match(regex: &BytesRegex, text: &str) -> bool {
        regex.is_match(text.as_bytes())
    }

    /// A position at a word boundary in ASCII, and any other position.
    pub(crate) const BOUNDARY: [&str; 2] = [r"(?-u:\b)", r"(?-u:\B)"];
    /// A blank, outside and inside of a class.
    pub(crate) const BLANK: [&str; 2] = [r"\s", r"\s"];
    /// A character other than a blank, outside of a class.
    pub(crate) const NO_BLANK: &str = r"\S";
}

#[cfg(not(feature = "regex"))]
mod engine {
    pub(crate) use regex_lite::Regex as BytesRegex;
    pub(crate) use regex_lite::{Error, Regex, RegexBuilder};

    /// `regex-lite` has no sets of patterns, so callers try the patterns one after the other.
    #[derive(Debug)]
    pub(crate) struct PatternSet;

    impl PatternSet {
        pub(crate) fn new<'p>(_: impl Iterator<Item = &'p Regex>) -> Self {
            Self
        }

        /// Returns `false` only if no pattern matches.
        pub(crate) fn may_match(&self, _: &str) -> bool {
            true
        }
    }

    /// Whether a pattern of a filter matches.
    pub(crate) fn is_match(regex: &BytesRegex, text: &str) -> bool {
        regex.is_match(text)
    }

    /// A position at a word boundary in ASCII, and any other position.
    pub(crate) const BOUNDARY: [&str; 2] = [r"\b", r"\B"];
    /// A blank, outside and inside of a class.
    pub(crate) const BLANK: [&str; 2] = [
        r"[\t-\r \u{85}\u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}]",
        r"\t-\r \u{85}\u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}",
    ];
    /// A character other than a blank, outside of a class.
    pub(crate) const NO_BLANK: &str =
        r"[^\t-\r \u{85}\u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}]";
}

pub(crate) use engine::{
    BLANK, BOUNDARY, BytesRegex, Error, NO_BLANK, PatternSet, Regex, RegexBuilder, is_match,
};

//! Filters on paths as reported: a substring or a regular expression.

use thiserror::Error;

use crate::pattern::{self, BytesRegex};

/// A filter on paths as reported. A `\` in a path means a `/` inside a name. The filter is case-sensitive.
#[derive(Clone, Debug)]
pub struct PathFilter(PathRule);

#[derive(Clone, Debug)]
enum PathRule {
    Substring(String),
    Regex(BytesRegex),
}

impl PathFilter {
    /// Returns a filter that accepts paths that contain `text`. An empty text accepts all paths.
    pub fn substring(text: impl Into<String>) -> Self {
        Self(PathRule::Substring(text.into()))
    }

    /// Returns a filter that accepts paths in which `pattern` matches. The syntax is JavaScript's, as in Firefox,
    /// without look-around and back-references. An empty pattern accepts all paths.
    ///
    /// # Errors
    ///
    /// Returns an error if `pattern` is not a regular expression. (In Firefox, an invalid pattern matches nothing.)
    pub fn regex(pattern: &str) -> Result<Self, FilterError> {
        if pattern.is_empty() {
            return Ok(Self::substring(""));
        }
        match BytesRegex::new(&from_javascript(pattern)) {
            Ok(regex) => Ok(Self(PathRule::Regex(regex))),
            Err(error) => Err(FilterError { pattern: pattern.to_owned(), source: Box::new(error) }),
        }
    }

    /// Whether the filter accepts all paths.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.0, PathRule::Substring(text) if text.is_empty())
    }

    /// Whether the filter accepts `path`.
    pub fn accepts(&self, path: &str) -> bool {
        match &self.0 {
            PathRule::Substring(text) => path.contains(text.as_str()),
            PathRule::Regex(regex) => pattern::is_match(regex, path),
        }
    }
}

/// A pattern that is not a regular expression.
#[derive(Debug, Error)]
#[error("not a regular expression: {pattern}")]
#[non_exhaustive]
pub struct FilterError {
    /// The pattern.
    pub pattern: String,
    source: Box<pattern::Error>,
}

/// Translates a pattern into the syntax of the crate `regex`. In that syntax, classes are Unicode, braces need escapes,
/// and `[`, `&&`, `--` and `~~` have a meaning inside a class.
fn from_javascript(pattern: &str) -> String {
    let mut to = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    let mut class = false;
    while let Some(c) = rest.chars().next() {
        let tail = &rest[c.len_utf8()..];
        let used = match c {
            '\\' => 1 + escape(&mut to, tail, class),
            '[' if !class => match tail {
                tail if tail.starts_with(']') => literal(&mut to, r"[^\s\S]", 2),
                tail if tail.starts_with("^]") => literal(&mut to, r"[\s\S]", 3),
                tail => {
                    class = true;
                    let negated = tail.starts_with('^');
                    literal(&mut to, if negated { "[^" } else { "[" }, 1 + usize::from(negated))
                }
            },
            ']' if class => {
                class = false;
                literal(&mut to, "]", 1)
            }
            '[' | '&' | '~' if class => literal(&mut to, &format!("\\{c}"), 1),
            '^' if class => literal(&mut to, r"\^", 1),
            '-' if class && tail.starts_with('-') => literal(&mut to, r"\-", 1),
            '.' if !class => literal(&mut to, r"[^\n\r\u{2028}\u{2029}]", 1),
            '{' if !class => match quantifier(rest) {
                Some(text) => literal(&mut to, text, text.len()),
                None => literal(&mut to, r"\{", 1),
            },
            ']' | '}' => literal(&mut to, &format!("\\{c}"), 1),
            c => literal(&mut to, c.encode_utf8(&mut [0; 4]), c.len_utf8()),
        };
        rest = &rest[used..];
    }
    to
}

fn literal(to: &mut String, text: &str, used: usize) -> usize {
    to.push_str(text);
    used
}

/// Returns `{2}`, `{2,}` or `{2,3}` at the start of the text. Other braces are plain text.
fn quantifier(text: &str) -> Option<&str> {
    let end = text.find('}')?;
    let (from, to) = text[1..end].split_once(',').unwrap_or((&text[1..end], ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    (!from.is_empty() && digits(from) && digits(to)).then_some(&text[..=end])
}

/// Translates the text after a backslash. Returns the number of bytes that were translated.
fn escape(to: &mut String, tail: &str, class: bool) -> usize {
    let Some(c) = tail.chars().next() else { return literal(to, "\\", 0) };
    let hex =
        |n: usize| tail.get(1..=n).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit())).is_some();
    match (c, class) {
        ('d', false) => literal(to, "[0-9]", 1),
        ('d', true) => literal(to, "0-9", 1),
        ('D', _) => literal(to, "[^0-9]", 1),
        ('w', false) => literal(to, "[0-9A-Za-z_]", 1),
        ('w', true) => literal(to, "0-9A-Za-z_", 1),
        ('W', _) => literal(to, "[^0-9A-Za-z_]", 1),
        ('b', true) => literal(to, r"\x08", 1),
        ('b', false) => literal(to, pattern::BOUNDARY[0], 1),
        ('B', false) => literal(to, pattern::BOUNDARY[1], 1),
        ('s', class) => literal(to, pattern::BLANK[usize::from(class)], 1),
        ('S', false) => literal(to, pattern::NO_BLANK, 1),
        ('0', _) => literal(to, r"\x00", 1),
        ('x', _) if hex(2) => literal(to, &format!("\\{}", &tail[..3]), 3),
        ('u', _) if hex(4) => literal(to, &format!("\\{}", &tail[..5]), 5),
        ('S' | 'f' | 'n' | 'r' | 't' | 'v' | '1'..='9', _) => literal(to, &format!("\\{c}"), 1),
        (c, _) if c.is_ascii_alphanumeric() || !c.is_ascii() => {
            literal(to, c.encode_utf8(&mut [0; 4]), c.len_utf8())
        }
        (c, _) => literal(to, &format!("\\{c}"), c.len_utf8()),
    }
}

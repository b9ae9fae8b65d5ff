//! Adds a sentence to a description about the bytes that values state of themselves.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::small_sort::sort_by;

/// Types, and the bytes that their values state of themselves.
pub(super) type StatedAmounts = Vec<(&'static str, usize)>;

/// The sentence names at most this many types.
const TYPES: usize = 3;

/// Returns the description, with a sentence about the bytes that values state of themselves, if there are any.
pub(super) fn with_stated<'a>(description: &'a str, stated: &[(&'static str, usize)]) -> Cow<'a, str> {
    if stated.is_empty() {
        return description.into();
    }
    let sum = stated.iter().fold(0_usize, |sum, (_, bytes)| sum.saturating_add(*bytes));
    let mut types = stated.to_vec();
    sort_by(&mut types, |(a, a_bytes), (b, b_bytes)| b_bytes.cmp(a_bytes).then_with(|| a.cmp(b)));
    let mut text = format!("{description} {sum} of these bytes are stated by values themselves: ");
    for (place, (name, _)) in types.iter().take(TYPES).enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{name}");
    }
    if types.len() > TYPES {
        let _ = write!(text, ", and {} other types", types.len() - TYPES);
    }
    text.push('.');
    text.into()
}

//! Formats numbers, shares and counts for all texts.

/// The mark before an estimated number: `~`, or an empty text.
pub(crate) fn mark(estimated: bool) -> &'static str {
    if estimated { "~" } else { "" }
}

pub(crate) fn blocks(num: i128) -> String {
    format!("{} block{}", number(num), if num == 1 { "" } else { "s" })
}

/// A number with commas between groups of three digits.
pub(crate) fn number(n: i128) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    if n < 0 {
        text.push('-');
    }
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The percentage of `part` in `whole`; 0 if `whole` is 0.
pub(crate) fn share(part: i128, whole: i128) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

pub(crate) fn percent(part: i128, whole: i128) -> String {
    format!("{:4.2}%", share(part, whole))
}

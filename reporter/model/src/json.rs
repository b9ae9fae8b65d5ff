//! Writes strings as JSON.

/// Appends `text` as a JSON string: with its quotes, and with escapes for quotes, backslashes and control characters.
///
/// ```
/// let mut to = String::new();
/// memory_report::json::push_string(&mut to, "a \"b\"\n\u{1}é");
/// assert_eq!(to, r#""a \"b\"\n\u0001é""#);
/// ```
pub fn push_string(to: &mut String, text: &str) {
    to.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            8 => "\\b",
            12 => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..b' ' => "\\u00",
            _ => continue,
        };
        // The escaped bytes are ASCII, so `plain` and `at` are at character boundaries.
        to.push_str(&text[plain..at]);
        to.push_str(escape);
        if escape.len() > 2 {
            for digit in [byte >> 4, byte & 15] {
                to.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
            }
        }
        plain = at + 1;
    }
    to.push_str(&text[plain..]);
    to.push('"');
}

//! Makes foreign text safe for a terminal.

use memory_report::is_deceptive;

/// Appends the escaped name of a report. A `\` becomes `/`, because it replaces a `/` inside a name.
pub(crate) fn push_name(to: &mut String, name: &str) {
    push(to, name, true);
}

/// Appends foreign text, escaped like in [`escape`].
pub(crate) fn push_text(to: &mut String, text: &str) {
    push(to, text, false);
}

/// Escapes the characters of foreign text that could control a terminal or deceive a reader, as `\u{..}`: control
/// characters, line separators, marks of text direction, and characters without width.
pub fn escape(text: &str) -> String {
    let mut to = String::with_capacity(text.len());
    push_text(&mut to, text);
    to
}

fn push(to: &mut String, text: &str, flip: bool) {
    if text.bytes().all(|b| (b' '..0x7f).contains(&b) && b != b'\\') {
        to.push_str(text);
        return;
    }
    for c in text.chars() {
        if c == '\\' && flip {
            to.push('/');
        } else if is_deceptive(c) {
            to.extend(c.escape_unicode());
        } else {
            to.push(c);
        }
    }
}

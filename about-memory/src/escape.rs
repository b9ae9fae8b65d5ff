//! Names as they may be shown on a terminal.

use memory_report::is_deceptive;

/// Appends a name of a report: `\` becomes `/`, which is what it stands for.
pub(crate) fn push_name(to: &mut String, name: &str) {
    push(to, name, true);
}

/// Appends foreign text with everything that could steer a terminal or deceive a reader escaped.
pub(crate) fn push_text(to: &mut String, text: &str) {
    push(to, text, false);
}

/// Foreign text with everything that could steer a terminal or deceive a reader escaped as `\u{..}`:
/// control characters, line separators, marks of text direction, and what has no width.
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

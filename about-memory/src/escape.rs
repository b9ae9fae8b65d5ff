//! Names as they may be shown on a terminal.

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

/// Control characters, line separators, text direction, and what has no width.
fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061c}' | '\u{00ad}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

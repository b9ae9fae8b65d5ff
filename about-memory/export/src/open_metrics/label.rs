//! Values of labels.

use memory_report::is_deceptive;

/// The maximum length of a label's value, in bytes. Paths themselves have no limit.
const LONGEST: usize = 512;

/// The text before the id of a thread. The id is replaced in the same way as in a diff of Firefox.
const THREAD: &str = "(tid=";

/// The minimum number of digits of an address.
const ADDRESS: usize = 4;

/// Returns a path for a label. Addresses, ids of threads and URLs are replaced, because they are private or differ
/// between runs. The result is cut at the maximum length.
pub(super) fn sanitized(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("0x") {
            let digits = after.bytes().take_while(u8::is_ascii_hexdigit).count();
            if digits >= ADDRESS {
                out.push_str("ADDRESS");
                rest = &after[digits..];
                continue;
            }
        }
        if let Some(after) = rest.strip_prefix(THREAD) {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 && after[digits..].starts_with(')') {
                without_number(&mut out);
                out.push_str("(tid=NNN");
                rest = &after[digits..];
                continue;
            }
        }
        // In a path, a `/` inside of a name is written as `\`.
        if let Some(after) = rest.strip_prefix(":\\\\").or_else(|| rest.strip_prefix("://")) {
            let scheme =
                out.bytes().rev().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
            let scheme = scheme.count();
            if scheme > 0 {
                out.truncate(out.len() - scheme);
                out.push_str("URL");
                rest = &after[after.find(['/', ' ', ',', ')', ']', '"', '\'']).unwrap_or(after.len())..];
                continue;
            }
        }
        match c {
            c if is_deceptive(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    if out.len() > LONGEST {
        let end = (0..=LONGEST).rfind(|at| out.is_char_boundary(*at)).unwrap_or(0);
        out.truncate(end);
        out.push('…');
    }
    out
}

/// Replaces the number of a thread in a pool: `worker#12 ` becomes `worker#N `.
fn without_number(name: &mut String) {
    let Some(end) = name.strip_suffix(' ').map(str::len) else { return };
    let start = name[..end].trim_end_matches(|c: char| c.is_ascii_digit()).len();
    if start < end && name[..start].ends_with('#') {
        name.replace_range(start..end, "N");
    }
}

/// Escapes a value for both forms.
pub(super) fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out
}

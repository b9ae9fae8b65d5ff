//! Paths of reports: `/`-separated names.

/// Turns a name into one segment of a path: `/` becomes `\`, as in Firefox, a control character is escaped, and an
/// empty name becomes `(empty)`.
///
/// ```
/// assert_eq!(memory_report::path_segment("https://a.org/b"), r"https:\\a.org\b");
/// ```
pub fn path_segment(name: &str) -> String {
    if name.is_empty() {
        return "(empty)".to_owned();
    }
    let mut segment = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '/' => segment.push('\\'),
            _ if character.is_control() => segment.extend(character.escape_default()),
            _ => segment.push(character),
        }
    }
    segment
}

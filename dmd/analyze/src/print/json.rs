//! Writes parts of JSON.

use core::fmt::{self, Display};

use memory_report::is_deceptive;

/// Writes the items of an array. Each item starts a line with the text `line`; if `line` is empty, all items are on one
/// line.
pub(crate) fn list<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    line: &str,
    mut each: impl FnMut(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        let comma = match (index, line) {
            (0, _) => "",
            (_, "") => ", ",
            _ => ",",
        };
        write!(f, "{comma}{line}")?;
        each(f, item)?;
    }
    Ok(())
}

/// A JSON string with its quotes. `Display` escapes characters that could deceive a reader.
pub(crate) struct JsonString<'t>(pub(crate) &'t str);

impl Display for JsonString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        let mut rest = self.0;
        while let Some(at) = rest.find(|c: char| c == '"' || c == '\\' || is_deceptive(c)) {
            f.write_str(&rest[..at])?;
            let c = rest[at..].chars().next().unwrap_or_default();
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                _ => c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(f, "\\u{unit:04x}"))?,
            }
            rest = &rest[at + c.len_utf8()..];
        }
        f.write_str(rest)?;
        f.write_str("\"")
    }
}

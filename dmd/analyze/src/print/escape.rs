//! Makes texts of a dump safe to print.

use core::fmt::{self, Display};

use memory_report::is_deceptive;

/// Text from a dump. `Display` escapes every character that could break a line, control the terminal or deceive a
/// reader, except the tab.
pub(crate) struct CleanText<'t>(pub(crate) &'t str);

impl Display for CleanText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bad = |c: char| c != '\t' && is_deceptive(c);
        let mut rest = self.0;
        while let Some(at) = rest.find(bad) {
            f.write_str(&rest[..at])?;
            let c = rest[at..].chars().next().unwrap_or_default();
            write!(f, "{}", c.escape_unicode())?;
            rest = &rest[at + c.len_utf8()..];
        }
        f.write_str(rest)
    }
}

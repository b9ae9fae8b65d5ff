//! Frames as DMD writes them where only the file is known.

/// A place in a file.
#[derive(Debug, PartialEq)]
pub(super) struct Place<'t> {
    pub(super) file: &'t str,
    pub(super) offset: u64,
}

impl<'t> Place<'t> {
    /// Of `#00: ???[FILE +0xOFFSET]`; the function may be named, but not its line.
    pub(super) fn of(text: &'t str) -> Option<Self> {
        let (before, offset) = text.strip_suffix(']')?.rsplit_once(" +0x")?;
        if offset.is_empty() || !offset.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let offset = u64::from_str_radix(offset, 16).ok()?;
        let (number, rest) = before.strip_prefix('#')?.split_once(": ")?;
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // A name such as `operator new[](unsigned long)` has brackets, and so may a path.
        let file = match rest.strip_prefix("???[") {
            Some(file) => file,
            None => match rest.split_once("[/") {
                Some((function, _)) => &rest[function.len() + 1..],
                None => rest.rsplit_once('[')?.1,
            },
        };
        (!file.is_empty()).then_some(Self { file, offset })
    }
}

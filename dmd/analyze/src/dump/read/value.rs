//! Reads values that are not nested.

use std::borrow::Cow;

use memory_report::reader::{ScanStop, TextScan};

/// A value by its type.
pub(super) enum ValueKind<S> {
    Text(S),
    /// The number as the file writes it.
    Number(S),
    Null,
    Truth(bool),
    Nested,
}

impl<'t> ValueKind<Cow<'t, str>> {
    /// Reads one value at this depth.
    pub(super) fn take(scan: &mut TextScan<'t>, depth: u32) -> Result<Self, ScanStop> {
        Ok(match scan.peek()? {
            b'"' => Self::Text(scan.string()?),
            b'[' | b'{' => {
                scan.skip(depth)?;
                Self::Nested
            }
            _ => match scan.scalar()? {
                "null" => Self::Null,
                "true" => Self::Truth(true),
                "false" => Self::Truth(false),
                number => Self::Number(Cow::Borrowed(number)),
            },
        })
    }

    pub(super) fn into_owned(self) -> ValueKind<String> {
        match self {
            Self::Text(text) => ValueKind::Text(text.into_owned()),
            Self::Number(number) => ValueKind::Number(number.into_owned()),
            Self::Null => ValueKind::Null,
            Self::Truth(truth) => ValueKind::Truth(truth),
            Self::Nested => ValueKind::Nested,
        }
    }
}

/// Reads a size or a count. The inner error is the fault of the value.
#[inline]
pub(super) fn size(scan: &mut TextScan<'_>, depth: u32) -> Result<Result<u64, &'static str>, ScanStop> {
    let first = scan.peek()?;
    if first.is_ascii_digit() {
        let token = scan.scalar()?;
        return Ok(token.parse().map_err(|_| {
            if token.bytes().all(|byte| byte.is_ascii_digit()) {
                "larger than 64 bits"
            } else {
                "not a whole number"
            }
        }));
    }
    Ok(Err(match ValueKind::take(scan, depth)? {
        ValueKind::Number(_) => "negative",
        _ => "not a number",
    }))
}

/// Parses an address or a word in hexadecimal digits.
pub(super) fn address(text: &str) -> Result<u64, &'static str> {
    // `from_str_radix` would accept a sign.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("not a hexadecimal number");
    }
    u64::from_str_radix(text, 16).map_err(|_| "larger than 64 bits")
}

/// The start of a text, for messages.
pub(super) fn shorten(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        None => Cow::Borrowed(text),
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
    }
}

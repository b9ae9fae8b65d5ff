//! Warnings in a file, under a key that Firefox does not have and ignores.

use std::io::{self, Write};

use crate::report_set::ReportSet;
use crate::warning::{Warning, WarningKind};

use crate::reader::{Scan, Stop};

pub(super) const KEY: &str = "warnings";

/// Writes the key and its array as the last member; nothing if there is no warning.
pub(super) fn member(mut to: impl Write, set: &ReportSet) -> io::Result<()> {
    let mut before = format!(",\n \"{KEY}\": [\n");
    for warning in set.warnings() {
        write!(to, "{before}  {{\n   \"kind\": \"{}\",\n   \"subject\": ", warning.kind)?;
        serde_json::to_writer(&mut to, &warning.subject)?;
        to.write_all(b",\n   \"message\": ")?;
        serde_json::to_writer(&mut to, &warning.message)?;
        to.write_all(b"\n  }")?;
        before = ",\n".to_owned();
    }
    if !set.warnings().is_empty() {
        to.write_all(b"\n ]")?;
    }
    Ok(())
}

/// Takes one element; `None` if it is not a warning.
pub(super) fn element(scan: &mut Scan<'_>, depth: u32) -> Result<Option<Warning>, Stop> {
    if scan.peek()? != b'{' {
        scan.skip(depth)?;
        return Ok(None);
    }
    scan.expect(b'{', "`{`")?;
    let (mut kind, mut subject, mut message) = (None, None, None);
    if !scan.eat(b'}')? {
        loop {
            let key = scan.string()?;
            scan.expect(b':', "`:`")?;
            if scan.peek()? == b'"' {
                let value = scan.string()?;
                match &*key {
                    "kind" => kind = WarningKind::from_name(&value),
                    "subject" => subject = Some(value.into_owned()),
                    "message" => message = Some(value.into_owned()),
                    _ => {}
                }
            } else {
                scan.skip(depth + 1)?;
            }
            if !scan.eat(b',')? {
                scan.expect(b'}', "`,` or `}`")?;
                break;
            }
        }
    }
    // An unknown kind comes from a later version, whose text says enough.
    let kind = kind.unwrap_or(WarningKind::Unavailable);
    Ok(subject.zip(message).map(|(subject, message)| Warning { kind, subject, message }))
}

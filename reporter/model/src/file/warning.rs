//! Warnings in a file, under a key that Firefox ignores.

use core::fmt::Write as _;

use crate::json::push_string;
use crate::report_set::ReportSet;
use crate::warning::{Warning, WarningKind};

use crate::reader::{ScanStop, TextScan};

pub(super) const KEY: &str = "warnings";

/// Appends the key and its array as the last member. Appends nothing if the set has no warnings.
pub(super) fn member(to: &mut String, set: &ReportSet) {
    let mut before = ",\n \"warnings\": [\n";
    for warning in set.warnings() {
        // Writing to a string does not fail.
        let _ = write!(to, "{before}  {{\n   \"kind\": \"{}\",\n   \"subject\": ", warning.kind);
        push_string(to, &warning.subject);
        to.push_str(",\n   \"message\": ");
        push_string(to, &warning.message);
        to.push_str("\n  }");
        before = ",\n";
    }
    if !set.warnings().is_empty() {
        to.push_str("\n ]");
    }
}

/// Parses one element; `None` if it is not a warning.
pub(super) fn element(scan: &mut TextScan<'_>, depth: u32) -> Result<Option<Warning>, ScanStop> {
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
    // An unknown kind comes from a later version of this crate. The warning's text describes the fault.
    let kind = kind.unwrap_or(WarningKind::Unavailable);
    Ok(subject.zip(message).map(|(subject, message)| Warning::new(kind, subject, message)))
}

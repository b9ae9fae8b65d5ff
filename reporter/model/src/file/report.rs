//! Parses one element of `reports` into a report, a fault, or both.

use std::borrow::Cow;

use crate::report::{Kind, Report, Units};

use crate::reader::{ScanStop, TextScan};

/// The name of the faulty field (empty: the whole report), and the fault.
pub(super) type FieldFault = (&'static str, Cow<'static, str>);

/// A field as found in the file.
enum FoundField<'t> {
    Missing,
    Text(Cow<'t, str>),
    Scalar(&'t str),
    Nested,
}

impl<'t> FoundField<'t> {
    fn scan(scan: &mut TextScan<'t>, depth: u32) -> Result<Self, ScanStop> {
        Ok(match scan.peek()? {
            b'"' => Self::Text(scan.string()?),
            b'[' | b'{' => {
                scan.skip(depth)?;
                Self::Nested
            }
            _ => Self::Scalar(scan.scalar()?),
        })
    }

    fn text(self, field: &'static str) -> Result<Cow<'t, str>, FieldFault> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Missing => Err((field, "missing".into())),
            _ => Err((field, "not a string".into())),
        }
    }

    fn whole(&self, field: &'static str) -> Result<i64, FieldFault> {
        match self {
            Self::Scalar(token) => whole(token).map_err(|message| (field, message)),
            Self::Missing => Err((field, "missing".into())),
            _ => Err((field, "not a whole number".into())),
        }
    }
}

/// A whole number in any notation; `1.0` and `1e3` are whole.
fn whole(token: &str) -> Result<i64, Cow<'static, str>> {
    if let Ok(number) = token.parse() {
        return Ok(number);
    }
    const TOO_LARGE: &str = "the number does not fit into 64 bits";
    if token.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()) {
        return Err(TOO_LARGE.into());
    }
    let number = token.parse::<f64>().unwrap_or(f64::NAN);
    if !number.is_finite() || number.fract() != 0.0 {
        return Err("not a whole number".into());
    }
    // 2^63 is exact as a float; i64::MAX would be rounded up to 2^63.
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        return Err(TOO_LARGE.into());
    }
    Ok(number as i64)
}

/// Receives a report and its fault. The report is `None` if a required field is faulty.
pub(super) type ReportHandler<'a> = dyn FnMut(Option<Report<'_>>, Option<FieldFault>) + 'a;

/// Parses one element. Calls `then` once, when the element is complete.
pub(super) fn element<'t>(
    scan: &mut TextScan<'t>,
    depth: u32,
    then: &mut ReportHandler<'_>,
) -> Result<(), ScanStop> {
    if scan.peek()? != b'{' {
        scan.skip(depth)?;
        then(None, Some(("", "not an object".into())));
        return Ok(());
    }
    let depth = depth + 1;
    let mut process = FoundField::Missing;
    let mut path = FoundField::Missing;
    let mut kind = FoundField::Missing;
    let mut units = FoundField::Missing;
    let mut amount = FoundField::Missing;
    let mut description = FoundField::Missing;
    scan.expect(b'{', "`{`")?;
    if !scan.eat(b'}')? {
        loop {
            let key = scan.string()?;
            scan.expect(b':', "`:`")?;
            let value = FoundField::scan(scan, depth)?;
            match &*key {
                "process" => process = value,
                "path" => path = value,
                "kind" => kind = value,
                "units" => units = value,
                "amount" => amount = value,
                "description" => description = value,
                _ => {}
            }
            if !scan.eat(b',')? {
                scan.expect(b'}', "`,` or `}`")?;
                break;
            }
        }
    }
    // As in Firefox, a report without a description is valid.
    let (description, description_fault) = match description.text("description") {
        Ok(text) => (text, None),
        Err(fault) => (Cow::Borrowed(""), Some(fault)),
    };
    let report = (|| {
        let (process, path) = (process.text("process")?, path.text("path")?);
        let kind = numbered(&kind, "kind", Kind::from_number)?;
        let units = numbered(&units, "units", Units::from_number)?;
        let amount = amount.whole("amount")?;
        if path.starts_with("explicit/") {
            if kind == Kind::Other {
                return Err(("kind", "OTHER is not allowed under explicit/".into()));
            }
            if units != Units::Bytes {
                return Err(("units", format!("{units} is not allowed under explicit/").into()));
            }
        }
        Ok((process, path, kind, units, amount))
    })();
    match report {
        Ok((process, path, kind, units, amount)) => {
            let (process, path, description) = (&*process, &*path, &*description);
            then(Some(Report { process, path, kind, units, amount, description }), description_fault);
        }
        Err(fault) => then(None, Some(fault)),
    }
    Ok(())
}

fn numbered<T>(
    found: &FoundField<'_>,
    field: &'static str,
    from_number: fn(i64) -> Option<T>,
) -> Result<T, FieldFault> {
    let number = found.whole(field)?;
    from_number(number).ok_or_else(|| (field, format!("unknown {field} {number}").into()))
}

//! Parses the text of a limit from its end, because a path may contain any character.

use core::str::FromStr;

use super::{DecimalNumber, Limit, LimitBound, LimitComparison, LimitError, LimitUnit};

/// The units of bytes: KiB, MiB and GiB are powers of 1,024; kB (also written KB), MB and GB are powers of 1,000.
const UNITS: [(&str, u32); 8] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// A limit with more decimals is rejected, so that comparisons are exact.
const MAX_DECIMALS: usize = 6;
/// A limit with more digits is rejected, so that comparisons are exact.
const MAX_DIGITS: usize = 20;

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        parse(text, true).map_err(|wrong| LimitError::Syntax(text.to_owned(), wrong))
    }
}

impl Limit {
    /// Parses a limit on one report, where a sign is part of the number.
    pub(crate) fn absolute(text: &str) -> Result<Self, LimitError> {
        parse(text, false).map_err(|wrong| LimitError::Syntax(text.to_owned(), wrong))
    }

    /// Makes a limit on a path from a condition such as `< 64 MiB`. A condition without a comparison means `<=`. Only
    /// processes whose name contains `process` are counted.
    ///
    /// # Errors
    ///
    /// Returns an error if `condition` cannot be parsed.
    pub fn on_path(process: Option<&str>, path: &str, condition: &str) -> Result<Self, LimitError> {
        let text = condition.trim();
        let has_comparison = text.starts_with(['<', '>', '=']);
        let condition = if has_comparison { text.to_owned() } else { format!("<= {text}") };
        let (rest, comparison, bound) =
            condition_of(&condition, true).map_err(|wrong| LimitError::Syntax(text.to_owned(), wrong))?;
        if !rest.is_empty() {
            return Err(LimitError::Syntax(text.to_owned(), "expected a limit such as 64 MiB"));
        }
        let (process, path) = (process.map(str::to_owned), path.to_owned());
        Ok(Self { process, path, comparison, bound, condition })
    }
}

fn parse(text: &str, sign_is_growth: bool) -> Result<Limit, &'static str> {
    let (place, comparison, bound) = condition_of(text, sign_is_growth)?;
    let condition = text[place.len()..].trim().to_owned();
    let place = place.trim();
    let (process, path) = match place.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((process, path)) => (Some(process.to_owned()), path.trim_start()),
        None => (None, place),
    };
    if path.is_empty() {
        return Err("the path is missing");
    }
    Ok(Limit { process, path: path.to_owned(), comparison, bound, condition })
}

/// Splits `text` before the condition at its end. Returns the text before the condition, the comparison and the bound.
fn condition_of(
    text: &str,
    sign_is_growth: bool,
) -> Result<(&str, LimitComparison, LimitBound), &'static str> {
    const EXPECTED: &str = "expected PATH, one of < <= > >= ==, and a limit such as 64 MiB or +5%";
    let last = text.rfind(['<', '>', '=']).ok_or(EXPECTED)?;
    let (before, bound) = (&text[..last], &text[last + 1..]);
    let (before, comparison) = match text.as_bytes()[last] {
        b'<' => (before, LimitComparison::Less),
        b'>' => (before, LimitComparison::Greater),
        _ => match before.as_bytes().last() {
            Some(b'<') => (&before[..last - 1], LimitComparison::LessOrEqual),
            Some(b'>') => (&before[..last - 1], LimitComparison::GreaterOrEqual),
            Some(b'=') => (&before[..last - 1], LimitComparison::Equal),
            _ => return Err(EXPECTED),
        },
    };
    Ok((before, comparison, bound_of(bound.trim(), sign_is_growth)?))
}

fn bound_of(text: &str, sign_is_growth: bool) -> Result<LimitBound, &'static str> {
    let (sign, rest) = match text.as_bytes().first() {
        Some(b'+') => (1, text[1..].trim_start()),
        Some(b'-') => (-1, text[1..].trim_start()),
        _ => (1, text),
    };
    let signed = text.starts_with(['+', '-']);
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '_' | ',');
    let end = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
    let (digits, unit) = rest.split_at(end);
    let unit = match unit.trim() {
        "" => LimitUnit::None,
        "%" => LimitUnit::Percent,
        name => match UNITS.iter().find(|(unit, _)| *unit == name) {
            Some((_, bytes)) => LimitUnit::Bytes(*bytes),
            None => return Err("the unit is not B, KiB, MiB, GiB, kB, MB, GB or %"),
        },
    };
    let number = decimal(digits)?;
    let number = DecimalNumber { mantissa: sign * number.mantissa, ..number };
    Ok(LimitBound { number, unit, growth: signed && sign_is_growth })
}

fn decimal(text: &str) -> Result<DecimalNumber, &'static str> {
    const NO_NUMBER: &str = "the limit is not a number";
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = whole.chars().chain(fraction.chars()).filter(char::is_ascii_digit).collect();
    if !whole.starts_with(|c: char| c.is_ascii_digit()) || fraction.contains(['.', ',']) {
        return Err(NO_NUMBER);
    }
    let decimals = fraction.bytes().filter(u8::is_ascii_digit).count();
    if digits.len() > MAX_DIGITS || decimals > MAX_DECIMALS {
        return Err("the limit has more than 20 digits or more than 6 decimals");
    }
    let mantissa = digits.parse().map_err(|_| NO_NUMBER)?;
    Ok(DecimalNumber { mantissa, decimals: u32::try_from(decimals).map_err(|_| NO_NUMBER)? })
}

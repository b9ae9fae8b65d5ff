//! Times on the command line.

use std::time::Duration;

/// Parses `2026-11-22T10:00:00Z`, or seconds since 1970.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let wrong = || "is not a time; write 2026-11-22T10:00:00Z, or seconds since 1970".to_owned();
    let (date, clock) = text.strip_suffix('Z').and_then(|text| text.split_once('T')).ok_or_else(wrong)?;
    let numbers = |text: &str, mark: char| {
        let numbers: Option<Vec<u64>> = text
            .split(mark)
            .map(|number| number.parse().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit())))
            .collect();
        numbers.and_then(|numbers| <[u64; 3]>::try_from(numbers).ok())
    };
    let [year, month, day] = numbers(date, '-').ok_or_else(wrong)?;
    let [hour, minute, second] = numbers(clock, ':').ok_or_else(wrong)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of = |month| match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let is_date =
        (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=days_of(month)).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return Err(wrong());
    }
    let before = year - 1;
    let leap_days = |years: u64| years / 4 - years / 100 + years / 400;
    let days = (year - 1970) * 365 + leap_days(before) - leap_days(1969)
        + (1..month).map(days_of).sum::<u64>()
        + (day - 1);
    Ok(Duration::from_secs(days * 86_400 + hour * 3600 + minute * 60 + second))
}

//! Days in UTC, as the names of the tables' folders.

use core::fmt;
use core::str::FromStr;
use std::time::Duration;

/// A day in UTC: the number of days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i32);

/// The seconds of a day.
pub(crate) const DAY_SECONDS: u64 = 86_400;

impl Day {
    /// The day of a time since 1970.
    pub fn at(time: Duration) -> Self {
        Self(i32::try_from(time.as_secs() / DAY_SECONDS).unwrap_or(i32::MAX))
    }

    /// The day's start since 1970.
    pub fn start(self) -> Duration {
        Duration::from_secs(u64::try_from(self.0).unwrap_or_default() * DAY_SECONDS)
    }

    /// The day after this number of days.
    #[must_use]
    pub fn plus(self, days: i32) -> Self {
        Self(self.0.saturating_add(days))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&memory_export::parquet::date(self.start()))
    }
}

impl FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a date such as 2026-11-22");
        let mut parts = text.splitn(3, '-').map(|part| {
            let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<i64>().ok().filter(|_| is_number)
        });
        let [year, month, day] = [parts.next(), parts.next(), parts.next()].map(Option::flatten);
        let (Some(year @ 1970..=9999), Some(month @ 1..=12), Some(number @ 1..=31)) = (year, month, day)
        else {
            return Err(wrong());
        };
        // Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
        let shifted = year - i64::from(month <= 2);
        let (era, year_of_era) = (shifted / 400, shifted % 400);
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + number - 1;
        let days =
            era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
        let day = Self(i32::try_from(days).map_err(|_| wrong())?);
        // Days such as 2026-02-30 would be another day.
        if day.to_string() == text { Ok(day) } else { Err(wrong()) }
    }
}

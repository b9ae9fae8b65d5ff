//! `chrono`: exact; plain data.

use chrono::{
    DateTime, FixedOffset, IsoWeek, Month, Months, NaiveDate, NaiveDateTime, NaiveTime, NaiveWeek, TimeDelta,
    TimeZone, Utc, Weekday,
};

use crate::measure::impls::plain::plain;

plain!(
    [] FixedOffset, [] IsoWeek, [] Month, [] Months, [] NaiveDate, [] NaiveDateTime, [] NaiveTime, [] NaiveWeek,
    [] TimeDelta, [] Utc, [] Weekday,
);

/// The offset of a time zone is a number, or a static name.
impl<Z: TimeZone> crate::MallocSizeOf for DateTime<Z> {
    const NEEDS_WALK: bool = false;

    #[inline]
    fn size_of_excluding_this<R: crate::Reading>(&self, _: &mut crate::MallocSizeOfOps<R>) -> usize {
        0
    }
}

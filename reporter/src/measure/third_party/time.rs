//! `time`: exact; plain data.

use time::{Date, Duration, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcDateTime, UtcOffset, Weekday};

use crate::measure::impls::plain::plain;

plain!(
    [] Date, [] Duration, [] Month, [] OffsetDateTime, [] PrimitiveDateTime, [] Time, [] UtcDateTime, [] UtcOffset,
    [] Weekday,
);

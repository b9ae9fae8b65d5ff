//! Formats times in messages. The formatting code of std takes two kilobytes for a duration, and twenty for a float.

use core::time::Duration;

/// Formats a time like the `Debug` output of [`Duration`]: `2s`, `1.5s`, `250ms`.
pub(super) fn shortest(time: Duration) -> String {
    let nanos = time.subsec_nanos();
    let (whole, part, digits, unit) = match (time.as_secs(), nanos) {
        (1.., _) => (time.as_secs(), nanos, 9, "s"),
        (_, 1_000_000..) => (u64::from(nanos / 1_000_000), nanos % 1_000_000, 6, "ms"),
        (_, 1_000..) => (u64::from(nanos / 1_000), nanos % 1_000, 3, "µs"),
        _ => return format!("{nanos}ns"),
    };
    let text = format!("{whole}.{part:0digits$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

/// Formats a time in seconds with one decimal.
pub(super) fn tenths(time: Duration) -> String {
    let tenths = u64::from(time.subsec_millis() + 50) / 100;
    let seconds = time.as_secs().saturating_add(tenths / 10);
    format!("{seconds}.{}", tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_are_those_of_std() {
        let nanos = [0, 7, 999, 1_000, 1_020, 20_000, 1_500_000, 250_000_000, 999_999_999];
        for secs in [0, 1, 2, 600, u64::MAX] {
            for nanos in nanos {
                let time = Duration::new(secs, nanos);
                assert_eq!(shortest(time), format!("{time:?}"));
            }
        }
        for millis in [0, 40, 60, 940, 960, 1_000, 1_240, 1_960, 12_340] {
            let time = Duration::from_millis(millis);
            assert_eq!(tenths(time), format!("{:.1}", time.as_secs_f64()));
        }
    }
}

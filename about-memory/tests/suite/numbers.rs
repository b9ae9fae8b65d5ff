//! Compares the digits in single lines of the text with ICU's digits.

use memory_reporter::{Kind, Report, ReportSet, Units};

fn line(amount: i64, units: Units) -> String {
    let mut set = ReportSet::new();
    let (process, path, kind, description) = ("p", "x", Kind::Other, "");
    set.push(Report { process, path, kind, units, amount, description });
    let text = super::shown(&set);
    let line = text.lines().find(|line| line.contains(" ── x")).unwrap();
    line.split(" ── ").next().unwrap().to_owned()
}

#[test]
fn halves_are_rounded_away_from_zero() {
    assert_eq!(line(131_072, Units::Bytes), "0.13 MB");
    assert_eq!(line(-131_072, Units::Bytes), "-0.13 MB");
    assert_eq!(line(-1, Units::Bytes), "-0.00 MB");
    assert_eq!(line(1_048_576 * 1_000 - 1, Units::Bytes), "1,000.00 MB");
    assert_eq!(line(0, Units::Bytes), "0.00 MB");
}

#[test]
fn whole_numbers_keep_all_digits() {
    assert_eq!(line(i64::MAX, Units::Count), "9,223,372,036,854,775,807");
    assert_eq!(line(i64::MIN, Units::CountCumulative), "-9,223,372,036,854,775,808");
    assert_eq!(line((1 << 53) + 1, Units::Count), "9,007,199,254,740,993");
    assert_eq!(line(i64::MAX, Units::Bytes), "8,796,093,022,208.00 MB");
    assert_eq!(line(i64::MIN, Units::Bytes), "-8,796,093,022,208.00 MB");
    assert_eq!(line(i64::MAX, Units::Percentage), "92,233,720,368,547,758.07%");
}

#[test]
fn percentages_are_hundredths() {
    assert_eq!(line(1234, Units::Percentage), "12.34%");
    assert_eq!(line(5, Units::Percentage), "0.05%");
    assert_eq!(line(-1, Units::Percentage), "-0.01%");
    assert_eq!(line(123_456_789, Units::Percentage), "1,234,567.89%");
}

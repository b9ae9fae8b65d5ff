//! Sets as lists of reports: reading, comparing and extending them.

use memory_report::{Kind, Report, ReportSet, Units, Warning, WarningKind};

fn report(path: &str, amount: i64) -> Report<'_> {
    Report { process: "p", path, kind: Kind::Heap, units: Units::Bytes, amount, description: "d" }
}

#[test]
fn sets_are_collected_extended_and_read_in_order() {
    let mut set: ReportSet = [report("explicit/a", 1), report("explicit/b", 2)].into_iter().collect();
    set.extend([report("explicit/c", 3)]);
    let mut amounts = Vec::new();
    for report in &set {
        amounts.push(report.amount);
    }
    assert_eq!(amounts, [1, 2, 3]);
    assert_eq!(set.iter().rev().map(|report| report.path).next(), Some("explicit/c"));
    assert_eq!((set.iter().len(), set.iter().nth(1)), (3, Some(report("explicit/b", 2))));
    assert_eq!((set.get(2).map(|report| report.amount), set.get(3)), (Some(3), None));
    assert_eq!(set.presence(3), None);
}

#[test]
fn sets_are_equal_if_their_files_are() {
    let reports = [report("explicit/a", 1), report("explicit/b", 2)];
    let set: ReportSet = reports.into_iter().collect();
    // The other set consists of two sets, one appended to the other, so its texts are at other offsets.
    let mut other: ReportSet = [reports[0]].into_iter().collect();
    other.append([reports[1]].into_iter().collect());
    assert_eq!(set, other);
    other.warn(Warning::new(WarningKind::Slow, "reporter", "took 2 s"));
    assert_ne!(set, other);
    let reversed: ReportSet = reports.into_iter().rev().collect();
    assert_ne!(set, reversed);
}

#[test]
fn kinds_and_units_read_their_own_names() {
    for kind in [Kind::NonHeap, Kind::Heap, Kind::Other] {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    for units in [Units::Bytes, Units::Count, Units::CountCumulative, Units::Percentage] {
        assert_eq!(units.to_string().parse(), Ok(units));
    }
    let error = "heap".parse::<Kind>().unwrap_err();
    assert_eq!(error.to_string(), "expected NONHEAP, HEAP or OTHER, found `heap`");
    let error = "".parse::<Units>().unwrap_err();
    assert_eq!(error.to_string(), "expected BYTES, COUNT, COUNT_CUMULATIVE or PERCENTAGE, found ``");
}

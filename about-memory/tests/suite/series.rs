//! Tables over time.

use about_memory::{ByteUnits, Series, SeriesOptions, SeriesSort};
use memory_reporter::{Kind, Report, ReportSet, Units};

fn set(reports: &[(&str, &str, Units, i64)]) -> ReportSet {
    let mut set = ReportSet::new();
    for &(process, path, units, amount) in reports {
        let kind = if path.starts_with("explicit/") { Kind::Heap } else { Kind::Other };
        set.push(Report { process, path, kind, units, amount, description: "" });
    }
    set
}

fn three() -> [ReportSet; 3] {
    use Units::{Bytes, Count};
    [
        set(&[
            ("Main (pid 1)", "explicit/cache/keys", Bytes, 3 << 20),
            ("Main (pid 1)", "explicit/pool", Bytes, 1 << 20),
            ("Main (pid 1)", "explicit/tiny", Bytes, 100),
            ("web (pid 2)", "explicit/cache/keys", Bytes, 1 << 20),
            ("web (pid 2)", "threads", Count, 4),
        ]),
        set(&[
            ("Main (pid 11)", "explicit/cache/keys", Bytes, 3 << 20),
            ("Main (pid 11)", "explicit/cache/values", Bytes, 9 << 20),
            ("Main (pid 11)", "explicit/pool", Bytes, 1 << 20),
        ]),
        set(&[
            ("Main (pid 21)", "explicit/cache/keys", Bytes, 2 << 20),
            ("Main (pid 21)", "explicit/pool", Bytes, 1 << 20),
            ("web (pid 22)", "explicit/new", Bytes, 6 << 20),
            ("web (pid 22)", "threads", Count, 9),
        ]),
    ]
}

fn series(options: SeriesOptions) -> Series {
    let mut series = Series::new(options);
    for (name, set) in ["mo", "tu", "we\u{1b}"].into_iter().zip(&three()) {
        series.add(name, set);
    }
    series
}

#[test]
fn trees_and_lines_of_all_processes() {
    let expected = "\
[1] mo
[2] tu
[3] we\\u{1b}

Total of all processes

    [1]       [2]      [3]    change         %       path
5.00 MB  13.00 MB  9.00 MB  +4.00 MB   +80.00%  ▁█▄  explicit
      4         -        9        +5  +125.00%  ▁ █  threads
";
    assert_eq!(series(SeriesOptions::new()).text().to_string(), expected);
}

#[test]
fn what_is_below_by_growth() {
    let series = series(SeriesOptions::new().path("explicit").depth(2).sort(SeriesSort::Growth));
    let text = series.text().units(ByteUnits::Auto).to_string();
    let paths: Vec<_> = series.rows().iter().map(|row| (row.path.to_owned(), row.growth() >> 20)).collect();
    let paths: Vec<_> = paths.iter().map(|(path, growth)| (path.as_str(), *growth)).collect();
    assert_eq!(
        paths,
        [
            ("explicit/new", 6),
            ("explicit", 3),
            ("explicit/cache", -2),
            ("explicit/cache/keys", -2),
            ("explicit/cache/values", 0),
            ("explicit/pool", 0),
        ]
    );
    assert!(text.ends_with("\n\n(1 tiny)\n"), "{text}");
}

#[test]
fn by_process_whatever_its_id() {
    let options = SeriesOptions::new().path("explicit").path("threads");
    let series = series(options.process("web").by_process(true).sort(SeriesSort::Name));
    let rows: Vec<_> = series.rows().iter().map(|r| (r.process, r.path, r.amounts.to_vec())).collect();
    let web = Some("web (pid NNN)");
    let bytes = vec![Some(1 << 20), None, Some(6 << 20)];
    let count = vec![Some(4), None, Some(9)];
    assert_eq!(
        rows,
        [
            (None, "explicit", bytes.clone()),
            (None, "threads", count.clone()),
            (web, "explicit", bytes),
            (web, "threads", count),
        ]
    );
}

/// In the first file, `explicit/a/b` is one merged entry. In the second file, it is two entries.
#[test]
fn rows_do_not_depend_on_what_is_merged() {
    let mut series = Series::new(SeriesOptions::new().depth(2));
    series.add(
        "merged",
        &set(&[("p", "explicit/a/b/c", Units::Bytes, 5), ("p", "explicit/d", Units::Bytes, 5)]),
    );
    series.add(
        "apart",
        &set(&[
            ("p", "explicit/a/b/c", Units::Bytes, 6),
            ("p", "explicit/a/x", Units::Bytes, 1),
            ("p", "explicit/a", Units::Bytes, 2),
        ]),
    );
    let rows: Vec<_> = series.rows().iter().map(|r| (r.path, r.amounts.to_vec())).collect();
    assert_eq!(
        rows,
        [
            ("explicit", vec![Some(10), Some(9)]),
            ("explicit/a", vec![Some(5), Some(9)]),
            ("explicit/a/b", vec![Some(5), Some(6)]),
            ("explicit/a/(itself)", vec![None, Some(2)]),
            ("explicit/a/x", vec![None, Some(1)]),
            ("explicit/d", vec![Some(5), None]),
        ]
    );
}

#[test]
fn many_reports_show_the_ends_and_the_extremes() {
    let mut series = Series::new(SeriesOptions::default());
    for i in 0..130 {
        series.add(format!("{i}"), &set(&[("p", "n", Units::Count, (i - 40) * (i - 40))]));
    }
    let text = series.text().to_string();
    let heading = text.lines().find(|line| line.ends_with("path")).unwrap();
    let cells: Vec<_> = heading.split_whitespace().collect();
    assert_eq!(cells, ["[1]", "lowest", "highest", "[130]", "change", "%", "path"]);
    let cells: Vec<_> = text.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(cells[..6], ["1,600", "0", "7,921", "7,921", "+6,321", "+395.06%"]);
    assert_eq!(cells[6].chars().count(), 44, "three reports per bar");
}

#[test]
fn nothing_is_no_results() {
    let series = Series::new(SeriesOptions::default());
    assert_eq!(series.text().to_string(), "No results found.\n");
}

#[test]
fn what_two_chosen_paths_share_counts_once() {
    let reports =
        [("", "explicit/cache/a", Units::Bytes, 1 << 20), ("", "explicit/other", Units::Bytes, 1 << 20)];
    let set = set(&reports);
    let options =
        SeriesOptions::new().depth(2).path("explicit").path("explicit/cache").path("explicit/cache");
    let mut series = Series::new(options);
    series.add("one", &set);
    let amount =
        |path: &str| series.rows().iter().find(|row| row.path == path).and_then(|row| row.amounts[0]);
    assert_eq!(amount("explicit"), Some(2 << 20));
    assert_eq!(amount("explicit/cache"), Some(1 << 20));
    assert_eq!(amount("explicit/cache/a"), Some(1 << 20));
}

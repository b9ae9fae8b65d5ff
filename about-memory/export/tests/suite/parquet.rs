//! Tables, read back by the reader of the crate `parquet`.

use std::time::Duration;

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::serialized_reader::ReadOptionsBuilder;
use ::parquet::record::{Field, Row};
use bytes::Bytes;
use memory_export::parquet::{self, CensusRow, ParquetOptions, ParquetRun, SCHEMA_VERSION};
use memory_export::{ExportError, ProfileValue, StackProfile};
use memory_report::tree::Forest;
use memory_report::{Kind, Report, ReportSet, Units, Warning, WarningKind};

use crate::inputs;

fn read(bytes: &[u8]) -> SerializedFileReader<Bytes> {
    let options = ReadOptionsBuilder::new().with_page_index().build();
    SerializedFileReader::new_with_options(Bytes::copy_from_slice(bytes), options).unwrap()
}

fn rows(bytes: &[u8]) -> Vec<Row> {
    read(bytes).get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

fn field<'r>(row: &'r Row, name: &str) -> &'r Field {
    row.get_column_iter().find(|(column, _)| *column == name).unwrap().1
}

fn text(row: &Row, name: &str) -> Option<String> {
    match field(row, name) {
        Field::Str(text) => Some(text.clone()),
        Field::Null => None,
        other => panic!("{name}: {other:?}"),
    }
}

fn integer(row: &Row, name: &str) -> Option<i128> {
    match field(row, name) {
        Field::Long(number) => Some((*number).into()),
        Field::ULong(number) => Some((*number).into()),
        Field::UInt(number) => Some((*number).into()),
        Field::UByte(number) => Some((*number).into()),
        Field::TimestampMicros(number) => Some((*number).into()),
        Field::Null => None,
        other => panic!("{name}: {other:?}"),
    }
}

fn sum(rows: &[Row], name: &str) -> i128 {
    rows.iter().filter_map(|row| integer(row, name)).sum()
}

fn report<'a>(process: &'a str, path: &'a str, kind: Kind, amount: i64) -> Report<'a> {
    Report { process, path, kind, units: Units::Bytes, amount, description: "What it is." }
}

fn run() -> ParquetRun {
    let mut run = ParquetRun::new("search", Duration::from_micros(1_763_856_000_123_456));
    run.host = Some("worker-1".to_owned());
    run.version = Some("1.2".to_owned());
    run.labels.insert("region".to_owned(), "eu".to_owned());
    run.labels.insert("zone".to_owned(), String::new());
    run
}

fn reports(set: &ReportSet, options: &ParquetOptions) -> Vec<u8> {
    let mut file = Vec::new();
    parquet::reports(&[(&run().with_id_from_reports(set), set)], options, &mut file).unwrap();
    file
}

fn some_reports() -> ReportSet {
    let mut set = ReportSet::new();
    set.push(report("app (pid 4000000000)", "heap-allocated", Kind::Other, 1000));
    set.push(report("app (pid 4000000000)", "explicit/b", Kind::Heap, 100));
    set.push(report("app (pid 4000000000)", "explicit/a\\b/c", Kind::NonHeap, 50));
    set.push(report("app (pid 4000000000)", "explicit/b", Kind::Heap, 11));
    set.push(report("Web (Content)", "explicit/b", Kind::Heap, i64::MIN));
    for units in [Units::Count, Units::CountCumulative, Units::Percentage] {
        let path = "share";
        set.push(Report { units, path, ..report("other", path, Kind::Other, i64::MAX) });
    }
    set
}

#[test]
fn reports_come_back_in_order() {
    let set = some_reports();
    let file = reports(&set, &ParquetOptions::new());
    let rows = rows(&file);
    let columns: Vec<&str> = rows[0].get_column_iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        columns,
        [
            "ts",
            "run_id",
            "host",
            "service",
            "version",
            "build_id",
            "process",
            "pid",
            "started",
            "path",
            "name",
            "depth",
            "kind",
            "units",
            "amount",
            "description",
            "labels"
        ]
    );
    let shown: Vec<String> = rows
        .iter()
        .map(|row| {
            let [process, path, name, kind, units] =
                ["process", "path", "name", "kind", "units"].map(|column| text(row, column).unwrap());
            let [depth, amount] = ["depth", "amount"].map(|column| integer(row, column).unwrap());
            format!("{process} {:?} {path} {name} {depth} {kind} {units} {amount}", integer(row, "pid"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "Web (Content) None explicit/b b 2 heap bytes -9223372036854775808",
            "app Some(4000000000) explicit/a\\b/c c 3 nonheap bytes 50",
            "app Some(4000000000) explicit/b b 2 heap bytes 100",
            "app Some(4000000000) explicit/b b 2 heap bytes 11",
            "app Some(4000000000) explicit/heap-unclassified heap-unclassified 2 heap bytes 889",
            "app Some(4000000000) heap-allocated heap-allocated 1 other bytes 1000",
            "other None share share 1 other count 9223372036854775807",
            "other None share share 1 other count-cumulative 9223372036854775807",
            "other None share share 1 other percentage 9223372036854775807",
        ]
    );
    let first = &rows[0];
    assert_eq!(integer(first, "ts"), Some(1_763_856_000_123_456));
    assert_eq!(text(first, "host").as_deref(), Some("worker-1"));
    assert_eq!(text(first, "build_id"), None);
    assert_eq!(integer(first, "started"), None);
    assert_eq!(field(first, "labels").to_string(), "{\"region\" -> \"eu\", \"zone\" -> \"\"}");
}

#[test]
fn sums_are_those_of_the_tree() {
    let mut set = ReportSet::new();
    set.push(report("", "heap-allocated", Kind::Other, (1 << 53) + 1));
    for (index, name) in inputs::HOSTILE.iter().enumerate() {
        let path = format!("explicit/{}", memory_report::path_segment(&format!("{index} {name}")));
        set.push(report("", &path, Kind::Heap, (1 << 53) + 1 + index as i64));
    }
    let rows = rows(&reports(&set, &ParquetOptions::new()));
    let of = |path: &str| {
        let rows = rows.iter().filter(|row| text(row, "path").unwrap().starts_with(path));
        rows.map(|row| integer(row, "amount").unwrap()).sum::<i128>()
    };
    let forest = Forest::new(&set);
    assert_eq!(Some(of("explicit/")), forest.amount("explicit"));
    assert_eq!(Some(of("explicit/heap-unclassified")), forest.amount("explicit/heap-unclassified"));
    assert!(of("explicit/heap-unclassified") < -(1 << 53));
    let names: Vec<String> = rows.iter().map(|row| text(row, "path").unwrap()).collect();
    for name in inputs::HOSTILE {
        let name = memory_report::path_segment(&format!(" {name}"));
        assert!(names.iter().any(|path| path.ends_with(&name)), "{name:?}");
    }
}

#[test]
fn an_unclassified_amount_beyond_64_bits_is_an_error() {
    let mut set = ReportSet::new();
    set.push(report("", "heap-allocated", Kind::Other, i64::MAX));
    set.push(report("", "explicit/a", Kind::Heap, i64::MIN));
    let error = parquet::reports(&[(&run(), &set)], &ParquetOptions::new(), Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Parquet cannot hold an amount of heap-unclassified of 18446744073709551615: numbers are exact only up to \
         9223372036854775807"
    );
}

#[test]
fn files_say_how_they_are_read() {
    let file = reports(&some_reports(), &ParquetOptions::new());
    let reader = read(&file);
    let metadata = reader.metadata();
    let facts = metadata.file_metadata().key_value_metadata().unwrap();
    let fact = |key: &str| facts.iter().find(|fact| fact.key == key).unwrap().value.clone().unwrap();
    assert_eq!(fact("memory_report.schema"), SCHEMA_VERSION.to_string());
    assert_eq!(fact("memory_report.table"), "reports");
    assert!(fact("memory_report.units").contains("microseconds"));
    assert_eq!(fact("memory_report.runs"), run().with_id_from_reports(&some_reports()).id_text());
    assert!(metadata.page_index().is_some());
    let group = metadata.row_group(0);
    let sorted: Vec<String> = group
        .sorting_columns()
        .unwrap()
        .iter()
        .map(|column| group.column(column.column_idx as usize).column_path().string())
        .collect();
    assert_eq!(sorted, ["service", "process", "path", "ts"]);
    for column in group.columns() {
        assert!(column.compression().to_string().starts_with("ZSTD"), "{column:?}");
        let path = column.column_path().string();
        assert_eq!(column.bloom_filter_offset().is_some(), path == "path", "{path}");
        let has_dictionary = column.dictionary_page_offset().is_some();
        let is_number = ["ts", "amount"].contains(&&*path);
        // A chunk without values does not need a dictionary.
        assert!(!is_number || !has_dictionary, "{path}");
        assert!(path != "path" || has_dictionary);
    }
}

#[test]
fn row_groups_have_the_chosen_size_and_many_paths_stay_sorted() {
    let mut set = ReportSet::new();
    for index in 0..10_000_u64 {
        // A fixed order that is far from sorted. Paths have long common prefixes, and some paths are prefixes of
        // others.
        let number = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        let path =
            format!("explicit/a-long-common-beginning/{number}/{}", "x/".repeat((number % 7) as usize));
        set.push(report("", path.trim_end_matches('/'), Kind::NonHeap, 1));
        if index % 100 == 0 {
            set.push(report("", &format!("{path}\0"), Kind::NonHeap, 1));
            set.push(report("", "explicit/a-long-common-beginning/", Kind::NonHeap, 1));
        }
    }
    let file = reports(&set, &ParquetOptions::new().row_group(4000));
    let groups: Vec<i64> = read(&file).metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [4000, 4000, 2200]);
    let paths: Vec<String> = rows(&file).iter().map(|row| text(row, "path").unwrap()).collect();
    let mut sorted: Vec<String> = set.iter().map(|report| report.path.to_owned()).collect();
    sorted.sort_unstable();
    assert_eq!(paths, sorted);
}

#[test]
fn bytes_do_not_depend_on_the_number_of_threads() {
    let input = inputs::stacks(30_000);
    let write = |threads| {
        let (mut blocks, options) = (Vec::new(), ParquetOptions::new().row_group(20_000).threads(threads));
        parquet::stacks(&run(), &input, &options, &mut blocks).unwrap();
        blocks
    };
    let alone = write(1);
    assert_eq!(alone, write(2));
    assert_eq!(alone, write(40));
    assert_eq!(read(&alone).metadata().file_metadata().num_rows(), 30_000);
}

#[test]
fn runs_share_a_file() {
    let (first, second) = (some_reports(), some_reports());
    let mut earlier = run();
    earlier.time -= Duration::from_secs(1);
    let mut other = ParquetRun::new("a", earlier.time);
    other.pid = Some(3);
    let empty = ReportSet::new();
    let mut file = Vec::new();
    let runs = [(&run(), &first), (&earlier, &second), (&other, &empty)];
    parquet::reports(&runs, &ParquetOptions::new(), &mut file).unwrap();
    let rows = rows(&file);
    assert_eq!(rows.len(), 18);
    let times: Vec<i128> = rows[..2].iter().map(|row| integer(row, "ts").unwrap()).collect();
    assert!(times[0] < times[1]);
}

#[test]
fn ids_follow_from_what_is_written() {
    let set = some_reports();
    let id = |run: ParquetRun, set: &ReportSet| run.with_id_from_reports(set).id;
    assert_eq!(id(run(), &set), id(run(), &some_reports()));
    assert_eq!(reports(&set, &ParquetOptions::new()), reports(&set, &ParquetOptions::new()));
    let mut more = some_reports();
    more.push(report("", "explicit/new", Kind::Heap, 1));
    assert_ne!(id(run(), &set), id(run(), &more));
    let mut elsewhere = run();
    elsewhere.host = None;
    assert_ne!(id(run(), &set), id(elsewhere, &set));
    // Files contain these ids, so no version may change them.
    let first = ParquetRun::new("search", Duration::from_secs(1)).with_id_from_reports(&ReportSet::new());
    assert_eq!(first.id_text(), ID_OF_NOTHING);
}

const ID_OF_NOTHING: &str = "a1bba5c3ab3d7cecdc1404908ba96c2e";

#[test]
fn folders_have_dates_and_encoded_services() {
    for (seconds, date) in [
        (0, "1970-01-01"),
        (68_169_600, "1972-02-29"),
        (951_782_400, "2000-02-29"),
        (951_868_800, "2000-03-01"),
        (1_763_855_999, "2025-11-22"),
        (4_107_542_399, "2100-02-28"),
        (4_107_542_400, "2100-03-01"),
    ] {
        assert_eq!(parquet::date(Duration::from_secs(seconds)), date);
    }
    for (service, folder) in [
        ("search", "search"),
        ("a/b c", "a%2Fb%20c"),
        ("..", "%2E%2E"),
        ("v1.2", "v1.2"),
        ("", "__HIVE_DEFAULT_PARTITION__"),
        ("é=\n", "%C3%A9%3D%0A"),
    ] {
        let run = ParquetRun::new(service, Duration::ZERO);
        let expected = format!("stacks/date=1970-01-01/service_folder={folder}/{}.parquet", "0".repeat(32));
        assert_eq!(parquet::file_name("stacks", &run), expected);
    }
    // Long names are cut between characters, because readers decode the folder as UTF-8.
    for (service, kept) in [("/".repeat(1000), "%2F".repeat(78)), ("€".repeat(100), "%E2%82%AC".repeat(26))]
    {
        let long = parquet::file_name("stacks", &ParquetRun::new(service, Duration::ZERO));
        assert!(long.contains(&format!("/service_folder={kept}/")), "{long}");
        assert!(long.split('/').all(|folder| folder.len() < 255), "{long}");
    }
}

#[test]
fn warnings_come_back() {
    let mut set = ReportSet::new();
    for name in inputs::HOSTILE {
        set.warn(Warning::new(WarningKind::TimedOut, name, name));
    }
    let mut file = Vec::new();
    parquet::warnings(&[(&run(), &set)], &ParquetOptions::new(), &mut file).unwrap();
    let rows = rows(&file);
    let texts: Vec<String> = rows.iter().map(|row| text(row, "text").unwrap()).collect();
    assert_eq!(texts, inputs::HOSTILE);
    assert_eq!(text(&rows[0], "kind").as_deref(), Some("timed-out"));
}

fn stacks(stacks: &StackProfile) -> (Vec<Row>, Vec<Row>) {
    let (mut blocks, mut frames) = (Vec::new(), Vec::new());
    let run = run().with_id_from_stacks(stacks);
    parquet::stacks(&run, stacks, &ParquetOptions::new(), &mut blocks).unwrap();
    parquet::frames(&run, stacks, &ParquetOptions::new(), &mut frames).unwrap();
    (rows(&blocks), rows(&frames))
}

#[test]
fn stacks_have_the_sums_and_the_frames() {
    let mut all = inputs::ordinary();
    if std::env::var_os("THOROUGH").is_none() {
        // Without optimization, the reader needs a tenth of a millisecond for a row.
        all[3] = ("5,000 stacks", inputs::stacks(5_000));
    }
    for (what, input) in all {
        let (blocks, frames) = stacks(&input);
        assert_eq!(Some(sum(&blocks, "blocks")), input.total(ProfileValue::LiveBlocks), "{what}");
        assert_eq!(Some(sum(&blocks, "usable")), input.total(ProfileValue::LiveBytes), "{what}");
        assert_eq!(sum(&blocks, "alloc_bytes"), 0, "{what}");
        let mut known: Vec<i128> = frames.iter().map(|row| integer(row, "stack_id").unwrap()).collect();
        let count = known.len();
        assert!(known.is_sorted(), "{what}");
        known.dedup();
        assert_eq!(known.len(), count, "{what}");
        for row in &blocks {
            let id = integer(row, "stack_id").unwrap();
            assert!(known.binary_search(&id).is_ok(), "{what}");
        }
        let found: usize = frames
            .iter()
            .map(|row| match field(row, "frames") {
                Field::ListInternal(frames) => frames.len(),
                other => panic!("{other:?}"),
            })
            .sum();
        let mut ids: Vec<_> = input.samples().map(|sample| sample.stack).collect();
        ids.dedup();
        let expected: usize = ids.iter().map(|stack| input.stack(*stack).len()).sum();
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn hostile_names_come_back_in_stacks_and_frames() {
    let (blocks, frames) = stacks(&inputs::hostile());
    let all: String = frames.iter().map(|row| field(row, "frames").to_string()).collect();
    for name in inputs::HOSTILE {
        assert!(blocks.iter().any(|row| text(row, "type").as_deref() == Some(name)), "{name:?}");
        assert!(blocks.iter().any(|row| text(row, "reporter").as_deref() == Some(name)), "{name:?}");
        assert!(all.contains(name), "{name:?}");
    }
    assert!(all.contains("build_id: \"00ff\"") && all.contains("offset: 4660"), "{all}");
}

#[test]
fn stacks_have_amounts_of_any_sign() {
    for amounts in [(i64::MIN, i64::MAX - 10), (-1, inputs::BEYOND)] {
        let (blocks, _) = stacks(&inputs::with_amounts(amounts.0, amounts.1));
        assert_eq!(sum(&blocks, "blocks"), i128::from(amounts.0) + 1);
        assert_eq!(sum(&blocks, "usable"), i128::from(amounts.1) + 10);
    }
}

#[test]
fn a_census_comes_back() {
    let row = |group: &[&str], bytes: i64, retained| CensusRow {
        by: "type".to_owned(),
        group: group.iter().map(|name| (*name).to_owned()).collect(),
        bytes,
        count: 1,
        retained,
    };
    let census = [row(&["b", "c\n\"d"], i64::MAX, Some(7)), row(&[], -1, None), row(&["a"], 3, None)];
    let run = run().with_id_from_census(&census);
    let mut file = Vec::new();
    parquet::census(&run, &census, &ParquetOptions::new(), &mut file).unwrap();
    let rows = rows(&file);
    let groups: Vec<String> = rows.iter().map(|row| field(row, "group").to_string()).collect();
    assert_eq!(groups, ["[]", "[\"a\"]", "[\"b\", \"c\n\"d\"]"]);
    assert_eq!(sum(&rows, "bytes"), i128::from(i64::MAX) + 2);
    assert_eq!(sum(&rows, "retained"), 7);
}

#[test]
fn empty_tables_are_files() {
    let (empty, none) = (ReportSet::new(), inputs::empty());
    let write = |table: &dyn Fn(&mut Vec<u8>) -> Result<(), ExportError>| {
        let mut file = Vec::new();
        table(&mut file).unwrap();
        assert_eq!(rows(&file).len(), 0);
    };
    let (run, options) = (run(), ParquetOptions::new());
    write(&|out| parquet::reports(&[], &options, out));
    write(&|out| parquet::reports(&[(&run, &empty)], &options, out));
    write(&|out| parquet::warnings(&[(&run, &empty)], &options, out));
    write(&|out| parquet::stacks(&run, &none, &options, out));
    write(&|out| parquet::frames(&run, &none, &options, out));
    write(&|out| parquet::census(&run, &[], &options, out));
}

#[test]
fn a_failing_stream_is_an_error() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let set = some_reports();
    let whole = reports(&set, &ParquetOptions::new()).len();
    for room in (0..whole).step_by(97) {
        let error = parquet::reports(&[(&run(), &set)], &ParquetOptions::new(), Full(room)).unwrap_err();
        let ExportError::Write(error) = error else { panic!("{error}") };
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    }
}

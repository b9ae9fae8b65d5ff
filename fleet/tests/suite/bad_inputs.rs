//! Files and folders that are not as they should be: each is one line, and the rest is read.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use memory_fleet::{FleetSession, Question, QuestionOptions, RunFacts, SessionOptions, import};
use parquet::arrow::ArrowWriter;
use tempfile::TempDir;

use crate::support::{ask, block_on, open, query, report};

/// 2026-11-22T10:00:00Z.
const TIME: u64 = 1_795_341_600;

fn add(root: &Path, service: &str, time: u64, amount: i64) -> PathBuf {
    let source = root.join("source.json");
    fs::write(&source, report("app (pid 7)", &[("explicit/a", amount), ("heap-allocated", 2 * amount)]))
        .unwrap();
    let mut facts = RunFacts::default();
    facts.service = Some(service.to_owned());
    facts.host = Some("h".to_owned());
    facts.time = Some(Duration::from_secs(time));
    let done = import(root, std::slice::from_ref(&source), &facts).unwrap();
    fs::remove_file(source).unwrap();
    done.files.into_iter().next().unwrap()
}

fn one_file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = add(folder.path(), "search", TIME, 1000);
    (folder, file)
}

fn count(root: &Path) -> String {
    query(root, "SELECT count(*) FROM reports").unwrap()[0][0].clone()
}

fn warnings(root: &Path) -> String {
    open(root).warnings().join("\n")
}

#[test]
fn names_of_services_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let services = ["a/b", "a=b", "%2F", "é ü", "..", "it's", "search"];
    for service in services {
        add(folder.path(), service, TIME, 1000);
    }
    let found = query(folder.path(), "SELECT DISTINCT service FROM reports ORDER BY service").unwrap();
    let mut expected = services.map(|service| vec![service.to_owned()]);
    expected.sort();
    assert_eq!(found, expected);
    // In an answer, too, whose commands quote the name.
    let mut options = QuestionOptions::default();
    options.service = Some("it's".to_owned());
    let answer = block_on(open(folder.path()).ask(&Question::Growth, &options)).unwrap();
    assert_eq!(answer.rows.num_rows(), 2);
}

#[test]
fn the_folders_of_earlier_versions_are_read() {
    let (folder, file) = one_file();
    let old = folder.path().join("reports/date=2026-11-21/service=search");
    fs::create_dir_all(&old).unwrap();
    fs::copy(&file, old.join(file.file_name().unwrap())).unwrap();
    assert_eq!(
        query(folder.path(), "SELECT service, date, count(*) FROM reports GROUP BY 1, 2 ORDER BY 2").unwrap(),
        [["search", "2026-11-21", "3"], ["search", "2026-11-22", "3"]]
    );
}

#[test]
fn cut_and_empty_files_are_warnings() {
    let (folder, file) = one_file();
    let contents = fs::read(&file).unwrap();
    let place = file.parent().unwrap();
    fs::write(place.join("cut.parquet"), &contents[..contents.len() / 2]).unwrap();
    fs::write(place.join("empty.parquet"), "").unwrap();
    fs::write(place.join("text.parquet"), "not a table at all").unwrap();
    let mut torn = contents.clone();
    let length = torn.len();
    torn[length - 60..length - 8].fill(0xff);
    fs::write(place.join("torn.parquet"), torn).unwrap();
    // A file that a killed process left is not even a warning.
    fs::write(place.join("incomplete-0123.parquet"), &contents[..10]).unwrap();
    assert_eq!(count(folder.path()), "3");
    let warnings = warnings(folder.path());
    for part in [
        "cut.parquet: is not read: it is cut",
        "empty.parquet: is not read: it has only 0 bytes",
        "text.parquet",
        "torn.parquet",
    ] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    assert_eq!(warnings.lines().count(), 4, "{warnings}");
    // The questions carry the warnings.
    assert!(ask(folder.path(), &Question::Growth).notes.iter().any(|note| note.contains("cut.parquet")));
}

#[test]
fn other_columns_are_warnings() {
    let (folder, file) = one_file();
    let place = file.parent().unwrap();
    let write = |name: &str, columns: &[(&str, ArrayRef)]| {
        let batch = RecordBatch::try_from_iter(columns.to_vec()).unwrap();
        let file = fs::File::create(place.join(name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    };
    write("few.parquet", &[("service", Arc::new(StringArray::from(vec!["x"])))]);
    write("number.parquet", &[("ts", Arc::new(Int64Array::from(vec![1])))]);
    assert_eq!(count(folder.path()), "3");
    let warnings = warnings(folder.path());
    assert!(warnings.contains("few.parquet: is not read: it has no column ts"), "{warnings}");
    assert!(
        warnings.contains("number.parquet: is not read: its column ts is Int64, not Timestamp"),
        "{warnings}"
    );
}

#[test]
fn other_folders_are_warnings() {
    let (folder, file) = one_file();
    for place in
        ["date=2026-11-31/service_folder=x", "date=/service_folder=x", "day=2026-11-22", "date=2026-11-22/x"]
    {
        let place = folder.path().join("reports").join(place);
        fs::create_dir_all(&place).unwrap();
        fs::copy(&file, place.join("run.parquet")).unwrap();
    }
    assert_eq!(count(folder.path()), "3");
    let warnings = warnings(folder.path());
    for part in
        ["\"2026-11-31\" is not a date", "\"\" is not a date", "day=2026-11-22: is not a folder date=DATE"]
    {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    assert_eq!(warnings.lines().count(), 4, "{warnings}");
}

#[test]
fn a_day_in_the_future_is_a_day() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), "search", TIME + 86_400 * 36_500, 1000);
    assert_eq!(query(folder.path(), "SELECT DISTINCT date FROM reports").unwrap(), [["2126-10-29"]]);
}

#[test]
fn a_folder_without_reports_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error =
        block_on(open(folder.path()).ask(&Question::Growth, &QuestionOptions::default())).unwrap_err();
    assert!(error.to_string().contains("has no reports in these days"), "{error}");
    let error = FleetSession::open(&folder.path().join("missing"), &SessionOptions::default()).unwrap_err();
    assert!(error.to_string().contains("missing: No such file"), "{error}");
}

#[test]
fn queries_only_read() {
    let (folder, _) = one_file();
    for sql in [
        "DROP TABLE reports",
        "CREATE TABLE x AS SELECT 1",
        "COPY reports TO '/tmp/x.parquet'",
        "INSERT INTO reports SELECT * FROM reports",
        "SET datafusion.execution.batch_size = 1",
    ] {
        let error = query(folder.path(), sql).unwrap_err().to_string();
        assert!(error.contains("not supported") && error.lines().count() == 1, "{sql}: {error}");
    }
    for (sql, part) in [
        ("SELECT nothing FROM reports", "nothing"),
        ("SELEC 1", "SELEC"),
        ("SELECT * FROM nowhere", "nowhere"),
    ] {
        let error = query(folder.path(), sql).unwrap_err().to_string();
        assert!(error.contains(part) && error.lines().count() == 1, "{sql}: {error}");
    }
    assert_eq!(count(folder.path()), "3");
}

#[test]
fn a_second_import_of_a_file_adds_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(add(folder.path(), "search", TIME, 1000), add(folder.path(), "search", TIME, 1000));
    assert_eq!(count(folder.path()), "3");
}

#[test]
fn a_deleted_file_makes_a_session_stale() {
    let (folder, file) = one_file();
    let session = open(folder.path());
    assert!(!session.is_stale());
    fs::remove_file(file).unwrap();
    assert!(block_on(session.ask_sql("SELECT * FROM reports", 0)).is_err());
    assert!(session.is_stale());
}

#[test]
fn a_query_without_a_limit_has_one() {
    let (folder, _) = one_file();
    let sql =
        "SELECT a.value FROM generate_series(1, 1000000) AS a CROSS JOIN generate_series(1, 1000000) AS b";
    let answer = block_on(open(folder.path()).ask_sql(sql, 7)).unwrap();
    assert_eq!((answer.rows.num_rows(), answer.title.as_str()), (7, "The first 7 rows; --limit 0 shows all"));
    for sql in ["DESCRIBE buckets", "EXPLAIN SELECT * FROM reports"] {
        assert!(block_on(open(folder.path()).ask_sql(sql, 100)).unwrap().rows.num_rows() > 1, "{sql}");
    }
}

#[test]
fn files_of_a_folder_that_are_no_reports_are_skipped() {
    let (folder, sources) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let deep = sources.path().join("deep");
    fs::create_dir(&deep).unwrap();
    fs::write(sources.path().join("a.json"), report("app (pid 7)", &[("explicit/a", 1)])).unwrap();
    fs::write(deep.join("b.json"), report("app (pid 8)", &[("explicit/a", 2)])).unwrap();
    fs::write(deep.join("cut.json"), "{\"version\": 1, \"reports\": [").unwrap();
    fs::write(deep.join("notes.txt"), "no report").unwrap();
    let done = import(folder.path(), &[sources.path().to_owned()], &RunFacts::default()).unwrap();
    assert_eq!((done.files.len(), done.skipped.len()), (2, 1), "{done:?}");
    assert!(done.skipped[0].contains("cut.json: "), "{done:?}");
    // The service is the process's name.
    assert_eq!(
        query(folder.path(), "SELECT service, pid FROM reports ORDER BY pid").unwrap(),
        [["app", "7"], ["app", "8"]]
    );
    // A file that the user names must be a report.
    assert!(import(folder.path(), &[deep.join("notes.txt")], &RunFacts::default()).is_err());
}

#[test]
fn many_tiny_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = add(folder.path(), "search", TIME, 1000);
    for number in 0..500 {
        fs::copy(&file, file.with_file_name(format!("{number:032x}.parquet"))).unwrap();
    }
    assert_eq!(count(folder.path()), (3 * 501).to_string());
}

//! The program: its texts, formats and exit statuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use tempfile::TempDir;

/// 40 processes for 12 days.
static TRIAL: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "simulate",
        "trial",
        "--processes",
        "40",
        "--days",
        "12",
        "--minutes",
        "120",
        "--paths",
        "20",
        "--planted",
        "6",
    ];
    let output = run(folder.path(), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
});

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_memory-fleet")).args(arguments).current_dir(folder).output().unwrap()
}

fn golden(name: &str, found: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == found, "{}:\n{found}", path.display());
}

#[test]
fn each_question_has_its_text() {
    for question in ["growth", "versions", "leaks", "changes", "outliers", "dark", "coverage"] {
        let output = run(TRIAL.path(), &[question, "trial", "--limit", "5"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        golden(&format!("{question}.txt"), &String::from_utf8(output.stdout).unwrap());
    }
}

#[test]
fn a_budget_that_does_not_hold_has_status_3() {
    fs::write(TRIAL.path().join("tight.toml"), "[budget]\n\"explicit/cache\" = \"1 KiB\"\n").unwrap();
    fs::write(TRIAL.path().join("wide.toml"), "[budget]\n\"explicit/cache\" = \"100 GiB\"\n").unwrap();
    fs::write(TRIAL.path().join("wrong.toml"), "[budget\n").unwrap();
    let output = run(TRIAL.path(), &["budget", "trial", "tight.toml"]);
    assert_eq!(output.status.code(), Some(3));
    golden("budget.txt", &String::from_utf8(output.stdout).unwrap());
    assert_eq!(run(TRIAL.path(), &["budget", "trial", "wide.toml"]).status.code(), Some(0));
    let output = run(TRIAL.path(), &["budget", "trial", "wrong.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("memory-fleet: wrong.toml: "));
}

#[test]
fn an_answer_has_the_same_rows_in_each_format() {
    let arguments = ["growth", "trial", "--limit", "0", "--format"];
    let output = run(TRIAL.path(), &[&arguments[..], &["json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.len() > 10 && rows[0]["service"].is_string() && rows[0]["growth"].is_number(), "{json}");
    assert!(json["next"][0].as_str().unwrap().starts_with("memory-fleet versions trial --service "));
    let output = run(TRIAL.path(), &[&arguments[..], &["parquet", "-o", "growth.parquet"]].concat());
    assert!(output.status.success() && output.stdout.is_empty());
    let reader =
        SerializedFileReader::new(fs::File::open(TRIAL.path().join("growth.parquet")).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows() as usize, rows.len());
}

#[test]
fn a_query_has_its_rows() {
    let sql = "SELECT service, count(DISTINCT host) AS hosts FROM reports GROUP BY service ORDER BY service";
    let output = run(TRIAL.path(), &["query", "trial", sql]);
    golden("query.txt", &String::from_utf8(output.stdout).unwrap());
    let output = run(TRIAL.path(), &["query", "trial", "SELECT 1 AS one WHERE false", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["rows"], serde_json::json!([]));
}

#[test]
fn wrong_usage_is_one_line_or_help() {
    for (arguments, status, part) in [
        (&["growth", "nowhere"][..], 1, "memory-fleet: nowhere: No such file"),
        (&["growth", "trial", "--from", "2026-02-30"], 2, "\"2026-02-30\" is not a date"),
        (&["growth", "trial", "--from", "2036-01-01"], 1, "has no reports in these days"),
        (&["query", "trial", "SELEC"], 1, "memory-fleet: "),
        (&["simulate", "trial"], 1, "already has a table of reports"),
        (&["simulate", "new", "--paths", "2"], 2, "paths must be from 4 to 100000, not 2"),
        (&["collect", "new", "https://h:1"], 2, "does not start with http://"),
        (&["import", "new", "nowhere.json"], 1, "nowhere.json: No such file"),
        (&["compact", "nowhere"], 1, "nowhere: No such file"),
    ] {
        let output = run(TRIAL.path(), arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
        assert!(text.contains(part), "{arguments:?}: {text}");
    }
    assert!(!TRIAL.path().join("new").exists());
}

#[test]
fn help_has_examples() {
    let cluster: &[&str] = if cfg!(feature = "ballista") { &["up", "scheduler", "executor"] } else { &[] };
    let commands = [
        "growth", "versions", "leaks", "changes", "outliers", "dark", "coverage", "budget", "query",
        "collect", "import", "compact", "serve", "simulate",
    ];
    for command in commands.iter().chain(cluster) {
        let output = run(TRIAL.path(), &[command, "--help"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("Example") && text.contains(&format!("memory-fleet {command} ")), "{text}");
    }
}

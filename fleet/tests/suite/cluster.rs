//! Ballista: a scheduler and three executors on this machine give the rows of one process.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{Array as _, AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use memory_fleet::{
    CompactOptions, FleetSession, Question, SessionOptions, SimulationOptions, compact, simulate,
};
use tempfile::TempDir;

use crate::support::{all_rows, block_on, open};

/// 40 processes for 10 days; the first days are compacted.
static TRIAL: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let mut options = SimulationOptions::default();
    options.processes = 40;
    options.days = 10;
    options.minutes = 120;
    options.paths = 20;
    options.planted = 6;
    simulate(folder.path(), &options).unwrap();
    let now = options.first.plus(7).start();
    block_on(compact(folder.path(), &CompactOptions::at(now))).unwrap();
    folder
});

/// `memory-fleet up`, until it is dropped.
struct Cluster {
    program: Child,
    _out: BufReader<ChildStdout>,
    engine: String,
    executors: Vec<String>,
}

impl Cluster {
    fn start() -> Self {
        let mut program = Command::new(env!("CARGO_BIN_EXE_memory-fleet"))
            .args(["up", "--port", "0", "--executors", "3", "--memory", "256"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(program.stdout.take().unwrap());
        let [mut engine, mut executors] = [String::new(), String::new()];
        out.read_line(&mut engine).unwrap();
        out.read_line(&mut executors).unwrap();
        let executors = executors.strip_prefix("executors: ").unwrap().split_whitespace().map(str::to_owned);
        Self { program, _out: out, engine: engine.trim().to_owned(), executors: executors.collect() }
    }

    fn open(&self, root: &Path) -> FleetSession {
        let mut options = SessionOptions::default();
        options.threads = 6;
        options.engine = self.engine.parse().unwrap();
        FleetSession::open(root, &options).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        signal("TERM", &self.program.id().to_string());
        self.program.wait().unwrap();
    }
}

fn signal(name: &str, pid: &str) -> bool {
    Command::new("kill").args(["-s", name, pid]).stderr(Stdio::null()).status().unwrap().success()
}

fn questions() -> Vec<Question> {
    vec![
        Question::Growth,
        Question::Versions,
        Question::Leaks,
        Question::Changes,
        Question::Outliers,
        Question::Dark,
        Question::Coverage,
    ]
}

/// The rows, sorted. The order of additions differs, so numbers have 9 digits.
fn rows(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default();
    let mut rows: Vec<Vec<String>> = (0..batch.num_rows())
        .map(|row| {
            batch
                .columns()
                .iter()
                .map(|column| match column.data_type() {
                    DataType::Float64 if !column.is_null(row) => {
                        format!("{:.8e}", column.as_primitive::<Float64Type>().value(row))
                    }
                    _ => ArrayFormatter::try_new(column, &options).unwrap().value(row).to_string(),
                })
                .collect()
        })
        .collect();
    rows.sort();
    rows
}

#[test]
fn each_question_has_the_same_rows_on_three_executors() {
    let cluster = Cluster::start();
    let (local, session) = (open(TRIAL.path()), cluster.open(TRIAL.path()));
    for question in questions() {
        let expected = block_on(local.ask(&question, &all_rows())).unwrap();
        let found = block_on(session.ask(&question, &all_rows())).unwrap();
        assert_eq!(found.title, expected.title, "{question:?}");
        assert_eq!(rows(&found.rows), rows(&expected.rows), "{question:?}");
        assert!(expected.rows.num_rows() > 0, "{question:?} tests nothing");
    }
    // Uncompacted reports, and the function of this crate in a user's query.
    let sql = "SELECT service, path, count(DISTINCT life_id(service, host, process, pid, started)) AS lives,
        sum(amount) AS amount FROM reports GROUP BY 1, 2 ORDER BY 1, 2";
    let expected = block_on(local.ask_sql(sql, 0)).unwrap();
    assert_eq!(rows(&block_on(session.ask_sql(sql, 0)).unwrap().rows), rows(&expected.rows));
    assert!(block_on(session.ask_sql("CREATE TABLE t AS SELECT 1", 0)).is_err());
}

/// Executors die between queries: the scheduler learns it when it sends them the parts of the next query.
#[test]
fn queries_survive_executors_that_died_before_them() {
    let cluster = Cluster::start();
    let (local, session) = (open(TRIAL.path()), cluster.open(TRIAL.path()));
    let expected = rows(&block_on(local.ask(&Question::Leaks, &all_rows())).unwrap().rows);
    for executor in &cluster.executors[..2] {
        assert!(signal("KILL", executor));
        assert_eq!(rows(&block_on(session.ask(&Question::Leaks, &all_rows())).unwrap().rows), expected);
    }
}

#[test]
fn all_processes_end_with_up() {
    for by in ["TERM", "INT", "KILL"] {
        let cluster = Cluster::start();
        let children = cluster.executors.clone();
        assert!(children.iter().all(|pid| signal("0", pid)));
        signal(by, &cluster.program.id().to_string());
        drop(cluster);
        // Processes whose parent was killed end by themselves.
        let end = Instant::now() + Duration::from_secs(30);
        while children.iter().any(|pid| signal("0", pid)) {
            assert!(Instant::now() < end, "SIG{by}: an executor runs on");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_scheduler_that_does_not_exist_is_an_error() {
    for (engine, status, part) in [
        ("ballista://127.0.0.1:1", 1, "memory-fleet: "),
        ("ballista://127.0.0.1", 2, "is neither local nor ballista://HOST:PORT"),
        ("spark://h:1", 2, "is neither local nor"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_memory-fleet"))
            .args(["growth", &TRIAL.path().to_string_lossy(), "--engine", engine])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.contains(part), "{text}");
    }
}

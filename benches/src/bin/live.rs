//! Compares the time of a request to ten running processes with the time of their reporters alone:
//! `cargo run --release -p benches --bin live -- [REPORTS]`, by default 5,000 reports of all processes together.
//!
//! The processes are copies of this program. The time of the reporters alone is the time of the same ten collections
//! at once, without a transfer of the results.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use about_memory::live::{self, AskOptions};
use memory_reporter::{CollectOptions, MemoryReporter, Reports, collect_report, collect_reports};

memory_reporter::global_allocator!(std::alloc::System);

const PROCESSES: usize = 10;
const ROUNDS: usize = 15;

struct Parts(Vec<String>);

impl MemoryReporter for Parts {
    fn collect_reports(&self, out: &mut Reports) {
        for (i, part) in self.0.iter().enumerate() {
            let path = format!("explicit/tables/table({})/columns/column({})/data", i / 100, i % 100);
            collect_report!(out, path, Heap, part, "Memory used by the data of a column.");
        }
    }
}

fn main() {
    if let Ok(reports) = std::env::var("BENCH_VICTIM") {
        return victim(reports.parse().expect("the bench passes a number"));
    }
    let total =
        std::env::args().nth(1).map_or(5000, |argument| argument.parse().expect("REPORTS must be a number"));
    let runtime = tempfile::tempdir().expect("a temporary folder");
    if std::env::var_os("XDG_RUNTIME_DIR").is_none_or(|folder| !PathBuf::from(folder).ends_with("bench-live"))
    {
        return again(&runtime.path().join("bench-live"));
    }
    let mut victims: Vec<_> = (0..PROCESSES).map(|_| Victim::start(total / PROCESSES)).collect();
    let sockets: Vec<_> = live::list(Duration::from_secs(10))
        .expect("read the folder of sockets")
        .into_iter()
        .map(|l| l.socket)
        .collect();
    assert_eq!(sockets.len(), PROCESSES);
    let (mut alone, mut asked) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        thread::scope(|scope| {
            for socket in &sockets {
                scope.spawn(|| collect_only(socket));
            }
        });
        alone.push(start.elapsed());
        let start = Instant::now();
        let set = live::collect_all(&AskOptions::new()).expect("all processes answer");
        asked.push(start.elapsed());
        assert!(set.warnings().is_empty(), "{:?}", set.warnings());
        assert!(set.len() >= total);
    }
    let (alone, asked) = (median(alone), median(asked));
    println!(
        "{total} reports of {PROCESSES} processes, medians of {ROUNDS} rounds: the reporters alone {:.1} ms, \
         asked for {:.1} ms, so {:.1} ms beyond",
        milliseconds(alone),
        milliseconds(asked),
        milliseconds(asked) - milliseconds(alone)
    );
    victims.iter_mut().for_each(Victim::end);
}

/// Starts this program again, with a new folder for sockets that contains no sockets of other processes.
fn again(runtime: &std::path::Path) {
    std::fs::create_dir(runtime).expect("create the folder for sockets");
    let status = Command::new(std::env::current_exe().expect("this program's file"))
        .args(std::env::args_os().skip(1))
        .env("XDG_RUNTIME_DIR", runtime)
        .status()
        .expect("this program starts");
    assert!(status.success());
}

struct Victim(Child);

impl Victim {
    fn start(reports: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program's file"))
            .env("BENCH_VICTIM", reports.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("the process prints a line");
        assert_eq!(line, "ready\n");
        Self(child)
    }

    fn end(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().expect("the process ends");
    }
}

fn victim(reports: usize) {
    let parts = Parts((0..reports).map(|i| format!("data of column {i}")).collect());
    memory_reporter::register_strong(std::sync::Arc::new(parts)).forever();
    memory_reporter::live::answer_requests("collect-only", |_, out| {
        let options = CollectOptions::new().deadline(Duration::from_secs(10));
        writeln!(out, "{}", collect_reports(&options).len())
    })
    .forever();
    memory_reporter::listen().expect("a socket");
    println!("ready");
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

fn collect_only(socket: &PathBuf) {
    let mut stream = UnixStream::connect(socket).expect("the process listens");
    stream.write_all(b"{\"version\":1,\"request\":\"collect-only\"}\n").expect("the process reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the process answers");
    assert!(answer.trim().parse::<usize>().is_ok(), "{answer}");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

//! The tasks of the processes that the tests start.

use std::io::{self, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use memory_reporter::live::{ListenOptions, answer_requests, listen_with};
use memory_reporter::{Kind, MemoryReporter, Reports, Units, pressure::on_memory_pressure, register_strong};

static SIZE: AtomicI64 = AtomicI64::new(3 << 20);

struct Sizes;

impl MemoryReporter for Sizes {
    fn collect_reports(&self, out: &mut Reports) {
        let size = SIZE.load(Ordering::SeqCst);
        let name = if out.anonymize() { "<anonymized>" } else { "secret" };
        out.report("explicit/cache/data", Kind::NonHeap, Units::Bytes, size, "The data.");
        out.report(format!("names/{name}"), Kind::Other, Units::Count, 5, "A name.");
        if size > 3 << 20 {
            out.report("names/later", Kind::Other, Units::Count, 7, "A later name.");
        } else {
            out.report("names/earlier", Kind::Other, Units::Count, 6, "An earlier name.");
        }
    }
}

struct Stuck;

impl MemoryReporter for Stuck {
    fn name(&self) -> &str {
        "stuck"
    }

    fn collect_reports(&self, _: &mut Reports) {
        loop {
            std::thread::park();
        }
    }
}

fn ready() {
    let mut out = io::stdout().lock();
    writeln!(out, "told ready").unwrap();
    out.flush().unwrap();
}

/// Grows by 1 MiB for each byte of standard input, until the end of the input.
fn rest() {
    ready();
    while io::stdin().read_exact(&mut [0]).is_ok() {
        SIZE.fetch_add(1 << 20, Ordering::SeqCst);
    }
}

/// Not a test: runs the task if a test started this program as a process.
#[test]
fn victim() {
    let Ok(task) = std::env::var("VICTIM") else { return };
    register_strong(Arc::new(Sizes)).forever();
    let _hook = on_memory_pressure(|| SIZE.store(1 << 20, Ordering::SeqCst));
    let (name, task) = task.split_once(' ').unwrap_or((&*task, ""));
    if task != "silent" {
        listen_with(&ListenOptions::new().name(name)).unwrap();
    }
    match task {
        "stuck" => register_strong(Arc::new(Stuck)).forever(),
        "dmd" => answer_requests("dmd-dump", |_, out| out.write_all(b"\x1f\x8bdump")).forever(),
        "collector" => {
            let collect = || SIZE.store(2 << 20, Ordering::SeqCst);
            memory_reporter::live::answer_collections(collect).forever();
        }
        "bad-dmd" => {
            answer_requests("dmd-dump", |_, _| Err(io::Error::other("not today"))).forever();
        }
        "heap" => {
            let names = vec!["a name".to_owned(); 1000];
            heap_graph::answer_snapshots(move |roots| roots.add("names", &names)).forever();
        }
        "bad-heap" => {
            answer_requests("heap-snapshot", |_, _| Err(io::Error::other("not today"))).forever();
        }
        "half-heap" => {
            let halve = |_: &str, out: &mut dyn io::Write| {
                let mut file = Vec::new();
                let names = vec!["a name".to_owned(); 1000];
                let (live, write) = (
                    heap_graph::live::LiveGraphOptions::new(),
                    heap_graph::snapshot::SnapshotWriteOptions::new(),
                );
                heap_graph::HeapGraph::stream(&mut file, live, &write, |roots| roots.add("names", &names))?;
                out.write_all(&file[..file.len() / 2])
            };
            answer_requests("heap-snapshot", halve).forever();
        }
        "parent" => {
            let start = |task: &str| {
                let mut child = Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "live::victim::victim", "--nocapture", "--test-threads=1"])
                    .env("VICTIM", task)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                let stdout = io::BufReader::new(child.stdout.take().unwrap());
                assert!(io::BufRead::lines(stdout).any(|line| line.unwrap().contains("told ready")));
                child
            };
            // When this process ends, the standard input of its children is closed, so they end, too.
            let children = [start("child"), start("mute silent")];
            rest();
            drop(children);
            return;
        }
        _ => {}
    }
    rest();
}

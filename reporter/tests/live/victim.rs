//! The tasks of the started programs.

use std::cell::Cell;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use memory_reporter::live::{
    ListenOptions, answer_collections, answer_requests, listen_until_dropped, listen_with,
};
use memory_reporter::{
    Kind, MemoryReporter, Reports, Units, answer_here, listen, live::listen_to_signals,
    pressure::on_memory_pressure, register_local, register_strong,
};

memory_reporter::global_allocator!(std::alloc::System);

static MINIMIZED: AtomicI64 = AtomicI64::new(0);

/// A reporter made of a closure.
struct By<F>(&'static str, F);

impl<F: Fn(&mut Reports)> MemoryReporter for By<F> {
    fn name(&self) -> &str {
        self.0
    }

    fn collect_reports(&self, out: &mut Reports) {
        (self.1)(out);
    }
}

fn register(name: &'static str, report: impl Fn(&mut Reports) + Send + Sync + 'static) {
    register_strong(Arc::new(By(name, report))).forever();
}

fn say(text: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "told {text}").unwrap();
    out.flush().unwrap();
}

/// Prints `ready`, and then waits until the test closes stdin.
fn rest() {
    say("ready");
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

/// The entry point of a started program. Without `VICTIM`, it does nothing.
#[test]
fn victim() {
    let Ok(task) = std::env::var("VICTIM") else { return };
    register("counts", |out| {
        out.report("minimized", Kind::Other, Units::Count, MINIMIZED.load(Ordering::SeqCst), "Calls.");
        let name = if out.anonymize() { "<anonymized>" } else { "secret" };
        out.report(format!("names/{name}"), Kind::Other, Units::Count, 1, "A name.");
    });
    let _hook = on_memory_pressure(|| {
        MINIMIZED.fetch_add(1, Ordering::SeqCst);
    });
    match &*task {
        "rest" => rest(),
        "listen" => {
            listen().unwrap();
            rest();
        }
        "named" => {
            listen_with(&ListenOptions::new().name("a-name")).unwrap();
            rest();
        }
        "twice" => {
            let first = listen_until_dropped(&ListenOptions::new()).unwrap();
            let second = listen_until_dropped(&ListenOptions::new()).unwrap();
            assert_eq!(first.path(), second.path());
            drop(first);
            assert!(second.path().exists());
            let path = second.path().to_owned();
            drop(second);
            assert!(!path.exists());
            assert!(std::os::unix::net::UnixStream::connect(&path).is_err());
            let third = listen_until_dropped(&ListenOptions::new()).unwrap();
            listen().unwrap();
            drop(third);
            listen().unwrap();
            rest();
        }
        "fails" => {
            let error = listen().unwrap_err();
            say(&error.to_string());
            rest();
        }
        "local" => {
            listen().unwrap();
            let cell = Rc::new(Cell::new(0));
            let turns = Rc::clone(&cell);
            let report = move |out: &mut Reports| {
                out.report("turns", Kind::Other, Units::Count, turns.get(), "Turns of the loop.");
            };
            let _registration = register_local(Rc::new(By("turns", report)));
            let reader = thread::spawn(rest);
            while !reader.is_finished() {
                cell.set(cell.get() + 1);
                answer_here();
                thread::sleep(Duration::from_millis(1));
            }
        }
        "deaf" => {
            listen().unwrap();
            let report = |out: &mut Reports| out.report("deaf", Kind::Other, Units::Count, 1, "A number.");
            let _registration = register_local(Rc::new(By("deaf", report)));
            answer_here();
            rest();
        }
        "stuck" => {
            listen().unwrap();
            register("stuck", |_| {
                loop {
                    thread::park();
                }
            });
            register("panics", |_| panic!("on purpose"));
            rest();
        }
        "stuck-hook" => {
            listen().unwrap();
            let _hook = on_memory_pressure(|| {
                loop {
                    thread::park();
                }
            });
            rest();
        }
        "collector" => {
            listen().unwrap();
            answer_collections(|| {
                MINIMIZED.fetch_add(10, Ordering::SeqCst);
            })
            .forever();
            rest();
        }
        "functions" => {
            listen().unwrap();
            answer_requests("echo", |line, out| out.write_all(line.as_bytes())).forever();
            answer_requests("fails", |_, _| Err(io::Error::other("not today"))).forever();
            answer_requests("panics", |_, _| panic!("on purpose")).forever();
            answer_requests("hello", |_, out| out.write_all(b"never asked")).forever();
            answer_requests("dmd-dump", |_, _| Ok(())).forever();
            drop(answer_requests("dropped", |_, _| Ok(())));
            rest();
        }
        "signals" => {
            let folder = PathBuf::from(std::env::var_os("TMPDIR").unwrap());
            listen_to_signals(folder).unwrap();
            rest();
        }
        "taken" => {
            // SAFETY: the handler does nothing.
            unsafe { libc::signal(libc::SIGRTMIN(), ignore as extern "C" fn(i32) as usize) };
            say(&listen_to_signals("/tmp").unwrap_err().to_string());
            say(&listen_to_signals("/dev/null").unwrap_err().to_string());
            rest();
        }
        "fork" => {
            let mut listening = Some(listen_until_dropped(&ListenOptions::new()).unwrap());
            listen_to_signals(std::env::temp_dir()).unwrap();
            let child = fork(|| {
                listening = None;
                std::process::id().to_string()
            });
            rest();
            kill(child);
        }
        "fork-exit" => {
            listen().unwrap();
            let child = fork(|| std::process::exit(0));
            // SAFETY: the child belongs to this process.
            unsafe { libc::waitpid(child, core::ptr::null_mut(), 0) };
            rest();
        }
        "fork-listen" => {
            listen().unwrap();
            let child = fork(|| {
                let listening = listen_until_dropped(&ListenOptions::new()).unwrap();
                let path = listening.path().display().to_string();
                listening.forever();
                path
            });
            rest();
            kill(child);
        }
        other => panic!("no task {other:?}"),
    }
}

/// Starts a child process that calls `run` and then only waits. Prints the result of `run`.
fn fork(run: impl FnOnce() -> String) -> i32 {
    let (mut from, mut to) = io::pipe().unwrap();
    // SAFETY: the child does as little as possible, and the other threads of this program hold no locks that the child
    // needs.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // Ends the child if no test kills it.
        // SAFETY: the function has no precondition.
        unsafe { libc::alarm(120) };
        drop(from);
        to.write_all(run().as_bytes()).unwrap();
        drop(to);
        loop {
            thread::park();
        }
    }
    drop(to);
    let mut told = String::new();
    from.read_to_string(&mut told).unwrap();
    say(&told);
    child
}

fn kill(child: i32) {
    // SAFETY: the child has not been waited for, so its process number is still valid.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

extern "C" fn ignore(_: i32) {}

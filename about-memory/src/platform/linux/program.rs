//! Runs a program: checks permissions, forwards signals, and ends like the program.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use procfs::process::Process;
use rustix::fs::{Access, access};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions};
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Signals, SignalsInfo};

/// Whether this user may run the file.
pub(crate) fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// Whether the program would get rights that this process does not have. Its loader then ignores variables such as
/// `$LD_PRELOAD`.
pub(crate) fn is_privileged(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else { return false };
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let setuid = metadata.mode() & 0o4000 != 0 && metadata.uid() != user;
    let setgid = metadata.mode() & 0o2010 == 0o2010 && metadata.gid() != group;
    let mut none: [u8; 0] = [];
    let capable = user != 0 && rustix::fs::getxattr(path, "security.capability", &mut none).is_ok();
    setuid || setgid || capable
}

/// Runs a program to its end, and forwards signals to it. Calls `started` with the process id.
pub(crate) fn run_to_end(command: &mut Command, started: impl FnOnce(u32)) -> io::Result<ExitStatus> {
    // Ignored signals stay ignored, also in the program: it inherits ignored signals, but not handlers.
    let signals = not_ignored(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM]);
    let mut signals = SignalsInfo::<WithOrigin>::new(signals)?;
    let handle = signals.handle();
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    // No signal is sent after the program has ended, because its process id may then belong to another process.
    let alive = Arc::new(Mutex::new(true));
    let to = Arc::clone(&alive);
    let passing_on = thread::spawn(move || {
        for origin in &mut signals {
            // Signals without a sender come from the terminal, which also sends them to the program.
            let Some(sender) = origin.process else { continue };
            let alive = to.lock().unwrap_or_else(PoisonError::into_inner);
            if *alive && sender.pid != pid.as_raw_nonzero().get() {
                pass_on(pid, origin.signal);
            }
        }
    });
    started(child.id());
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(rustix::process::waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
    *alive.lock().unwrap_or_else(PoisonError::into_inner) = false;
    let status = child.wait();
    handle.close();
    // The result is ignored: the thread has ended its loop, and does not panic.
    let _ = passing_on.join();
    status
}

fn not_ignored(signals: &[i32]) -> impl Iterator<Item = i32> {
    let ignored = Process::myself().and_then(|process| process.status()).map_or(0, |status| status.sigign);
    signals.iter().copied().filter(move |signal| ignored & (1 << (signal - 1)) == 0)
}

/// A terminal that accepts no text delays the end of the process by at most this time.
const RESTORING: Duration = Duration::from_secs(1);
/// How often the thread that ends the process checks how much time the process has.
const LOOK: Duration = Duration::from_millis(50);

/// Calls `begin` at the first signal that ends programs. After the time that `grace` returns, or at a second signal,
/// runs `restore` and ends the process by the signal. SIGQUIT ends the process without waiting for this time.
pub(crate) fn end_by_signal(
    begin: impl FnOnce() + Send + 'static,
    grace: impl Fn() -> Duration + Send + 'static,
    restore: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new(not_ignored(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM]))?;
    let (to, from) = mpsc::channel();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        // Sending fails after the thread `ending` has ended. That thread ends the process.
        signals.forever().try_for_each(|signal| to.send(signal))
    })?;
    thread::Builder::new().name("ending".to_owned()).spawn(move || {
        let Ok(mut signal) = from.recv() else { return };
        let first = Instant::now();
        begin();
        while signal != SIGQUIT && first.elapsed() < grace() {
            if let Ok(second) = from.recv_timeout(LOOK) {
                signal = second;
                break;
            }
        }
        let (restored, wait) = mpsc::channel();
        let restore = move || {
            restore();
            // Sending fails if the other thread has stopped waiting.
            let _ = restored.send(());
        };
        if thread::Builder::new().spawn(restore).is_ok() {
            let _ = wait.recv_timeout(RESTORING);
        }
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    })?;
    Ok(())
}

fn pass_on(pid: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        // This fails if the program has ended.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Returns the signal that ended a program; `None` if the program exited.
pub(crate) fn ending_signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Ends this process by the signal that ended the program, or returns the program's exit status.
pub(crate) fn end_like(status: ExitStatus) -> ExitCode {
    let Some(signal) = status.signal() else {
        return ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
    };
    // The program's core file is enough, so this process writes no core file.
    let _ = rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // If the signal does not end the process, a shell's exit status for this signal is used.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

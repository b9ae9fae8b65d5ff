//! Programs: which may be run, one that is run to its end, and ending as it did.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

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

/// Whether the program would get rights that this process has not, so that its loader distrusts us.
pub(crate) fn is_privileged(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else { return false };
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let setuid = metadata.mode() & 0o4000 != 0 && metadata.uid() != user;
    let setgid = metadata.mode() & 0o2010 == 0o2010 && metadata.gid() != group;
    let mut none: [u8; 0] = [];
    let capable = user != 0 && rustix::fs::getxattr(path, "security.capability", &mut none).is_ok();
    setuid || setgid || capable
}

/// Runs a program to its end, and passes on signals meanwhile.
pub(crate) fn run_to_end(command: &mut Command) -> io::Result<ExitStatus> {
    // What was to be ignored stays so, for the program too: it inherits that, but no handler.
    let signals = not_ignored(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM]);
    let mut signals = SignalsInfo::<WithOrigin>::new(signals)?;
    let handle = signals.handle();
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    // Nothing is sent once the number may be another process's.
    let alive = Arc::new(Mutex::new(true));
    let to = Arc::clone(&alive);
    let passing_on = thread::spawn(move || {
        for origin in &mut signals {
            // The kernel's own come from the terminal, which tells the program too.
            let Some(sender) = origin.process else { continue };
            let alive = to.lock().unwrap_or_else(PoisonError::into_inner);
            if *alive && sender.pid != pid.as_raw_nonzero().get() {
                pass_on(pid, origin.signal);
            }
        }
    });
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(rustix::process::waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
    *alive.lock().unwrap_or_else(PoisonError::into_inner) = false;
    let status = child.wait();
    handle.close();
    // It has nothing more to do, and does not panic.
    let _ = passing_on.join();
    status
}

fn not_ignored(signals: &[i32]) -> impl Iterator<Item = i32> {
    let ignored = Process::myself().and_then(|process| process.status()).map_or(0, |status| status.sigign);
    signals.iter().copied().filter(move |signal| ignored & (1 << (signal - 1)) == 0)
}

/// How long a terminal that takes no text may keep the process from ending.
const RESTORING: Duration = Duration::from_secs(1);

/// Has `restore` run before a signal ends this process.
pub(crate) fn before_ending(restore: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(not_ignored(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM]))?;
    thread::Builder::new().spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        let (restored, wait) = mpsc::channel();
        let restore = move || {
            restore();
            // Whoever waits may be tired of it.
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
        // It may have ended.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The signal that ended a program.
pub(crate) fn ending_signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Ends by the signal that ended a program, or gives its exit status.
pub(crate) fn end_like(status: ExitStatus) -> ExitCode {
    let Some(signal) = status.signal() else {
        return ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
    };
    // One image of memory is enough: the program's.
    let _ = rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // Where that fails there is the shell's number for it.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

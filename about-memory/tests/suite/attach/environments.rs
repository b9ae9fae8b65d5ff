//! Processes of other users, and processes with other files. Only root can start them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{Victim, about_memory, attach, succeed};
use crate::run::{compile, libdmd};

const NOBODY: u32 = 65534;
const SOMEBODY: u32 = 60123;

/// A program that allocates and sleeps until SIGUSR2. With an argument, other processes of its user may not trace it.
const WAITS: &str = "
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
static volatile sig_atomic_t ends;
static void end(int signal) { ends = signal; }
int main(int count, char **words) {
    signal(SIGUSR2, end);
    if (count > 1) prctl(PR_SET_DUMPABLE, 0);
    printf(\"ready\\n\");
    fflush(stdout);
    while (!ends) usleep(1000), free(malloc(100));
    return 0;
}
";

/// Whether this process may start processes of other users. Without that right, tests leave these out.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A folder that all users can read, with the program.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    compile(folder.path(), "waits", WAITS, &["-O1", "-w"]);
    folder
}

fn as_user(user: u32, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    let user = user.to_string();
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(program);
    command
}

/// Copies about-memory and libdmd.so to a place that all users can read.
fn own_copies(folder: &Path) -> [PathBuf; 2] {
    let sources = [Path::new(env!("CARGO_BIN_EXE_about-memory")), libdmd()];
    ["about-memory", "libdmd.so"].map(|name| folder.join(name)).into_iter().zip(sources).for_each(
        |(copy, source)| {
            fs::hard_link(source, &copy).or_else(|_| fs::copy(source, &copy).map(|_| ())).unwrap();
        },
    );
    ["about-memory", "libdmd.so"].map(|name| folder.join(name))
}

fn one_line(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    text
}

fn refusal(folder: &Path, pid: &str) -> String {
    one_line(&about_memory(folder, &["attach", pid, "--library", libdmd().to_str().unwrap()]))
}

#[test]
fn a_process_of_another_user() {
    if !is_root() {
        return;
    }
    let folder = folder();
    let [program, library] = own_copies(folder.path());
    let sockets = folder.path().join("sockets");
    fs::create_dir(&sockets).unwrap();
    fs::set_permissions(&sockets, fs::Permissions::from_mode(0o700)).unwrap();
    chown(&sockets, Some(NOBODY), Some(NOBODY)).unwrap();
    let waits = folder.path().join("waits");
    let mut victim = Victim::start(as_user(NOBODY, &waits).env("XDG_RUNTIME_DIR", &sockets));
    assert_eq!(victim.line(), "ready");
    let by = |user| {
        let mut command = as_user(user, &program);
        command.args(["attach", &victim.pid(), "--library"]).arg(&library).current_dir(folder.path());
        command.output().unwrap()
    };
    let text = one_line(&by(SOMEBODY));
    assert!(text.contains("belongs to user 65534: attach as that user or as root"), "{text}");

    // Root may attach. The process's user gets the answers.
    let text = attach(folder.path(), &victim.pid(), &[]);
    assert!(text.contains("run the next commands with sudo -u '#65534'"), "{text}");
    let mut save = as_user(NOBODY, &program);
    save.args(["save", "--dump", &victim.pid(), "d.json.gz"]).current_dir(&sockets);
    let output = save.env("XDG_RUNTIME_DIR", &sockets).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    succeed(folder.path(), &["detach", &victim.pid()]);

    // The user attaches to an own process, and not to one that the system protects.
    let mut attach = as_user(NOBODY, &program);
    attach.args(["attach", &victim.pid(), "--library"]).arg(&library).current_dir(folder.path());
    let output = attach.env("XDG_RUNTIME_DIR", &sockets).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut guarded = Victim::start(as_user(SOMEBODY, &waits).arg("guarded"));
    assert_eq!(guarded.line(), "ready");
    let mut attach = as_user(SOMEBODY, &program);
    attach.args(["attach", &guarded.pid(), "--library"]).arg(&library).current_dir(folder.path());
    let text = one_line(&attach.output().unwrap());
    assert!(text.contains("attach as root"), "{text}");
    victim.end();
    guarded.end();
}

/// The folder of sockets may be another user's, who could put a socket there.
#[test]
fn a_folder_of_sockets_of_another_user() {
    if !is_root() {
        return;
    }
    let folder = folder();
    let sockets = folder.path().join("sockets");
    fs::create_dir_all(sockets.join("about-memory")).unwrap();
    for path in [&sockets, &sockets.join("about-memory")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        chown(path, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    }
    let waits = folder.path().join("waits");
    let mut victim = Victim::start(as_user(NOBODY, &waits).env("XDG_RUNTIME_DIR", &sockets));
    assert_eq!(victim.line(), "ready");
    let text = refusal(folder.path(), &victim.pid());
    assert!(text.contains("no socket: "), "{text}");
    assert_eq!(fs::read_dir(sockets.join("about-memory")).unwrap().count(), 0);
    victim.end();
}

/// The library is in memory that no file name leads to, and that no process can change.
#[test]
fn the_library_cannot_be_replaced() {
    let folder = folder();
    let mut victim = Victim::start(&mut Command::new(folder.path().join("waits")));
    assert_eq!(victim.line(), "ready");
    let descriptors = || {
        let all = fs::read_dir(format!("/proc/{}/fd", victim.pid())).unwrap();
        all.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok()).collect::<Vec<_>>()
    };
    let mut counts = Vec::new();
    for _ in 0..6 {
        attach(folder.path(), &victim.pid(), &[]);
        let maps = fs::read_to_string(format!("/proc/{}/maps", victim.pid())).unwrap();
        let library: Vec<_> = maps.lines().filter(|line| line.contains("libdmd.so")).collect();
        assert!(library.iter().all(|line| line.ends_with("/memfd:libdmd.so (deleted)")), "{library:?}");
        assert!(!library.is_empty() && !library.iter().any(|line| line.contains("rwx")), "{library:?}");
        let is_library = |path: &PathBuf| path.to_string_lossy().contains("libdmd.so");
        assert!(!descriptors().iter().any(is_library), "{:?}", descriptors());
        succeed(folder.path(), &["detach", &victim.pid()]);
        counts.push(descriptors().len());
    }
    // The library keeps its own descriptors, and needs no more of them for each attachment. Its last thread may still have
    // one or two.
    assert!(counts[5] <= counts[0] + 2, "{counts:?}");
    victim.end();
}

/// A process in namespaces of its own, as in a container.
#[test]
fn a_process_in_a_container() {
    if !is_root() {
        return;
    }
    let folder = folder();
    let mut command = Command::new("unshare");
    // The process gets the signals: unshare does not pass them on.
    command.args(["-Urm", "--"]).arg(folder.path().join("waits"));
    let mut victim = Victim::start(command.env("XDG_RUNTIME_DIR", folder.path()));
    assert_eq!(victim.line(), "ready");
    let text = attach(folder.path(), &victim.pid(), &[]);
    assert!(text.contains("is in a container: run the next commands there"), "{text}");
    succeed(folder.path(), &["detach", &victim.pid()]);
    victim.end();
}

/// Copies the program with its libraries to a folder that will be its root.
fn make_root(folder: &Path) -> PathBuf {
    let root = folder.join("root");
    let program: PathBuf = folder.join("waits");
    let listed = Command::new("ldd").args([program.as_path(), libdmd()]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let libraries = listed
        .split_ascii_whitespace()
        .filter(|word| word.starts_with("/lib") || word.starts_with("/usr/lib"));
    for library in libraries {
        let copy = root.join(library.trim_start_matches('/'));
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(library, copy).unwrap();
    }
    for name in ["proc", "tmp"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::copy(program, root.join("waits")).unwrap();
    root
}

/// The program's root is another folder: with the kernel's files the library is found; without them the loader refuses it.
#[test]
fn a_process_with_another_root() {
    if !is_root() {
        return;
    }
    let folder = folder();
    let root = make_root(folder.path());
    let mut victim = Victim::start(Command::new("chroot").arg(&root).arg("/waits"));
    assert_eq!(victim.line(), "ready");
    let text = refusal(folder.path(), &victim.pid());
    assert!(text.contains("/proc is not mounted in its root"), "{text}");
    victim.end();

    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", "mount -t proc proc $0/proc && exec chroot $0 /waits"]).arg(&root);
    let mut victim = Victim::start(&mut command);
    assert_eq!(victim.line(), "ready");
    let text = attach(folder.path(), &victim.pid(), &[]);
    assert!(text.contains("is in a container: run the next commands there"), "{text}");
    let sockets = fs::read_dir(root.join("tmp/about-memory-0")).unwrap();
    assert_eq!(sockets.count(), 1);
    succeed(folder.path(), &["detach", &victim.pid()]);
    victim.end();
}

/// A filter that answers calls with an error, and does not end the program: the library comes by another way.
#[test]
fn a_filter_without_files_in_memory() {
    let folder = folder();
    let source = "
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile sig_atomic_t ends;
static void end(int signal) { ends = signal; }
int main(void) {
    signal(SIGUSR2, end);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {4, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    printf(\"ready\\n\");
    fflush(stdout);
    while (!ends) usleep(1000), free(malloc(100));
    return 0;
}
";
    compile(folder.path(), "filters", source, &["-w"]);
    let mut victim = Victim::start(&mut Command::new(folder.path().join("filters")));
    assert_eq!(victim.line(), "ready");
    attach(folder.path(), &victim.pid(), &["--with-filter"]);
    succeed(folder.path(), &["detach", &victim.pid()]);
    victim.end();
}

/// A program with another C library is refused, if a compiler for it is installed.
#[test]
fn a_program_with_musl() {
    let folder = folder();
    let has_musl = Command::new("musl-gcc").arg("--version").output().is_ok();
    if !has_musl {
        return;
    }
    let source = folder.path().join("musl.c");
    fs::write(&source, WAITS).unwrap();
    for (name, options, reason) in [
        ("dynamic", &["-w"][..], "libdmd.so needs the GNU C library"),
        ("static", &["-w", "-static"], "is statically linked"),
    ] {
        let mut compiler = Command::new("musl-gcc");
        let status = compiler.arg("-o").arg(folder.path().join(name)).arg(&source).args(options).status();
        assert!(status.unwrap().success());
        let mut victim = Victim::start(&mut Command::new(folder.path().join(name)));
        assert_eq!(victim.line(), "ready");
        let text = refusal(folder.path(), &victim.pid());
        assert!(text.contains(reason), "{text}");
        victim.end();
    }
}

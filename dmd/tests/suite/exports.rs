//! The functions that `libdmd.so` exports: DMD's entry points, and replacements of functions of the C library.

use std::process::Command;

use crate::support::{libdmd, succeed, victim};

const EXPORTS: &str = "\
DMDAttach
DMDClearReports
DMDDetach
DMDDump
DMDEngine3
DMDIsRunning
DMDReport
DMDReportAndDump
DMDReportOnAlloc
DMDReset
DMDRoom
__cxa_thread_atexit_impl
__fxstatat
__fxstatat64
__lxstat
__lxstat64
__xstat
__xstat64
aligned_alloc
calloc
capset
cfree
dlsym
execv
execve
execvp
execvpe
free
fstatat
fstatat64
initgroups
lstat
lstat64
malloc
malloc_usable_size
memalign
mmap
mmap64
mremap
munmap
posix_memalign
posix_spawn
posix_spawnp
prctl
pvalloc
realloc
reallocarray
setegid
seteuid
setgid
setgroups
setns
setregid
setresgid
setresuid
setreuid
setuid
sigaction
signal
stat
stat64
statx
syscall
unshare
valloc
wait3
wait4
waitid
waitpid
";

#[test]
fn libdmd_exports_malloc_s_family_and_its_entry_points() {
    let output = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(libdmd()));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<_> = text.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names.join("\n") + "\n", EXPORTS);
}

/// The library must not call a function that looks up a thread-local: such a function may allocate, or wait for the
/// loader.
#[test]
fn libdmd_reaches_its_guard_without_the_loader() {
    let output = succeed(Command::new("readelf").args(["--dynamic", "--wide"]).arg(libdmd()));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("STATIC_TLS"), "{text}");
}

/// Entry points for other programs, which only `libdmd.so` has.
const OF_LIBDMD: [&str; 4] = ["DMDAttach", "DMDDetach", "DMDEngine3", "DMDRoom"];

#[test]
fn a_program_with_the_wrapper_has_them_for_a_debugger() {
    let output = succeed(Command::new("nm").arg("--defined-only").arg(victim("smoke_wrapper")));
    let text = String::from_utf8(output.stdout).unwrap();
    let names: Vec<_> =
        text.lines().filter_map(|line| line.rsplit_once(" T ")).map(|(_, name)| name).collect();
    let expected = EXPORTS.lines().filter(|name| name.starts_with("DMD"));
    for name in expected.filter(|name| !OF_LIBDMD.contains(name)) {
        assert!(names.contains(&name), "{name}");
    }
}

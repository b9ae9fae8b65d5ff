//! The moment at which all threads of a program stop, because code that calls its own allocator changes.

use std::fs;
use std::process::Command;

use super::{Victim, attach, counted, dump, succeed};
use crate::run::compile;
use rustix::process::Signal;

/// An allocator to which only code refers.
const ALLOCATOR: &str = "
#include <stddef.h>
static char all[64 << 20];
static size_t used;
void _mi_marker(void) {}
__attribute__((noinline)) void *mi_malloc(size_t bytes) {
    return all + __atomic_fetch_add(&used, (bytes + 31) & ~(size_t)15, __ATOMIC_RELAXED) % (63 << 20);
}
__attribute__((noinline)) void mi_free(void *block) { __asm__ volatile(\"\" : : \"r\"(block) : \"memory\"); }
";

/// Threads in system calls that the kernel does not restart after a stop. They count the calls that fail. The program
/// prints their number when it ends. With an argument, another process traces one of its threads.
const WAITS: &str = "
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static int failed, waits, *traced;
static void *waits_for_events(void *argument) {
    struct epoll_event event;
    int events = epoll_create1(0);
    if (argument) __atomic_store_n((int *)argument, gettid(), __ATOMIC_SEQ_CST);
    for (;;) {
        epoll_wait(events, &event, 1, -1);
        __atomic_fetch_add(&failed, 1, __ATOMIC_SEQ_CST);
    }
}
static void *receives(void *argument) {
    struct timeval longest = {1000, 0};
    int ends[2];
    char byte;
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    for (;;) {
        recv(ends[0], &byte, 1, 0);
        __atomic_fetch_add(&failed, 1, __ATOMIC_SEQ_CST);
    }
}
static void *ends(void *argument) {
    mi_free(mi_malloc(100));
    return argument;
}
static void *starts_threads(void *argument) {
    for (;;) {
        pthread_t thread;
        pthread_create(&thread, 0, ends, 0);
        pthread_join(thread, 0);
        usleep(200);
        // The program ignores this signal.
        syscall(SYS_tgkill, getpid(), waits, SIGURG);
    }
}
int main(int count, char **arguments) {
    sigset_t set;
    int signal, child;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    traced = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (count > 1 && (child = fork())) {
        while (!__atomic_load_n(traced, __ATOMIC_SEQ_CST)) usleep(1000);
        if (ptrace(PTRACE_SEIZE, *traced, 0, PTRACE_O_EXITKILL)) return 1;
        printf(\"%d\\n\", child);
        fflush(stdout);
        sigwait(&set, &signal);
        kill(child, SIGUSR2);
        waitpid(*traced, 0, __WALL);
        return waitpid(child, 0, 0) != child;
    }
    pthread_t thread;
    pthread_create(&thread, 0, waits_for_events, &waits);
    pthread_create(&thread, 0, waits_for_events, 0);
    pthread_create(&thread, 0, receives, 0);
    while (!__atomic_load_n(&waits, __ATOMIC_SEQ_CST)) usleep(1000);
    if (count > 1) pthread_create(&thread, 0, waits_for_events, traced);
    for (int i = 0; count == 1 && i < 3; i++) pthread_create(&thread, 0, starts_threads, 0);
    usleep(20000);
    if (count == 1) printf(\"%d\\n\", getpid());
    fflush(stdout);
    sigwait(&set, &signal);
    printf(\"failed %d\\n\", failed);
    fflush(stdout);
    _exit(0);
}
";

#[test]
fn no_system_call_fails() {
    let folder = tempfile::tempdir().unwrap();
    compile(
        folder.path(),
        "waits",
        &format!("{ALLOCATOR}{WAITS}"),
        &["-O1", "-w", "-pthread", "-fno-builtin"],
    );
    let mut victim = Victim::start(&mut Command::new(folder.path().join("waits")));
    let pid = victim.line();
    for _ in 0..3 {
        let text = attach(folder.path(), &pid, &[]);
        assert!(text.contains("mimalloc"), "{text}");
        succeed(folder.path(), &["detach", &pid]);
    }
    assert_eq!(victim.end(), "failed 0\n");
}

/// A thread that cannot be stopped, because another process traces it: all others continue.
#[test]
fn a_traced_thread_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    compile(
        folder.path(),
        "waits",
        &format!("{ALLOCATOR}{WAITS}"),
        &["-O1", "-w", "-pthread", "-fno-builtin"],
    );
    let mut victim = Victim::start(Command::new(folder.path().join("waits")).arg("traced"));
    let pid = victim.line();
    let text = attach(folder.path(), &pid, &[]);
    assert!(
        text.contains("the blocks of mimalloc are not recorded: the threads cannot be stopped"),
        "{text}"
    );
    succeed(folder.path(), &["detach", &pid]);
    assert_eq!(victim.end(), "failed 0\n");
}

/// A thread that waits for the child of `vfork`: no signal and no tracer can stop it. The child waits for ever, or for
/// 20 ms, again and again. The program ends with the number of failed calls, and with the number of children that ended
/// after the signal.
const VFORKS: &str = "
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile int failed, ended, child;
static void *waits_for_events(void *argument) {
    struct epoll_event event;
    int events = epoll_create1(0);
    for (;;) {
        epoll_wait(events, &event, 1, -1);
        failed++;
    }
}
static void *forks(void *argument) {
    for (;;) {
        int started = vfork();
        if (started == 0) {
            struct timespec time = {argument ? 1000 : 0, 20000000};
            child = syscall(SYS_getpid);
            syscall(SYS_nanosleep, &time, 0);
            _exit(0);
        }
        waitpid(started, 0, 0);
        ended++;
        mi_free(mi_malloc(100));
        usleep(1000);
    }
}
int main(int count, char **arguments) {
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    pthread_t thread;
    pthread_create(&thread, 0, waits_for_events, 0);
    pthread_create(&thread, 0, forks, count > 1 ? arguments : 0);
    while (!child) usleep(1000);
    printf(\"%d\\n\", getpid());
    fflush(stdout);
    sigwait(&set, &signal);
    int before = ended;
    if (count > 1) kill(child, SIGKILL);
    while (ended == before) usleep(1000);
    printf(\"failed %d\\n\", failed);
    fflush(stdout);
    if (count > 1) {
        while (child == 0 || kill(child, 0)) usleep(1000);
        kill(child, SIGKILL);
    }
    _exit(0);
}
";

#[test]
fn a_thread_that_nothing_can_stop_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-O1", "-w", "-pthread", "-fno-builtin"];
    compile(folder.path(), "vforks", &format!("{ALLOCATOR}{VFORKS}"), &flags);
    for waits_for_ever in [true, false] {
        let mut command = Command::new(folder.path().join("vforks"));
        let mut victim = Victim::start(if waits_for_ever { command.arg("ever") } else { &mut command });
        let pid = victim.line();
        for _ in 0..2 {
            let text = attach(folder.path(), &pid, &[]);
            assert!(text.contains("mimalloc"), "{text}");
            let refused = "the blocks of mimalloc are not recorded: a thread cannot be stopped now";
            assert!(text.contains(refused) || !waits_for_ever, "{text}");
            succeed(folder.path(), &["detach", &pid]);
        }
        // All threads run on: another child ends, and no call has failed.
        assert_eq!(victim.end(), "failed 0\n", "{waits_for_ever}");
    }
}

/// `about-memory attach` makes all changes of the code, even if many libraries contain an allocator.
#[test]
fn many_libraries_with_an_allocator() {
    const COUNT: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let library = "
__attribute__((visibility(\"default\"))) void step(void) {
    void *blocks[10];
    for (int i = 0; i < 10; i++) blocks[i] = mi_malloc(7001);
    for (int i = 0; i < 6; i++) mi_free(blocks[i]);
}
";
    let flags = ["-O1", "-w", "-fno-builtin", "-fPIC", "-shared", "-fvisibility=hidden"];
    let allocator = ALLOCATOR.replace("64 << 20", "1 << 20").replace("63 << 20", "1 << 19");
    compile(folder.path(), "plugin", &format!("{allocator}{library}"), &flags);
    for number in 0..COUNT {
        fs::copy(folder.path().join("plugin"), folder.path().join(format!("plugin{number}.so"))).unwrap();
    }
    let program = "
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void *waits(void *argument) { for (;;) pause(); }
int main(void) {
    static void (*steps[COUNT])(void);
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    pthread_t thread;
    pthread_create(&thread, 0, waits, 0);
    for (int i = 0; i < COUNT; i++) {
        char name[30];
        sprintf(name, \"./plugin%d.so\", i);
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!library) return 1;
        *(void **)&steps[i] = dlsym(library, \"step\");
    }
    printf(\"ready\\n\");
    fflush(stdout);
    sigwait(&set, &signal);
    for (int i = 0; i < COUNT; i++) steps[i]();
    printf(\"done\\n\");
    fflush(stdout);
    sigwait(&set, &signal);
    return 0;
}
";
    let count = format!("-DCOUNT={COUNT}");
    compile(folder.path(), "loads", program, &["-O1", "-w", "-pthread", "-ldl", &count]);
    let mut victim = Victim::start(Command::new(folder.path().join("loads")).current_dir(folder.path()));
    assert_eq!(victim.line(), "ready");
    let text = attach(folder.path(), &victim.pid(), &[]);
    // Near the code of a library there may be no room for its hooks.
    let recorded = text.matches("inside the program: its blocks are recorded").count();
    assert_eq!(recorded + text.matches("there is no memory near its code").count(), COUNT, "{text}");
    assert!(recorded > COUNT / 2, "{text}");
    victim.signal(Signal::USR1);
    assert_eq!(victim.line(), "done");
    succeed(folder.path(), &["save", "--dump", &victim.pid(), "d.json.gz"]);
    assert_eq!(counted(&dump(&folder.path().join("d.json.gz"))), 4 * recorded as u64);
    succeed(folder.path(), &["detach", &victim.pid()]);
    victim.end();
}

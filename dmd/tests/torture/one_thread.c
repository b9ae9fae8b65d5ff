// Makes calls that need a process with one thread. Prints their results, and whether the C library counts one thread.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *what, int result) {
    printf("%s: %s\n", what, result == 0 ? "done" : strerror(errno));
    fflush(stdout);
}

static void allocate(void) {
    for (int i = 0; i < 3000; i++) {
        void *volatile block = malloc(i % 700 + 1);
        if (i % 3) free(block);
    }
}

int main(void) {
    allocate();
    printf("single-threaded: %d\n", __libc_single_threaded);
    int namespace = open("/proc/self/ns/mnt", O_RDONLY);
    say("setns", setns(namespace, CLONE_NEWNS));
    say("unshare files", unshare(CLONE_FILES));
    say("setuid", setuid(getuid()));
    fflush(stdout);
    if (fork() == 0) {
        allocate();
        say("system call", (int)syscall(SYS_unshare, CLONE_NEWUSER));
        allocate();
        exit(0);
    }
    wait(NULL);
    say("unshare user", unshare(CLONE_NEWUSER));
    allocate();
    // No thread can start after this.
    say("unshare processes", unshare(CLONE_NEWPID));
    allocate();
    printf("single-threaded: %d\n", __libc_single_threaded);
    return 0;
}

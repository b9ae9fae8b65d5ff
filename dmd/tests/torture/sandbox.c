// Takes the steps of a sandbox before it confines a process: counts the threads by the links of the folder that lists
// them, enters a user namespace, drops all rights, and counts the threads again.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static int proc;

static void allocate(void) {
    for (int i = 0; i < 3000; i++) {
        void *volatile block = malloc(i % 700 + 1);
        if (i % 3) free(block);
    }
}

// `.` and `..`, and a link for each thread.
static void count(const char *when) {
    struct stat by_folder, by_path;
    struct statx extended;
    char own[40];
    snprintf(own, sizeof own, "/proc/%d/task", getpid());
    if (fstatat(proc, "self/task/", &by_folder, 0) || lstat(own, &by_path)) exit(2);
    if (statx(AT_FDCWD, "/proc/self/task", 0, STATX_NLINK, &extended)) exit(3);
    printf("%s: %d %d %d\n", when, (int)by_folder.st_nlink - 2, (int)by_path.st_nlink - 2, (int)extended.stx_nlink - 2);
    fflush(stdout);
}

static void sandbox(const char *who) {
    allocate();
    count(who);
    if (unshare(CLONE_NEWUSER)) printf("unshare: %s\n", strerror(errno));
    count("in a namespace");
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    if (syscall(SYS_capset, &header, none)) printf("capset: %s\n", strerror(errno));
    allocate();
    count("without rights");
}

int main(void) {
    proc = open("/proc", O_RDONLY | O_DIRECTORY);
    if (fork() == 0) {
        sandbox("child");
        exit(0);
    }
    wait(NULL);
    // Time for the engine's threads to run.
    usleep(150000);
    sandbox("parent");
    struct stat missing;
    printf("%d %d\n", stat("/proc/self/tasks", &missing), errno == ENOENT);
    printf("%d %d\n", stat((char *)1, &missing), errno == EFAULT);
    return 0;
}

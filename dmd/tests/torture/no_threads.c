// Forbids itself new threads for a while. During this time the engine's thread must end. Prints the number of threads
// before, during and after this time.
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { USER = 64321 };

static int threads(void) {
    int count = -2;
    DIR *folder = opendir("/proc/self/task");
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

static void allocate(int milliseconds) {
    for (int i = 0; i < milliseconds; i++) {
        for (int n = 0; n < 3000; n++) {
            void *volatile block = malloc(n % 700 + 1);
            free(block);
        }
        usleep(1000);
    }
}

int main(void) {
    allocate(10);
    int before = threads();
    struct rlimit limit;
    getrlimit(RLIMIT_NPROC, &limit);
    rlim_t most = limit.rlim_cur;
    limit.rlim_cur = 1;
    setrlimit(RLIMIT_NPROC, &limit);
    // The limit does not apply to root. No other process has this user.
    if (getuid() == 0 && (setresgid(USER, USER, 0) || setresuid(USER, USER, 0))) return 2;
    allocate(10);
    int meanwhile = threads();
    limit.rlim_cur = most;
    setrlimit(RLIMIT_NPROC, &limit);
    int after = 0;
    for (int i = 0; i < 500 && after < 2; i++) {
        allocate(10);
        after = threads();
    }
    printf("%d %d %d\n", before, meanwhile, after);
    return 0;
}

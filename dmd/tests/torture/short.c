// Requests a dump while address space is short, and another dump when it is not. Usage: short FILE FILE
#include "dmd.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static void *volatile kept;

// 60,000 kinds of blocks: 1,000 sizes, each on 60 stacks.
__attribute__((noinline)) static int make(int depth) {
    for (size_t bytes = 1; bytes <= 1000; bytes++) kept = malloc(bytes);
    return depth ? make(depth - 1) + 1 : 0;
}

int main(int count, char **arguments) {
    __typeof__(&DMDDump) dump = dlsym(RTLD_DEFAULT, "DMDDump");
    if (make(59) != 59 || !dump || count < 3) return 1;
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (!statm || fscanf(statm, "%lu", &pages) != 1) return 2;
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (4 << 20);
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 3;
    int error = dump(arguments[2]);
    int there = access(arguments[2], F_OK) == 0;
    limit.rlim_cur = before;
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 4;
    printf("error %d, %d there\n", error, there);
    error = dump(arguments[1]);
    there = access(arguments[1], F_OK) == 0;
    printf("error %d, %d there\n", error, there);
    return 0;
}

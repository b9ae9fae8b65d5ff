// A signal's handler requests dumps at any point of the program. Each request writes a file or returns an error.
// Usage: handler_dumps FILE
#define _GNU_SOURCE
#include "dmd.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static __typeof__(&DMDDump) dump, report_and_dump;
static const char *path;
static volatile int signals, done, busy, other;

static void handler(int number) {
    (void)number;
    int error = signals++ % 2 ? dump(path) : report_and_dump(path);
    done += error == 0;
    busy += error == EBUSY;
    other += error != 0 && error != EBUSY;
    // Set each timer after a dump: a dump may take longer than any fixed period, and the program would then make no
    // progress.
    if (signals < 100) ualarm(200 + signals % 50, 0);
}

int main(int count, char **arguments) {
    dump = dlsym(RTLD_DEFAULT, "DMDDump");
    report_and_dump = dlsym(RTLD_DEFAULT, "DMDReportAndDump");
    if (!dump || count < 2) return 1;
    path = arguments[1];
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGALRM, &action, NULL);
    void *volatile kept = malloc(4242);
    ualarm(200, 0);
    for (unsigned i = 0; signals < 100; i++) {
        void *volatile block = malloc(i % 300);
        free(block);
    }
    if (done == 0 || other != 0) printf("%d done, %d busy, %d other\n", done, busy, other);
    if (dump(path) != 0) return 2;
    puts("done");
    return 0;
}

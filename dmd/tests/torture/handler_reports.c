// A signal's handler interrupts the allocation, the report or the deallocation of a block, and reports this block.
// Usage: handler_reports FILE
#define _GNU_SOURCE
#include "dmd.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static __typeof__(&DMDReport) report;
static char *volatile block;
static volatile int signals;

static void handler(int number) {
    (void)number;
    report(block);
    report(block + 1);
    signals++;
}

int main(int count, char **arguments) {
    report = dlsym(RTLD_DEFAULT, "DMDReport");
    __typeof__(&DMDDump) dump = dlsym(RTLD_DEFAULT, "DMDDump");
    __typeof__(&DMDClearReports) clear = dlsym(RTLD_DEFAULT, "DMDClearReports");
    if (!report || count < 2) return 1;
    // The first report looks up the library. A handler must not do this.
    report(&count);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    ualarm(200, 200);
    while (signals < 3000) {
        block = malloc(100);
        report(block);
        free(block);
        clear();
    }
    ualarm(0, 0);
    signal(SIGALRM, SIG_IGN);
    block = malloc(4242);
    clear();
    report(block);
    if (dump(arguments[1]) != 0) return 2;
    puts("done");
    return 0;
}

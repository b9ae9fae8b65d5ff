// Uses dmd.h, and runs with or without libdmd.so. Usage: entry_points FILE
#define _GNU_SOURCE
#include "dmd.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static void *volatile sink;

static void *find(const char *name) { return dlsym(RTLD_DEFAULT, name); }

int main(int count, char **arguments) {
    int (*running)(void) = find("DMDIsRunning");
    if (!running || !running() || count < 2) {
        puts("not running");
        return 0;
    }
    __typeof__(&DMDDump) dump = find("DMDDump");
    __typeof__(&DMDReport) report = find("DMDReport");
    __typeof__(&DMDReportOnAlloc) report_on_alloc = find("DMDReportOnAlloc");
    __typeof__(&DMDReportAndDump) report_and_dump = find("DMDReportAndDump");
    __typeof__(&DMDClearReports) clear = find("DMDClearReports");

    char *blocks[8];  // Seven blocks of 1,234 bytes stay live; one is freed.
    for (int i = 0; i < 8; i++) blocks[i] = malloc(1234);
    free(blocks[7]);
    report(blocks[0]);
    clear();
    if (report(blocks[0]) != malloc_usable_size(blocks[0])) puts("wrong size");
    report_on_alloc(blocks[1]);
    clear();
    report(blocks[0]);
    report(blocks[2] + 100);  // Inside a block.
    report(blocks[7]);        // Freed.
    int on_stack = 0;
    report(&on_stack);        // Not in the heap.
    void *gone = malloc(4321);
    report(gone);
    free(gone);               // Freed after its report.

    sink = malloc(3001);
    sink = calloc(3002, 1);
    sink = realloc(NULL, 3003);
    sink = reallocarray(NULL, 3004, 1);
    void *place;
    if (posix_memalign(&place, 64, 3005) != 0) return 1;
    sink = aligned_alloc(128, 3006);
    sink = memalign(256, 3007);
    sink = realloc(malloc(1), 3008);
    sink = malloc(100000000);

    if (dump("/nowhere/at/all.json") == 0) puts("wrong result");
    report(blocks[0]);
    report(blocks[2] + 100);
    report(&on_stack);
    char *again = malloc(5555);
    sink = malloc(10);
    free(again);
    report(again);
    gone = malloc(4321);
    report(gone);
    free(gone);
    if (dump(arguments[1]) != 0) puts("no dump");
    if (report_and_dump("/dev/null") != 0) puts("no report");
    puts("ok");
    return 0;
}

// Many small blocks. DMD records few of them. A report must return the size of the block, or 0 if DMD has not recorded
// the block. Prints "ok" if all results are correct. Usage: sampled FILE
#define _GNU_SOURCE
#include "dmd.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 4800 };
static void *blocks[COUNT];

int main(int count, char **arguments) {
    if (count < 2) return 2;
    __typeof__(&DMDDump) dump = dlsym(RTLD_DEFAULT, "DMDDump");
    __typeof__(&DMDReport) report = dlsym(RTLD_DEFAULT, "DMDReport");
    if (!dump || !report) return 2;
    for (int i = 0; i < COUNT; i++) blocks[i] = malloc(2000);
    long known = 0;
    for (int i = 0; i < COUNT; i++) {
        size_t told = report(blocks[i]);
        known += told != 0;
        if (told != 0 && told != malloc_usable_size(blocks[i])) return 3;
    }
    if (known == 0 || known > COUNT / 2) return 4;
    puts(dump(arguments[1]) == 0 ? "ok" : "failed");
    return 0;
}

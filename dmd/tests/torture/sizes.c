// Keeps blocks of many sizes and alignments, which it allocates with all functions, and dumps. Usage: sizes FILE.
// Prints the sum of the blocks' extra bytes: malloc_usable_size minus the requested size.
#define _GNU_SOURCE
#include "dmd.h"
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static void *volatile kept[100];
static unsigned long slop;

static void keep(int at, void *block, size_t bytes) {
    kept[at] = block;
    slop += malloc_usable_size(block) - bytes;
}

int main(int count, char **arguments) {
    if (count < 2) return 1;
    __typeof__(&DMDDump) dump = dlsym(RTLD_DEFAULT, "DMDDump");
    static const size_t sizes[] = {1501, 1512, 1513, 1519, 1528, 1529, 2047, 2049, 16384, 70000, 200000, 3 << 20};
    int number = sizeof sizes / sizeof *sizes;
    // The C library reuses some of these blocks for smaller requests, and does not change their size.
    for (int at = 0; at < 20; at++) kept[at] = malloc(1600 + 16 * (size_t)at);
    for (int at = 0; at < 20; at += 2) free(kept[at]);
    for (int at = 0; at < number; at++) keep(20 + at, malloc(sizes[at]), sizes[at]);
    for (int at = 0; at < number; at++) keep(40 + at, memalign(64 << at % 7, 7000 + at), 7000 + at);
    for (int at = 0; at < number; at++) keep(60 + at, calloc(1, 8000 + at), 8000 + at);
    for (int at = 0; at < number; at++) keep(80 + at, realloc(malloc(10), 9000 + at), 9000 + at);
    if (dump && dump(arguments[1])) return 2;
    printf("%lu\n", slop);
    return 0;
}

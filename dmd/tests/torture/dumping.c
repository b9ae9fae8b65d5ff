// Dumps while other threads allocate, and while no thread allocates. Each dump contains the blocks that are live all
// the time, and the dump does not change the heap. Usage: dumping FOLDER
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "dmd.h"

static atomic_int stop;
static atomic_long made;
static void *volatile kept[200], *volatile other[20000];

static void *work(void *arg) {
    void *blocks[32] = {0};
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        free(blocks[i % 32]);
        blocks[i % 32] = malloc(i % 3000);
        atomic_fetch_add(&made, 1);
    }
    for (int i = 0; i < 32; i++) free(blocks[i]);
    return arg;
}

int main(int argc, char **argv) {
    if (argc < 2) return 1;
    __typeof__(&DMDDump) dump = dlsym(RTLD_DEFAULT, "DMDDump");
    __typeof__(&DMDReportAndDump) report_and_dump = dlsym(RTLD_DEFAULT, "DMDReportAndDump");
    if (!dump || !report_and_dump) return 2;
    for (int i = 0; i < 200; i++) kept[i] = malloc(6543);
    // Many blocks, so that a dump takes a long time.
    for (int i = 0; i < 20000; i++) other[i] = malloc((size_t)i / 5 + 1);
    char path[4096];
    snprintf(path, sizeof path, "%s/alone.json", argv[1]);
    size_t before = mallinfo2().uordblks;
    int error = dump(path);
    printf("%d %s\n", error, mallinfo2().uordblks == before ? "same" : "other");
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, NULL);
    int went_on = 0;
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof path, "%s/%d.json", argv[1], i);
        long at = atomic_load(&made);
        while (atomic_load(&made) == at) {}
        at = atomic_load(&made);
        error |= i % 2 ? dump(path) : report_and_dump(path);
        went_on += atomic_load(&made) > at;
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("%d %s\n", error, went_on > 0 ? "others went on" : "others waited");
    return 0;
}

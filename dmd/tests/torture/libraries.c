// Loads and unloads libraries thousands of times, while threads allocate and compete for the loader's lock. Blocks
// outlive the code that allocated them. Usage: libraries PLUGIN...
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_int stop;

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info, (void)size;
    // Allocates under the loader's lock.
    free(malloc(40));
    ++*(int *)data;
    return 0;
}

static void *look(void *arg) {
    while (!atomic_load(&stop)) {
        int count = 0;
        dl_iterate_phdr(visit, &count);
        free(malloc(100));
    }
    return arg;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, look, NULL);
    const char *names[] = {"libm.so.6", "libz.so.1", "libutil.so.1", "libresolv.so.2"};
    char *kept[400];
    int loaded = 0;
    for (int round = 0; round < 400; round++) {
        void *library = dlopen(names[round % 4], RTLD_NOW | RTLD_LOCAL);
        if (library) {
            loaded += dlsym(library, "no such symbol") == NULL;
            kept[round] = strdup(dlerror() ? "error" : "none");
            dlclose(library);
        } else {
            kept[round] = strdup(dlerror());
        }
    }
    for (int round = 0; round < 400; round++) free(kept[round]);
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%s\n", loaded > 0 ? "loaded" : "nothing to load");
    return 0;
}

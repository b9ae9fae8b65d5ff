// Threads load and unload libraries with allocators while other threads allocate. The first calls of a library's
// allocator may come before DMD hooks it. After the last load, the calls have another size, and all are recorded.
// Usage: loads_under_load LIBRARY... (one for each thread)
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

enum { ROUNDS = 30 };

typedef void (*function)(size_t);
static pthread_barrier_t barrier;
static volatile int ended;
// DMD does not wait for a thread that already looks for new libraries. Before the last look, the other thread stops
// looking.
static volatile int last_look, stopped_looking;

static function load(const char *path, void **library) {
    *library = dlopen(path, RTLD_NOW);
    function work = *library ? (function)dlsym(*library, "work") : NULL;
    if (!work)
        abort();
    return work;
}

static void *loads(void *path) {
    void *library;
    for (int i = 0; i < ROUNDS; i++) {
        load(path, &library)(777);
        dlclose(library);
    }
    function work = load(path, &library);
    pthread_barrier_wait(&barrier);
    // The main thread calls dlsym.
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < ROUNDS; i++)
        work(888);
    return NULL;
}

static void *allocates(void *unused) {
    while (!ended) {
        void *volatile block = malloc(99);
        free(block);
        if (last_look)
            stopped_looking = 1;
        else
            dlsym(RTLD_DEFAULT, "malloc");
    }
    return NULL;
}

int main(int count, char **words) {
    pthread_t threads[64];
    pthread_barrier_init(&barrier, NULL, count);
    pthread_create(&threads[0], NULL, allocates, NULL);
    for (int i = 1; i < count; i++)
        pthread_create(&threads[i], NULL, loads, words[i]);
    pthread_barrier_wait(&barrier);
    last_look = 1;
    while (!stopped_looking)
        continue;
    dlsym(RTLD_DEFAULT, "malloc");
    pthread_barrier_wait(&barrier);
    for (int i = 1; i < count; i++)
        pthread_join(threads[i], NULL);
    ended = 1;
    pthread_join(threads[0], NULL);
    return 0;
}

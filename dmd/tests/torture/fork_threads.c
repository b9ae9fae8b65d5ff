// Threads allocate and free all the time, and one removes reports. The main thread forks, and each child allocates,
// starts threads and ends. Usage: fork_threads FORKS. Prints "ok" if no child hung or failed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int stop;

static void *work(void *seed) {
    unsigned state = (unsigned)(size_t)seed * 2654435761u + 1;
    void *blocks[64] = {0};
    for (long i = 0; !atomic_load(&stop) && i < 2000000; i++) {
        state = state * 1103515245u + 12345;
        unsigned at = (state >> 8) % 64;
        free(blocks[at]);
        blocks[at] = malloc((state >> 16) % 5000);
        if (i % 97 == 0) blocks[at] = realloc(blocks[at], 9000);
    }
    for (int i = 0; i < 64; i++) free(blocks[i]);
    return NULL;
}

static void *clear(void *arg) {
    void (*clear_reports)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "DMDClearReports");
    for (; clear_reports && !atomic_load(&stop); usleep(50)) clear_reports();
    return arg;
}

// Other handlers allocate while a fork is under way.
static void *before_fork;
static void prepare(void) { before_fork = malloc(777); }
static void after(void) { free(before_fork); }

static void *short_work(void *arg) {
    for (int i = 0; i < 1000; i++) free(malloc((size_t)i));
    return arg;
}

int main(int count, char **arguments) {
    int rounds = count > 1 ? atoi(arguments[1]) : 1;
    pthread_atfork(prepare, after, after);
    pthread_t threads[4], clearing;
    for (size_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    pthread_create(&clearing, NULL, clear, NULL);
    int failed = 0;
    for (int round = 0; round < rounds; round++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            pthread_t mine;
            pthread_create(&mine, NULL, short_work, NULL);
            for (int i = 0; i < 1000; i++) free(calloc(3, (size_t)i));
            pthread_join(mine, NULL);
            if (round % 10 == 0 && fork() == 0) _exit(0);
            exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        failed += status != 0;
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    pthread_join(clearing, NULL);
    puts(failed ? "failed" : "ok");
    return failed != 0;
}

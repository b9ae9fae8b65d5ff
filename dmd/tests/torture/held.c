// Each thread frees one short block and waits: DMD's hook still holds the block. Usage: held FILE CHILD_FILE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8 };

static pthread_barrier_t freed, dumped;
static void *freed_blocks[THREADS];

static void *thread(void *at) {
    void *volatile kept = malloc(776);
    void *volatile block = malloc(777);
    freed_blocks[(long)at] = block;
    free(block);
    pthread_barrier_wait(&freed);
    pthread_barrier_wait(&dumped);
    free(kept);
    return NULL;
}

int main(int count, char **arguments) {
    int (*dump)(const char *) = dlsym(RTLD_DEFAULT, "DMDDump");
    unsigned long (*report)(const void *) = dlsym(RTLD_DEFAULT, "DMDReport");
    pthread_t threads[THREADS];
    if (!dump || !report || count != 3) return 1;
    pthread_barrier_init(&freed, NULL, THREADS + 1);
    pthread_barrier_init(&dumped, NULL, THREADS + 1);
    for (long at = 0; at < THREADS; at++) {
        if (pthread_create(&threads[at], NULL, thread, (void *)at) != 0) return 2;
    }
    pthread_barrier_wait(&freed);
    unsigned long known = 0;
    for (int at = 0; at < THREADS; at++) known += report(freed_blocks[at]) + report((char *)freed_blocks[at] + 100);
    pid_t child = fork();
    if (child == 0) _exit(dump(arguments[2]) == 0 ? 0 : 3);
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) return 4;
    if (dump(arguments[1]) != 0) return 5;
    pthread_barrier_wait(&dumped);
    for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    // What the threads have left goes to the allocator here.
    free(malloc(10));
    printf("%lu\n", known);
    return 0;
}

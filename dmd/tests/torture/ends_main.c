// The first thread ends before the others; the last thread ends the process. A block of 12345 bytes is live then.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 5 };

static pthread_t threads[THREADS + 1];

static void *run(void *argument) {
    long number = (long)argument;
    for (int i = 0; i < 2000; i++) free(malloc(i % 999));
    // Each thread ends after the thread before it.
    if (number > 1) pthread_join(threads[number - 1], NULL);
    void *volatile block = malloc(12340 + number);
    (void)block;
    if (number == THREADS) puts("ended");
    return NULL;
}

int main(void) {
    for (long i = 1; i <= THREADS; i++) pthread_create(&threads[i], NULL, run, (void *)i);
    pthread_exit(NULL);
}

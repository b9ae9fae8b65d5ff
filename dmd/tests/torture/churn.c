// Thousands of short threads. Their thread-specific destructors allocate in every round. The memory of the process
// must not grow.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static pthread_key_t key;

// Compilers remove an allocation that is only freed.
__attribute__((noipa)) static void pass(void *block) { free(block); }

static void destroy(void *value) {
    size_t round = (size_t)value;
    for (int i = 1; i < 50; i++) pass(malloc((size_t)i * 10));
    if (round < 4) pthread_setspecific(key, (void *)(round + 1));
}

static void *work(void *arg) {
    pthread_setspecific(key, (void *)1);
    void *blocks[20];
    for (int i = 0; i < 20; i++) blocks[i] = malloc((size_t)i * 100);
    for (int i = 0; i < 20; i++) pass(blocks[i]);
    return arg;
}

static long peak(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

int main(void) {
    pthread_key_create(&key, destroy);
    long early = 0;
    for (int round = 0; round < 5000; round++) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, NULL);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        if (round == 500) early = peak();
    }
    puts(peak() - early < 2000 ? "flat" : "grows");
    return 0;
}

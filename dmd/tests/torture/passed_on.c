// Four threads put blocks into shared places, and free or grow the blocks that they find there. Most of these blocks
// come from other threads. Most places are full at the end.

#include <pthread.h>
#include <stdlib.h>

enum { PLACES = 20000, STEPS = 60000 };

static void *places[PLACES];

static void *work(void *seed) {
    unsigned long random = (unsigned long)seed * 0x9e3779b97f4a7c15 | 1;
    for (int step = 0; step < STEPS; step++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        size_t size = 1 + (random >> 32) % ((random >> 20) % 500 ? 300 : 100000);
        void *block = random >> 61 ? malloc(size) : calloc(1, size);
        void *found = __atomic_exchange_n(&places[random % PLACES], block, __ATOMIC_SEQ_CST);
        if (random >> 60 == 15)
            found = realloc(found, size);
        free(found);
    }
    return 0;
}

int main(void) {
    pthread_t threads[4];
    for (long n = 0; n < 4; n++)
        pthread_create(&threads[n], 0, work, (void *)(n + 1));
    for (int n = 0; n < 4; n++)
        pthread_join(threads[n], 0);
    return 0;
}

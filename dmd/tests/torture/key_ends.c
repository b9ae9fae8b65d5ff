// Some threads have thread-specific data with more blocks than any queue can hold, and free the blocks at their end.
// The destructors of other threads allocate and free in every round. Usage: key_ends BLOCKS THREADS.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct block {
    struct block *next;
    char rest[40];
};

static pthread_key_t kept, again;
static int blocks;

// Compilers remove an allocation that is only freed.
__attribute__((noipa)) static void pass(void *block) { free(block); }

static void free_all(void *first) {
    for (struct block *block = first; block;) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
}

static void keep_on(void *value) {
    size_t round = (size_t)value;
    for (int i = 1; i < 20; i++) pass(malloc((size_t)i * 10));
    if (round < 4) pthread_setspecific(again, (void *)(round + 1));
}

static void *keeps(void *arg) {
    struct block *first = NULL;
    for (int i = 0; i < blocks; i++) {
        struct block *block = malloc(sizeof *block);
        block->next = first;
        first = block;
    }
    pthread_setspecific(kept, first);
    return arg;
}

static void *comes_back(void *arg) {
    pass(malloc(100));
    pthread_setspecific(again, (void *)1);
    return arg;
}

int main(int count, char **words) {
    blocks = atoi(words[1]);
    pthread_key_create(&kept, free_all);
    pthread_key_create(&again, keep_on);
    pthread_t thread;
    pthread_create(&thread, NULL, keeps, NULL);
    pthread_join(thread, NULL);
    for (int i = 0; i < atoi(words[2]); i++) {
        pthread_create(&thread, NULL, comes_back, NULL);
        pthread_join(thread, NULL);
    }
    puts("ok");
    return 0;
}

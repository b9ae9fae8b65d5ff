// A library with an allocator of its own: it gives out pieces of its data. Two blocks of four stay.
#include <stddef.h>

static char all[1 << 16];
static size_t used;

// mimalloc's private names start like this.
void _mi_marker(void) {}

__attribute__((noinline)) void *mi_malloc(size_t bytes) {
    used += bytes;
    return all + used - bytes;
}

__attribute__((noinline)) void mi_free(void *block) {
    __asm__ volatile("" : : "r"(block) : "memory");
}

// A word with an address.
void (*volatile release)(void *) = mi_free;

__attribute__((visibility("default"))) void work(void) {
    for (int i = 0; i < 4; i++) {
        void *block = mi_malloc(777);
        if (i == 0)
            mi_free(block);
        if (i == 1)
            release(block);
    }
}

// A library with an allocator of its own, which the library calls through words only, as libraries in Rust do. So DMD
// can hook it while threads run. Any number of threads may call it.
#include <stddef.h>

static char all[1 << 24] __attribute__((aligned(16)));
static size_t used;

// mimalloc's private names start like this.
void _mi_marker(void) {}

__attribute__((noinline)) void *mi_malloc(size_t bytes) {
    return all + __atomic_fetch_add(&used, (bytes + 15) / 16 * 16, __ATOMIC_RELAXED);
}

__attribute__((noinline)) void mi_free(void *block) {
    __asm__ volatile("" : : "r"(block) : "memory");
}

void *(*volatile allocate)(size_t) = mi_malloc;
void (*volatile release)(void *) = mi_free;

// One of two blocks stays.
__attribute__((visibility("default"))) void work(size_t bytes) {
    allocate(bytes);
    release(allocate(bytes));
}
